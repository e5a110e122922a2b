"""Questions by batches: sent once, resumed after a kill, every answer checked, what fails asked again."""

from __future__ import annotations

import asyncio
import json

import pytest
from support.llm_bench import MODEL, PRICE, Bench, question

from raggs.base.errors import AuthenticationError, BudgetError, BusyError, ConfigError, ProviderError
from raggs.base.jsonl import read_torn
from raggs.llm import LLM, BatchSettings, BudgetSettings, CallLedger, LLMSettings, messages, providers
from raggs.llm.batch_api import read_line
from raggs.llm.calls import Completion
from raggs.llm.faults import Fault, Treatment
from raggs.llm.ledger import LedgerLine

TEXTS = [f"question {number}" + number * "?" for number in range(6)]


def batching(
    b: Bench, seen: list | None = None, max_usd=5.0, max_calls=1000, ledger=None, prices=None, at="here", **settings
) -> LLM:
    """A layer whose patient questions go into batches."""
    llm = LLMSettings(
        api_base=b.server.url if at == "here" else at,
        prices=prices or {MODEL: PRICE},
        requests_per_minute=None,
        timeout_s=20,
        max_attempts=3,
        backoff_s=0.001,
    )
    budget = BudgetSettings(max_usd=max_usd, max_calls=max_calls)
    batch = BatchSettings(**{"poll_s": 0.02, "quiet_s": 0.03, **settings})
    return LLM(llm, budget, b.folder / "llm", ledger, batch, lambda *told: None if seen is None else seen.append(told))


def ask(llm, texts=TEXTS, **changes):
    return asyncio.gather(*(llm.ask(question(text=text, qid="q1", patient=True, **changes)) for text in texts))


def values(replies):
    return [reply.value for reply in replies]


def truth(texts=TEXTS):
    return [(len(text) + len("this")) % 5 + 1 for text in texts]


def notes(b):
    return list((b.folder / "llm").rglob("batches/*/*.json"))


def routes(b, route):
    return b.server.batches.seen.count(route)


def test_one_batch_at_half_the_price_and_nothing_twice(bench):
    with bench() as b:
        seen = []
        llm = batching(b, seen)
        assert values(b.run(ask, llm)) == truth()
        (keys,) = b.server.batches.submitted
        assert keys == sorted(keys)
        assert len(keys) == 6
        assert b.server.batches.created[0]["completion_window"] == "24h"
        usage = llm.spent
        assert usage.calls == 6
        assert usage.usd == pytest.approx(PRICE.usd(usage.prompt_tokens, usage.completion_tokens) / 2)
        assert seen[-1] == ("batch batch-1", 6, 6)
        assert notes(b) == []
        again = batching(b)
        assert values(b.run(ask, again)) == truth()
        assert again.spent.calls == 0
        assert again.spent.saved_usd == pytest.approx(usage.usd)
        direct = b.llm()
        assert values(b.run(ask, direct)) == truth()
        assert direct.spent.calls == 0, "a direct call finds what a batch has paid"


def test_the_line_is_the_call_that_would_be_made_directly(bench):
    with bench() as b:
        b.run(ask, batching(b, max_usd=None))
        (line,) = [body for body in b.server.requests if "question 3" in json.dumps(body)]
        direct = b.llm(cached=False, timeout_s=20, max_usd=None)
        b.run(lambda llm: ask(llm, TEXTS[3:4]), direct)
        assert b.server.requests[-1] == line


def test_only_patient_questions_wait(bench):
    with bench() as b:
        b.run(lambda llm: llm.ask(question()), batching(b))
        assert b.server.batches.created == []


def test_a_full_batch_goes_and_the_next_begins(bench):
    with bench() as b:
        assert values(b.run(ask, batching(b, max_requests=4))) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [4, 2]


def test_a_bad_answer_is_repaired_in_a_second_batch(bench):
    with bench(faults=["grade 7", None, "truncated"]) as b:
        llm = batching(b)
        assert values(b.run(ask, llm)) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 2]
        assert set(b.server.batches.submitted[1]) < set(b.server.batches.submitted[0])
        assert llm.spent.repaired == 2
        assert notes(b) == []


def test_failed_lines_are_asked_again_and_told_if_they_fail_to_the_end(bench):
    with bench(fault_for=lambda _, body: "500" if "question 3" in json.dumps(body) else None) as b:
        replies = b.run(ask, batching(b, rounds=2))
        assert values(replies) == [None if n == 3 else grade for n, grade in enumerate(truth())]
        assert "provider failed" in replies[3].error
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 1]
        assert notes(b) == []


def test_a_rejected_line_is_a_failure_at_once(bench):
    with bench(faults=["context"]) as b:
        replies = b.run(ask, batching(b))
        assert sum(reply.value is None for reply in replies) == 1
        assert len(b.server.batches.created) == 1


@pytest.mark.parametrize("whole", [False, True], ids=["each line", "the whole batch"])
def test_a_provider_that_refuses_its_own_marks_gets_a_batch_without_them(bench, monkeypatch, whole):
    monkeypatch.setattr(messages, "_unmarked_models", set())
    refusal = lambda _, body: "no marks" if "prompt_cache_options" in body else None  # noqa: E731
    with bench(fault_for=refusal) as b:
        monkeypatch.setattr(providers, "HOME", b.server.url)
        if whole:
            b.server.batches.endings, b.server.batches.problem = ["failed"], "Unknown: 'prompt_cache_options'."
        model = "openai/gpt-5.6"  # is told what of a prompt to remember
        llm = batching(b, prices={model: PRICE}, at=None, rounds=1)
        assert values(b.run(lambda llm: ask(llm, model=model), llm)) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 6]
        again = batching(b, prices={model: PRICE}, at=None, rounds=1)
        b.run(lambda llm: ask(llm, ["one more"], model=model), again)
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 6, 1]


@pytest.mark.parametrize("ending", ["expired", "cancelled"])
def test_what_an_ended_batch_left_open_is_asked_again(bench, ending):
    with bench() as b:
        b.server.batches.endings = [ending]
        assert values(b.run(ask, batching(b))) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 3]
        assert b.server.count == 6, "half of the first batch was answered and kept"


def test_a_failed_batch_is_sent_again_and_in_the_end_told(bench):
    with bench() as b:
        b.server.batches.endings = ["failed"]
        assert values(b.run(ask, batching(b))) == truth()
        b.server.batches.endings = ["failed", "failed"]
        replies = b.run(lambda llm: ask(llm, sample=1), batching(b, rounds=2))
        assert values(replies) == [None] * 6
        assert "too many" in replies[0].error
        assert notes(b) == []


def test_the_deadline_cancels_and_takes_what_is_there(bench):
    with bench() as b:
        b.server.batches.polls = 0
        llm = batching(b, deadline_h=0.1 / 3600, fallback="direct")
        assert values(b.run(ask, llm)) == truth()
        assert routes(b, "POST /batches/ID/cancel") == 1
        assert len(b.server.batches.created) == 1


@pytest.mark.parametrize("ending", ["expired", "failed"])
def test_the_rest_goes_to_direct_calls_on_request(bench, ending):
    with bench() as b:
        b.server.batches.endings = [ending]
        assert values(b.run(ask, batching(b, fallback="direct"))) == truth()
        assert len(b.server.batches.created) == 1


def test_a_repair_is_a_direct_call_on_request(bench):
    with bench(faults=["grade 7"]) as b:
        assert values(b.run(ask, batching(b, fallback="direct"))) == truth()
        assert len(b.server.batches.created) == 1
        assert b.server.count == 7


def spoil(lines):
    first = json.loads(lines[0])
    lines[0] = b"\xff\xfe not JSON"
    lines[1] = b'{"custom_id": 7}'
    lines[2] = lines[2][: len(lines[2]) // 2]
    lines.append(json.dumps({**first, "custom_id": "nobody's"}).encode())
    lines.append(b"[]")


def test_malformed_lines_are_questions_without_an_answer(bench):
    with bench() as b:
        b.server.batches.spoil = spoil
        llm = batching(b)

        async def work(llm):
            replies = asyncio.ensure_future(ask(llm))
            while len(b.server.batches.created) < 1:
                await asyncio.sleep(0.01)
            while "output_file_id" not in b.server.batches.created[0]:
                await asyncio.sleep(0.01)
            b.server.batches.spoil = lambda lines: None
            return await replies

        assert values(b.run(work, llm)) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 3]


# --- the ledger ---


@pytest.fixture
def booked(bench, tmp_path):
    """Run `work` on a layer with a ledger; returns the lines it has written and its usage."""
    path = tmp_path / "llm.ledger.jsonl"

    def done(b, work, **settings):
        before = len(list(read_torn(path, LedgerLine, ""))) if path.exists() else 0
        llm = batching(b, ledger=CallLedger(path, "judge"), **settings)
        b.run(work, llm)
        return (list(read_torn(path, LedgerLine, ""))[before:] if path.exists() else []), llm.spent

    return done


def test_every_line_of_a_batch_is_booked_at_its_price_and_cached_answers_as_saved(bench, booked):
    with bench(faults=["grade 7", "500"]) as b:
        lines, usage = booked(b, ask)
        assert sum(line.attempts for line in lines) == usage.calls == 8
        assert sum(line.usd for line in lines) == pytest.approx(usage.usd)
        assert usage.usd == pytest.approx(PRICE.usd(usage.prompt_tokens, usage.completion_tokens) / 2)
        assert sorted(line.outcome for line in lines) == ["answered"] * 6 + ["unusable"]
        assert sorted(line.attempts for line in lines) == [1] * 6 + [2], "a line that failed is one more attempt"
        assert {(line.qid, line.task) for line in lines} == {("q1", "grade")}
        (saved,), later = booked(b, ask)
        assert (saved.outcome, saved.cached, saved.attempts, later.calls) == ("cached", 6, 0, 0)
        assert saved.saved_usd == pytest.approx(usage.usd)


def test_what_falls_back_to_direct_calls_is_booked_at_their_price(bench, booked):
    with bench(faults=["500"]) as b:
        lines, usage = booked(b, ask, fallback="direct")
        assert sum(line.attempts for line in lines) == usage.calls == 7
        assert sum(line.usd for line in lines) == pytest.approx(usage.usd)
        (late,) = [line for line in lines if line.attempts == 2]
        assert late.usd == pytest.approx(PRICE.usd(late.prompt_tokens, late.completion_tokens))


def test_a_question_that_fails_to_the_end_is_booked_as_failed(bench, booked):
    with bench(fault_for=lambda _, body: "500" if "question 3" in json.dumps(body) else None) as b:
        lines, usage = booked(b, ask, rounds=2)
        (failed,) = [line for line in lines if line.outcome == "failed"]
        assert (failed.attempts, failed.usd) == (2, 0)
        assert sum(line.attempts for line in lines) == usage.calls == 7


def test_what_an_interrupted_run_sent_is_booked_by_the_run_that_gets_it(bench, booked):
    with bench() as b:
        b.server.batches.polls = 0

        async def leave(llm):
            asking = asyncio.ensure_future(ask(llm))
            while routes(b, "GET /batches/ID") < 2:
                await asyncio.sleep(0.005)
            asking.cancel()

        assert booked(b, leave)[0] == []
        b.server.batches.polls = 1
        lines, usage = booked(b, lambda llm: ask(llm, TEXTS[:2]))
        assert sum(line.attempts for line in lines) == usage.calls == 6
        assert sum(line.usd for line in lines) == pytest.approx(usage.usd)
        known = [(line.qid, line.task, line.outcome) for line in lines]
        assert sorted(known) == [("", "batch", "answered")] * 4 + [("q1", "grade", "answered")] * 2


def test_models_have_batches_of_their_own(bench):
    with bench() as b:
        other = "openai/another"

        async def both(llm):
            return await asyncio.gather(ask(llm), ask(llm, model=other))

        first, second = b.run(both, batching(b, prices={MODEL: PRICE, other: PRICE.times(2)}))
        assert values(first) == values(second) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 6]
        models = [body["model"] for body in b.server.requests]
        assert models in ([*["test-model"] * 6, *["another"] * 6], [*["another"] * 6, *["test-model"] * 6])


# --- kills ---


def abandon(b, until, **settings):
    """Ask, and stop as soon as `until` holds; closing writes nothing that a kill would not leave."""

    async def work(llm):
        asking = asyncio.ensure_future(ask(llm))
        while not until():
            await asyncio.sleep(0.005)
        asking.cancel()

    b.run(work, batching(b, **settings))


def test_a_run_stopped_while_waiting_resumes_its_batch(bench):
    with bench() as b:
        b.server.batches.polls = 0
        abandon(b, lambda: routes(b, "GET /batches/ID") >= 2)
        assert len(notes(b)) == 1
        b.server.batches.polls = 1
        llm = batching(b, max_usd=0)  # it was promised before
        assert values(b.run(ask, llm)) == truth()
        assert len(b.server.batches.created) == 1
        assert b.server.count == 6
        assert llm.spent.usd > 0
        assert notes(b) == []


def test_lines_that_an_earlier_run_has_sent_count_under_a_cap_before_and_after_their_answer(bench, tmp_path):
    with bench(fault_for=lambda _, body: "500" if "question 3" in json.dumps(body) else None) as b:
        b.server.batches.polls = 0
        path = tmp_path / "llm.ledger.jsonl"
        abandon(b, lambda: routes(b, "GET /batches/ID") >= 2, ledger=CallLedger(path, "judge"))
        ledger = CallLedger(path, "judge")
        assert (ledger.earlier.calls, ledger.unknown.calls) == (6, 6)
        b.server.batches.polls = 1
        with pytest.raises(BudgetError, match="6 of 6 calls made"):
            b.run(ask, batching(b, ledger=ledger, max_calls=6))
        assert b.server.count == sum(map(len, b.server.batches.submitted)) == 6
        assert (CallLedger(path).earlier.calls, CallLedger(path).unknown.calls) == (6, 0)


def test_a_run_stopped_between_submission_and_its_answer_finds_its_batch(bench):
    with bench() as b:
        b.server.batches.wire_faults["POST /batches"] = ["reset after"]
        b.server.batches.wire_faults["GET /batches"] = ["500"] * 3  # nor can it be looked for at once
        with pytest.raises(ProviderError, match="run again"):
            b.run(ask, batching(b))
        assert values(b.run(ask, batching(b))) == truth()
        assert len(b.server.batches.created) == 1


def test_a_submission_whose_answer_is_lost_is_looked_for_before_it_is_repeated(bench):
    with bench() as b:
        for _ in range(5):  # other batches of the account, on several pages
            b.server.batches.created.append({**OTHER, "id": f"batch-9{len(b.server.batches.created)}"})
        b.server.batches.wire_faults["POST /batches"] = ["reset after"]
        assert values(b.run(ask, batching(b))) == truth()
        assert len(b.server.batches.submitted) == 1
        assert routes(b, "POST /batches") == 1


OTHER = {
    "object": "batch",
    "status": "failed",
    "created_at": 2_000_000_000,
    "metadata": None,
    "input_file_id": "f",
    "endpoint": "e",
    "completion_window": "24h",
}


def test_a_note_without_a_batch_is_dropped_and_its_questions_are_asked(bench):
    with bench() as b:
        b.server.batches.wire_faults["POST /batches"] = ["500"] * 3
        with pytest.raises(ProviderError):
            b.run(ask, batching(b))
        assert len(notes(b)) == 1
        assert values(b.run(ask, batching(b))) == truth()
        assert len(b.server.batches.submitted) == 1
        assert notes(b) == []


DEEP = b"[" * 100_000 + b"]" * 100_000
DAMAGES = {
    "deep": DEEP,
    "deep keys": b'{"token": "t", "since": 1, "batch_id": null, "keys": ' + DEEP + b"}",
    "torn": b'{"token": "t", "since"',
    "empty": b"",
    "list": b"[]",
    "not UTF-8": b"\xff\xfe",
}


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("mode", ["batch", "direct"])
@pytest.mark.parametrize("content", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_note_is_named_and_nothing_is_paid(bench, mode, content):
    with bench() as b:
        abandon(b, lambda: routes(b, "GET /batches/ID") >= 1)
        (note,) = notes(b)
        kept = note.read_bytes()
        note.write_bytes(content)
        before = b.server.count
        with pytest.raises(ProviderError) as told:
            llm = batching(b)
            b.run(ask if mode == "batch" else ask_directly, llm)
        assert str(note) in str(told.value)
        assert "delete the file; its requests are then sent again" in str(told.value)
        assert note.read_bytes() == content, "nothing is deleted unasked"
        assert b.server.count == before
        note.write_bytes(kept)
        b.server.batches.polls = 1
        assert values(b.run(ask, batching(b))) == truth()
        assert len(b.server.batches.created) == 1


def ask_directly(llm):
    return asyncio.gather(*(llm.ask(question(text=text, qid="q1")) for text in TEXTS))


def test_a_second_batch_is_resumed_as_well(bench):
    with bench(faults=["grade 7"]) as b:

        def second():
            if len(b.server.batches.created) == 1:
                return False
            b.server.batches.polls = 0
            return True

        abandon(b, second)
        b.server.batches.polls = 1
        assert values(b.run(ask, batching(b))) == truth()
        assert [len(keys) for keys in b.server.batches.submitted] == [6, 1]
        assert b.server.count == 7


def test_answers_that_nobody_asks_for_any_more_are_kept(bench):
    with bench() as b:
        b.server.batches.polls = 0
        abandon(b, lambda: routes(b, "GET /batches/ID") >= 1)
        b.server.batches.polls = 1
        assert values(b.run(lambda llm: ask(llm, TEXTS[:2]), batching(b))) == truth(TEXTS[:2])
        assert notes(b) == []
        rest = batching(b)
        assert values(b.run(ask, rest)) == truth()
        assert rest.spent.calls == 0
        assert b.server.count == 6


def test_two_processes_do_not_send_at_once(bench):
    with bench() as b:
        b.server.batches.polls = 0
        first, second = batching(b), batching(b)

        async def work(llm):
            asking = asyncio.ensure_future(ask(first))
            while not b.server.batches.created:
                await asyncio.sleep(0.01)
            with pytest.raises(BusyError):
                await ask(second)
            asking.cancel()
            await first.close()

        b.run(work, second)


# --- what stops a run ---


@pytest.mark.parametrize(
    "route", ["POST /files", "POST /batches", "GET /batches/ID", "GET /files/ID/content"], ids=lambda route: route
)
def test_a_refused_key_stops_and_loses_nothing(bench, route):
    with bench() as b:
        b.server.batches.wire_faults[route] = ["401"]
        with pytest.raises(AuthenticationError, match="OPENAI_API_KEY"):
            b.run(ask, batching(b))
        assert values(b.run(ask, batching(b))) == truth()
        assert len(b.server.batches.submitted) == 1


def test_without_a_key_nothing_is_sent(bench, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with bench() as b:
        with pytest.raises(AuthenticationError, match="needs a key"):
            b.run(ask, batching(b))
        assert b.server.batches.seen == []


@pytest.mark.parametrize("route", ["POST /files", "GET /batches/ID", "GET /files/ID/content"])
def test_passing_faults_of_the_endpoints_are_waited_out(bench, route):
    with bench() as b:
        b.server.batches.wire_faults[route] = ["500", "reset"]
        assert values(b.run(ask, batching(b))) == truth()
        assert len(b.server.batches.submitted) == 1


def test_a_server_without_batches_is_told(bench):
    with bench() as b:
        b.server.batches.wire_faults["POST /files"] = ["404"]
        with pytest.raises(ConfigError, match=r"no Batch API — set judge\.mode: direct"):
            b.run(ask, batching(b))


def test_a_batch_that_is_gone_is_not_paid_again_in_silence(bench):
    with bench() as b:
        b.server.batches.wire_faults["GET /batches/ID"] = ["404"]
        with pytest.raises(ConfigError, match="does not know batch batch-1"):
            b.run(ask, batching(b))


def test_the_budget_is_kept_and_what_fits_is_done(bench):
    with bench() as b:
        with pytest.raises(BudgetError, match="used up"):
            b.run(ask, batching(b, max_calls=4))
        assert b.server.count == 4
        assert values(b.run(ask, batching(b))) == truth()
        assert b.server.count == 6


def test_money_is_set_aside_at_the_price_of_a_batch(bench):
    with bench() as b:
        one = PRICE.usd(100, 300) / 2  # some more than is set aside for a question
        assert values(b.run(ask, batching(b, max_usd=3 * one))) == truth()
        first, *later = map(len, b.server.batches.submitted)
        assert first == 3, "the rest waits for what is in flight"
        assert sum(later) == 3
        with pytest.raises(BudgetError, match="used up"):
            b.run(lambda llm: ask(llm, sample=1), batching(b, max_usd=one / 2))


def test_an_answer_of_a_batch_that_was_cut_for_want_of_money_goes_into_the_next_one(bench):
    with bench() as b:
        b.server.hidden_for = lambda body: 1_500 if "question 3" in json.dumps(body) else 0
        llm = batching(b)
        assert values(b.run(ask, llm)) == truth()
        assert list(map(len, b.server.batches.submitted)) == [6, 1]
        sent = [body for body in b.server.requests if "question 3" in json.dumps(body)]
        assert [body["max_tokens"] for body in sent] == [300, 4_800]


def test_a_provider_without_batches_is_refused_beforehand():
    llm = LLM(LLMSettings(), BudgetSettings(), None, batch=BatchSettings())
    llm.require_batches("openai/gpt-5-mini")
    with pytest.raises(ConfigError, match="anthropic"):
        llm.require_batches("anthropic/claude")
    LLM(LLMSettings(), BudgetSettings(), None).require_batches("anthropic/claude")


# --- lines ---


def row(**fields):
    return json.dumps({"custom_id": "k", "response": None, "error": None, **fields}).encode()


@pytest.mark.parametrize("line", [b"", b"nothing", b"7", b"[]", b'"text"', b"{}", b'{"custom_id": null}', b"\xff"])
def test_a_line_that_says_nothing_is_left_out(line):
    assert read_line(line, MODEL) is None


@pytest.mark.parametrize(
    ("fields", "treatment"),
    [
        ({}, Treatment.RETRY),
        ({"error": {"code": "batch_expired", "message": "late"}}, Treatment.RETRY),
        ({"response": {"status_code": 500, "body": {"error": {"message": "down"}}}}, Treatment.RETRY),
        ({"response": {"status_code": 429, "body": None}}, Treatment.RETRY),
        ({"response": {"status_code": 400, "body": {"error": {"message": "bad"}}}}, Treatment.FAIL),
        ({"response": {"status_code": 401, "body": {}}}, Treatment.STOP),
        ({"response": {"status_code": 200, "body": []}}, Treatment.RETRY),
        ({"response": {"status_code": 200, "body": None}}, Treatment.RETRY),
        ({"response": {"status_code": None}}, Treatment.RETRY),
    ],
)
def test_a_line_without_an_answer_says_what_to_do(fields, treatment):
    key, fault = read_line(row(**fields), MODEL)
    assert key == "k"
    assert isinstance(fault, Fault)
    assert fault.treatment is treatment


def test_the_error_of_a_line_shows_no_key():
    _, fault = read_line(row(error={"message": "incorrect key-0123456789"}), MODEL)
    assert "incorrect [redacted]" in str(fault.error)


@pytest.mark.parametrize("body", [{"choices": []}, {"choices": [{"message": {"content": 7}}]}, {}])
def test_a_completion_that_says_nothing_is_read_as_a_direct_one(body):
    key, found = read_line(row(response={"status_code": 200, "body": body}), MODEL)
    assert (key, found) == ("k", Completion(None, None, {}, "", None, None))


def test_what_another_run_asks_by_a_batch_is_not_asked_directly(bench):
    async def work(*layers):
        batch, direct, elsewhere = layers
        waits = asyncio.ensure_future(ask(batch))
        while not b.server.batches.created:
            await asyncio.sleep(0.01)
        for other in (direct, elsewhere):
            with pytest.raises(BusyError, match="another raggs run has sent these requests in a batch"):
                await ask(other)
        b.server.batches.polls = 1
        found = await waits
        for llm in layers:
            await llm.close()
        return found

    with bench() as b:
        b.server.batches.polls = 0
        elsewhere = batching(b)
        elsewhere.settings = elsewhere.settings.model_copy(
            update={"api_base": b.server.url.replace("127.0.0.1", "localhost")}
        )
        assert values(asyncio.run(work(batching(b), b.llm(), elsewhere))) == truth()
        assert b.server.count == len(TEXTS)
        assert values(b.run(ask)) == truth()
        assert b.server.count == len(TEXTS)


def test_a_batch_leaves_out_what_another_run_gets_by_direct_calls_meanwhile(bench):
    with bench(delay_s=0.3) as b:

        async def work(direct: LLM, patient: LLM):
            first = asyncio.ensure_future(ask(direct, TEXTS[:2]))
            await asyncio.sleep(0.1)  # the direct calls hold their claims now
            second = await ask(patient, TEXTS[:3])
            found = await first, second
            await direct.close()
            await patient.close()
            return found

        direct, patient = b.llm(timeout_s=20), batching(b)
        first, second = asyncio.run(work(direct, patient))
        assert values(first) == truth(TEXTS[:2])
        assert values(second) == truth(TEXTS[:3])
        assert [len(keys) for keys in b.server.batches.submitted] == [1]
        assert (direct.spent.calls, patient.spent.calls, patient.spent.cached) == (2, 1, 2)


def test_what_a_killed_run_has_sent_in_a_batch_is_fetched_or_given_up_by_its_user(bench):
    async def killed(llm):
        asking = asyncio.ensure_future(ask(llm))
        while not notes(b) or '"batch_id": null' in notes(b)[0].read_text():
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    with bench() as b:
        b.server.batches.polls = 0
        b.run(killed, batching(b))
        asked = b.server.count
        with pytest.raises(BusyError, match="sent in a batch that has not been fetched") as told:
            b.run(ask)
        assert told.value.where == str(notes(b)[0])
        assert values(b.run(lambda llm: ask(llm, ["another one"]))) == truth(["another one"])
        b.server.batches.polls = 1
        assert values(b.run(ask, batching(b))) == truth()
        assert values(b.run(ask)) == truth()
        assert b.server.count - asked in (1, 1 + len(TEXTS))
        assert len(b.server.batches.created) == 1
