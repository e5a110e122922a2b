"""The account of a run: complete, whole after a kill, and without a word of what was said."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.llm_bench import MODEL, PRICE, Bench, question
from support.llm_prefixes import Prefixes
from support.llm_server import LLMServer

from raggs.base.artifacts import Spending
from raggs.base.errors import BusyError, ProviderError
from raggs.base.jsonl import Appender, read_torn
from raggs.llm import LLM, BudgetSettings, BudgetSpent, CallLedger, EmbedRequest, LLMSettings, Price
from raggs.llm.cache import AnswerCache
from raggs.llm.calls import CachedPrefix, prefix_of
from raggs.llm.ledger import LedgerLine, lines_in
from raggs.llm.messages import Answerer

EMBEDDER = "openai/embedder"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "llm.ledger.jsonl"


def lines(path):
    return list(read_torn(path, LedgerLine, "delete it"))


def asked(tmp_path, path, *requests, faults=(), stage="judge", **settings):
    """The usage after one layer has been asked all of it, with a ledger at `path`."""
    ledger = CallLedger(path, stage)
    with LLMServer(faults=faults) as server:
        known = {"api_base": server.url, "backoff_s": 0.001, "prices": {MODEL: PRICE}, **settings}
        llm = LLM(LLMSettings(**known), BudgetSettings(), tmp_path / "llm", ledger)

        Bench(server, tmp_path).run(lambda llm: asyncio.gather(*map(llm.ask, requests)), llm)
    return llm.spent


def test_every_call_has_a_line_and_the_sums_are_the_usage(tmp_path, path):
    requests = [question(text=f"q{number}", qid=f"q{number}") for number in range(6)]
    usage = asked(tmp_path, path, *requests, faults=["grade 7", "500", None, "400"], concurrency=1)
    found = lines(path)
    assert sum(line.attempts for line in found) == usage.calls == 8
    assert sum(line.usd for line in found) == pytest.approx(usage.usd)
    assert sum(line.prompt_tokens for line in found) == usage.prompt_tokens
    assert sorted(line.outcome for line in found) == ["answered"] * 5 + ["failed", "unusable"]
    assert {line.qid for line in found} == {f"q{number}" for number in range(6)}
    assert {(line.stage, line.model, line.task) for line in found} == {("judge", MODEL, "grade")}
    assert all(0 < line.latency_s < 60 for line in found)
    assert max(line.attempts for line in found) == 2


def test_the_same_question_at_once_is_one_call_and_one_saving(tmp_path, path):
    usage = asked(tmp_path, path, question(text="q"), question(text="q"))
    call, saved = lines(path)
    assert (call.outcome, call.attempts, saved.outcome, saved.cached) == ("answered", 1, "cached", 1)
    assert saved.saved_usd == pytest.approx(usage.saved_usd) == pytest.approx(call.usd)


def test_no_text_in_it(tmp_path, path):
    asked(tmp_path, path, question(text="what?", passage="amber brook"))
    assert b"amber" not in path.read_bytes()


def test_a_call_is_booked_where_it_was_asked_though_others_are_asked_meanwhile(path):
    ledger = CallLedger(path, "judge")
    with ledger.call(ledger.account("early"), "m", "grade") as early, early.attempt():
        ledger.turn_to(path, "rank")
        with ledger.call(ledger.account("late"), "m", "order") as late, late.attempt():
            pass
    ledger.close()
    assert [(line.stage, line.qid, line.task) for line in lines(path)] == [
        ("rank", "late", "order"),
        ("judge", "early", "grade"),
    ]


def test_each_request_is_booked_on_its_own_query_whoever_asks(tmp_path, path):
    """One task asks for two queries and for none; nothing of one is left for the next."""
    ledger = CallLedger(path, "study")
    requests = [question(text="a", qid="q1"), question(text="b"), question(text="a", qid="q2")]

    async def in_turn(llm):
        for request in requests:
            await llm.ask(request)
        await llm.embed(EmbedRequest(EMBEDDER, ["text"], dims=8, qid="q3"))

    with LLMServer() as server:
        prices = {MODEL: PRICE, EMBEDDER: PRICE}
        llm = LLM(LLMSettings(api_base=server.url, prices=prices), BudgetSettings(), tmp_path / "llm", ledger)
        Bench(server, tmp_path).run(in_turn, llm)
    assert sorted((line.stage, line.qid, line.task, line.outcome) for line in lines(path)) == [
        ("study", "", "grade", "answered"),
        ("study", "q1", "grade", "answered"),
        ("study", "q2", "grade", "cached"),
        ("study", "q3", "embed", "answered"),
    ]


def test_neighbouring_hits_of_a_query_share_a_line(path):
    ledger = CallLedger(path, "judge")

    def hit(qid, model="m"):
        ledger.hit(ledger.account(qid), model, "grade", 0.25, Answerer(asked=model))

    for qid in ("a", "a", "b", "a"):
        hit(qid)
    hit("a", "other")
    ledger.turn_to(path, "rank")
    hit("a", "other")
    ledger.close()
    found = [(line.stage, line.qid, line.model, line.cached, line.saved_usd) for line in lines(path)]
    assert found == [
        ("judge", "a", "m", 2, 0.5),
        ("judge", "b", "m", 1, 0.25),
        ("judge", "a", "m", 1, 0.25),
        ("judge", "a", "other", 1, 0.25),
        ("rank", "a", "other", 1, 0.25),
    ]


def test_a_torn_last_line_goes_when_the_next_is_written(tmp_path, path):
    asked(tmp_path, path, question(text="a"), question(text="b"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert len(lines(path)) == 1
    asked(tmp_path, path, question(text="c"), stage="rank")
    assert [line.stage for line in lines(path)] == ["judge", "rank"]


@pytest.mark.parametrize("torn", [b"x" * 200_000, b"", b"no line at all"])
def test_only_what_stands_after_the_last_line_break_is_cut(path, torn):
    from raggs.base.jsonl import Appender

    path.write_bytes(b"one\ntwo\n" + torn)
    Appender(path).close()
    assert path.read_bytes() == b"one\ntwo\n"
    path.write_bytes(torn)
    Appender(path).close()
    assert path.read_bytes() == b""


def test_without_a_path_nothing_is_written(tmp_path, path):
    ledger = CallLedger()
    ledger.hit(ledger.account("q"), "m", "grade", 1.0, Answerer(asked="m"))
    with ledger.call(ledger.account("q"), "m", "grade") as trace, trace.attempt():
        pass
    ledger.close()
    assert ledger.spent == Spending(calls=1, cached=1, saved_usd=1.0)
    assert not list(tmp_path.iterdir())


def test_a_call_that_was_never_sent_has_no_line(path):
    ledger = CallLedger(path, "judge")
    with ledger.call(ledger.account("q"), "m", "grade"):
        pass
    ledger.close()
    assert not path.exists()


def test_what_a_provider_remembers_is_booked_and_costs_less(tmp_path, path):
    """The beginning that two questions share, in steps of 128 tokens; nothing of it where nothing was remembered."""
    rules = "Grade what is asked. " * 300
    requests = [question(text=f"{rules} q{number}") for number in range(2)]
    ledger = CallLedger(path, "judge")
    with LLMServer(prefixes=Prefixes()) as server:
        price = Price(input=1.0, output=10.0, cached_input=0.1)
        settings = LLMSettings(api_base=server.url, prices={MODEL: price}, concurrency=1)
        llm = LLM(settings, BudgetSettings(), tmp_path / "llm", ledger)
        Bench(server, tmp_path).run(lambda llm: asyncio.gather(*map(llm.ask, requests)), llm)
        first, second = server.prefixes.seen
    cold, warm = lines(path)
    assert (first.cached, cold.cached_tokens, cold.discount_usd) == (0, 0, 0.0)
    assert second.cached == warm.cached_tokens >= 1024
    assert second.cached % 128 == 0 and second.common - second.cached < 128
    assert warm.usd == pytest.approx(price.usd(warm.prompt_tokens, warm.completion_tokens) - warm.discount_usd)
    assert warm.discount_usd == pytest.approx(0.9e-6 * warm.cached_tokens)
    assert llm.spent.cached_tokens == warm.cached_tokens
    plain, other = path.read_text().splitlines()
    assert "cached_tokens" not in plain and "cached_tokens" in other, "a line without them is as it always was"


@pytest.mark.parametrize(
    ("usage", "cached", "written"),
    [
        ({"prompt_tokens": 2000, "prompt_tokens_details": {"cached_tokens": 1920}}, 1920, 0),
        (
            {"prompt_tokens": 2000, "prompt_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 1500}},
            1000,
            1000,
        ),
        ({"prompt_tokens": 2000, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 1936}, 64, 0),
        ({"prompt_tokens": 20, "prompt_tokens_details": {"cached_tokens": 10**400}}, 0, 0),
        ({"prompt_tokens": 20, "prompt_tokens_details": {"cached_tokens": 30}}, 20, 0),
        ({"prompt_tokens_details": {"cached_tokens": 30}}, 0, 0),
        ({"prompt_tokens": 20, "prompt_tokens_details": None}, 0, 0),
    ],
    ids=str,
)
def test_what_a_provider_says_of_its_cache_is_no_more_than_was_sent(usage, cached, written):
    assert prefix_of(usage) == CachedPrefix(cached, written)


# --- intents ---


def intents_of(path):
    return path.with_name("llm.intents.jsonl")


def killed_in_flight(path, *, usd=0.25, count=2, key=""):
    """A ledger whose process ends without a word while some calls are on their way."""
    ledger = CallLedger(path, "judge")
    with ledger.call(ledger.account("q0"), "m", "grade") as trace:
        trace.intend(0.5)
        with trace.attempt():
            trace.spent += Spending(usd=0.125)
    for number in range(count):
        trace = ledger.call(ledger.account(f"q{number}"), "m", "grade").__enter__()
        if key:
            ledger.intend([trace], [usd], [f"{key}{number}"])
        else:
            trace.intend(usd)
    ledger._book._held.close()  # as the system does when a process ends


def test_a_call_whose_end_a_kill_took_counts_as_spent_once(path):
    killed_in_flight(path)
    assert [line.outcome for line in lines(path)] == ["cancelled"], "nothing of them is in the ledger yet"
    seen = list(lines_in(path))
    assert [(line.outcome, line.attempts, line.usd) for line in seen[1:]] == [("unknown", 1, 0.25)] * 2
    for _ in range(3):
        ledger = CallLedger(path, "judge")
        assert (ledger.earlier.calls, ledger.earlier.usd) == (3, 0.625)
        assert (ledger.unknown.calls, ledger.unknown.usd) == (2, 0.5)
        ledger.close()
    assert [(line.stage, line.qid, line.outcome) for line in lines(path)[1:]] == [
        ("judge", "q0", "unknown"),
        ("judge", "q1", "unknown"),
    ]
    assert not intents_of(path).exists(), "all of them are booked"


def test_lines_of_a_batch_stay_possibly_billed_until_the_batch_has_answered(path):
    killed_in_flight(path, key="answer")
    ledger = CallLedger(path, "judge")
    assert (ledger.earlier.calls, ledger.unknown.calls) == (3, 2)
    with ledger.call(ledger.account("q0"), "m", "grade") as trace:
        trace.fetched("answer0")
        trace.batched(1.0)
    assert (ledger.earlier.calls, ledger.unknown.calls, ledger.spent.calls) == (2, 1, 1)
    ledger.never_sent("answer1")
    assert (ledger.earlier.calls, ledger.unknown.calls) == (1, 0)
    ledger.close()
    assert CallLedger(path).earlier.calls == 2
    assert not intents_of(path).exists()


def test_what_was_never_sent_is_not_possibly_billed(path):
    ledger = CallLedger(path, "judge")
    with ledger.call(ledger.account("q"), "m", "grade") as trace:
        trace.intend(0.25)
        with trace.attempt():
            trace.unsent()
    ledger._book._held.close()
    assert CallLedger(path).earlier == Spending()


def test_a_torn_intent_never_left(path):
    killed_in_flight(path)
    torn = intents_of(path).read_bytes()[:-5]
    intents_of(path).write_bytes(torn)
    assert CallLedger(path).unknown.calls == 1


def test_a_process_that_is_at_work_is_not_taken_for_a_dead_one(path):
    ledger = CallLedger(path, "judge")
    with ledger.call(ledger.account("q"), "m", "grade") as trace:
        trace.intend(0.25)
        with pytest.raises(BusyError, match="another raggs process"):
            CallLedger(path, "judge")
        trace.batched(1.0)
    ledger.close()
    assert CallLedger(path).earlier.calls == 1


def test_calls_that_another_process_booked_in_between_are_earlier_spending(path):
    mine, other = CallLedger(path, "judge"), CallLedger(path, "judge")
    with other.call(other.account("q"), "m", "grade") as trace:
        trace.intend(0.25)
        trace.batched(1.0)
    other.close()
    assert mine.earlier.calls == 0
    with mine.call(mine.account("q"), "m", "grade") as trace:
        trace.intend(0.25)
        assert mine.earlier.calls == 1
        trace.batched(1.0)
    mine.close()


def no_room(monkeypatch, *names):
    """No more line fits into files of these names."""
    extend = Appender.extend

    def full(self, records):
        if Path(self._file.name).name in names:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        extend(self, records)

    monkeypatch.setattr(Appender, "extend", full)


@pytest.mark.parametrize("full", ["llm.intents.jsonl", "llm.ledger.jsonl"])
def test_on_a_full_disk_no_call_leaves_uncounted(tmp_path, path, full, monkeypatch):
    """A call whose intent cannot be written does not leave; one whose line cannot be written is paid all the same."""
    ledger = CallLedger(path, "judge")
    with LLMServer() as server, monkeypatch.context() as patch:
        no_room(patch, full)
        llm = LLM(LLMSettings(api_base=server.url, prices={MODEL: PRICE}), BudgetSettings(), tmp_path / "llm", ledger)
        with pytest.raises(ProviderError, match="No space left on device"):
            Bench(server, tmp_path).run(lambda llm: llm.ask(question()), llm)
        assert server.count == (full == "llm.ledger.jsonl")
    assert CallLedger(path).earlier.calls == server.count


def test_on_a_disk_that_is_nearly_full_no_call_leaves(tmp_path, path, monkeypatch):
    """Its answer could not be stored, and would be paid twice."""
    for free, calls in ((1 << 20, 0), (2 << 20, 1)):
        monkeypatch.setattr("os.statvfs", lambda _, free=free: SimpleNamespace(f_bavail=free, f_frsize=1))
        with LLMServer() as server:
            settings = LLMSettings(api_base=server.url, prices={MODEL: PRICE})
            llm = LLM(settings, BudgetSettings(), tmp_path / "llm", CallLedger(path, "judge"))
            try:
                Bench(server, tmp_path).run(lambda llm: llm.ask(question()), llm)
            except ProviderError as error:
                assert "free some space" in str(error)
            assert server.count == calls


def test_no_call_leaves_after_an_answer_that_could_not_be_stored(tmp_path, path, monkeypatch):
    def full(*_):
        raise ProviderError("the answer cache cannot be used: database or disk is full")

    monkeypatch.setattr(AnswerCache, "put", full)
    with LLMServer(delay_s=0.05) as server:
        settings = LLMSettings(api_base=server.url, prices={MODEL: PRICE}, concurrency=2)
        llm = LLM(settings, BudgetSettings(max_usd=None), tmp_path / "llm", CallLedger(path, "judge"))
        asked = [question(text=f"q{number}") for number in range(12)]
        work = lambda llm: asyncio.gather(*map(llm.ask, asked), return_exceptions=True)  # noqa: E731
        found = Bench(server, tmp_path).run(work, llm)
        assert {type(error) for error in found} == {ProviderError}
        assert server.count == 2 == CallLedger(path).earlier.calls


def test_a_retry_is_a_request_of_its_own(tmp_path, path):
    asked(tmp_path, path, question(), faults=["500", "429:0"], requests_per_minute=None)
    (line,) = lines(path)
    assert (line.attempts, line.intents) == (3, (1, 2, 3))


def test_an_answer_that_was_kept_but_not_booked_is_neither_paid_nor_counted_again(tmp_path, path, monkeypatch):
    with monkeypatch.context() as patch:
        no_room(patch, "llm.ledger.jsonl")
        with pytest.raises(ProviderError):
            asked(tmp_path, path, question())
    usage = asked(tmp_path, path, question())
    assert (usage.calls, usage.cached) == (0, 1), "it was in the cache"
    assert CallLedger(path).earlier.calls == 1


def test_the_end_of_a_budget_says_what_is_possibly_billed(tmp_path, path):
    killed_in_flight(path)
    with LLMServer() as server:
        settings = LLMSettings(api_base=server.url, prices={MODEL: PRICE})
        llm = LLM(settings, BudgetSettings(max_calls=3), tmp_path / "llm", CallLedger(path))
        with pytest.raises(BudgetSpent, match=r"3 of 3 calls made \(2 possibly billed\)"):
            Bench(server, tmp_path).run(lambda llm: llm.ask(question()), llm)
        assert server.count == 0
