"""The client as a whole, against a server that misbehaves."""

from __future__ import annotations

import asyncio
import json
import logging
import time

import pytest
from support.llm_bench import MODEL, PRICE, question, until
from support.llm_server import KEY, LLMServer

from raggs.base.artifacts import Spending
from raggs.base.errors import AuthenticationError, BudgetError, ConfigError, ProviderError
from raggs.base.jsonl import read_torn
from raggs.llm import LLM, BudgetSettings, BudgetSpent, CallLedger, LLMSettings, Price
from raggs.llm.ledger import LedgerLine

OTHER = "hosted_vllm/m"  # asked through litellm
CHECKED = ["grade 7", "grade text", "grade float", "grade true", "no grade", "prose", "empty", "refusal", "filtered"]
PASSING = ["429", "500", "502", "503", "reset", "garbage", "html", "cut body", "list body"]


def test_asks_once_and_remembers(bench):
    with bench(truth=lambda query, passage: len(passage)) as b:
        first, second = b.llm(), b.llm()
        assert b.run(lambda llm: llm.ask(question(passage="four")), first).value == 4
        assert b.run(lambda llm: llm.ask(question(passage="four")), second).value == 4
        assert b.server.count == 1
        assert (first.spent.calls, first.spent.cached) == (1, 0)
        assert (second.spent.calls, second.spent.cached, second.spent.usd) == (0, 1, 0.0)
        assert second.spent.saved_usd == first.spent.usd > 0


def test_sends_the_schema_and_the_parameters(bench):
    with bench() as b:
        llm = b.llm(parameters={"temperature": 0.5, "top_p": 0.9}, max_usd=None)
        b.run(lambda llm: llm.ask(question(parameters={"temperature": 0})), llm)
        sent = b.server.requests[0]
    assert sent["temperature"] == 0
    assert sent["top_p"] == 0.9
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"] == {
        "name": "grade",
        "strict": True,
        "schema": {"type": "object", "properties": {"grade": {"type": "integer"}}},
    }
    assert "max_tokens" not in sent


@pytest.mark.parametrize(
    "change",
    [
        {"sample": 1},
        {"parameters": {"temperature": 0.1}},
        {"schema": {"type": "object"}},
        {"text": "who?"},
        {"model": "openai/other-model"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_question_is_asked_anew(bench, change):
    with bench() as b:
        prices = {MODEL: Price(input=1, output=1), "openai/other-model": Price(input=1, output=1)}
        for request in (question(), question(**change), question()):
            b.run(lambda llm, request=request: llm.ask(request), prices=prices)
        assert b.server.count == 2


def test_settings_that_change_no_answer_are_not_in_the_key(bench):
    with bench() as b:
        b.run(lambda llm: llm.ask(question()))
        b.run(
            lambda llm: llm.ask(question()),
            concurrency=1,
            timeout_s=1,
            max_attempts=1,
            requests_per_minute=10,
            max_usd=None,
        )
        assert b.server.count == 1


def test_another_address_is_no_other_model_unless_its_id_says_so(bench, monkeypatch):
    with bench() as b:
        monkeypatch.setenv("OPENAI_BASE_URL", b.server.url)
        b.run(lambda llm: llm.ask(question()), api_base=None)
        monkeypatch.setenv("OPENAI_BASE_URL", b.server.url + "/")
        b.run(lambda llm: llm.ask(question()), api_base=None)
        b.run(lambda llm: llm.ask(question()))
        assert b.server.count == 1
        for _ in range(2):
            b.run(lambda llm: llm.ask(question()), models={MODEL: {"model_id": "the other server's"}})
        assert b.server.count == 2


def test_each_model_has_its_own_server_key_price_and_parameters(bench, monkeypatch, tmp_path):
    monkeypatch.setenv("OTHER_KEY", "sk-other-0123456789")
    with bench() as b, LLMServer(faults=["401"]) as other:
        other.echo_keys = True
        models = {
            "openai/other": {
                "api_base": other.url,
                "api_key_env": "OTHER_KEY",
                "prices": {"input": 0, "output": 0},
                "parameters": {"seed": 7},
            }
        }
        asked = question(model="openai/other")
        with pytest.raises(AuthenticationError, match="set OTHER_KEY to a valid key") as caught:
            b.run(lambda llm: llm.ask(asked), models=models)
        assert "sk-other" not in str(caught.value)
        llm = b.llm(models=models, parameters={"temperature": 0}, max_usd=1)
        b.run(lambda llm: asyncio.gather(llm.ask(asked), llm.ask(question())), llm)
        assert (b.server.count, other.count) == (1, 2)
        assert (other.requests[1]["seed"], other.requests[1]["temperature"]) == (7, 0)
        assert "seed" not in b.server.requests[0]
        assert other.requests[1]["model"] == "other"


def test_a_model_may_have_slots_of_its_own(bench):
    async def work(llm):
        await asyncio.gather(*(llm.ask(question(text=str(n))) for n in range(6)))

    with bench(delay_s=0.05) as b:
        b.run(work, models={MODEL: {"concurrency": 2}})
        assert b.server.peak == 2


def test_the_same_question_at_once_is_sent_once(bench):
    with bench(delay_s=0.05) as b:
        llm = b.llm()
        replies = b.run(lambda llm: asyncio.gather(*(llm.ask(question()) for _ in range(8))), llm)
        assert len({reply.value for reply in replies}) == 1
        assert b.server.count == 1
        assert (llm.spent.calls, llm.spent.cached) == (1, 7)


def test_a_call_whose_asker_is_cancelled_goes_on_and_serves_the_next(bench):
    with bench(delay_s=1.0) as b:

        async def work(llm):
            first = asyncio.ensure_future(llm.ask(question()))
            await until(lambda: b.server.count == 1)
            second = asyncio.ensure_future(llm.ask(question()))
            await asyncio.sleep(0.05)
            first.cancel()
            reply = await second
            assert first.cancelled()
            return reply

        assert b.run(work).error is None
        assert b.server.count == 1


def started(llm, *texts):
    return [asyncio.ensure_future(llm.ask(question(text=text))) for text in texts]


def test_another_asker_takes_over_when_the_first_is_cancelled_before_its_turn(bench):
    with bench(delay_s=1.0) as b:

        async def work(llm):
            ahead, first, second = started(llm, "ahead", "q", "q")
            await until(lambda: b.server.count == 1)
            first.cancel()
            await ahead
            return await second

        assert b.run(work, concurrency=1).error is None
        assert b.server.count == 2


@pytest.mark.parametrize("waiting_for", ["a slot", "the rate", "a repair", "a retry"])
def test_closing_starts_no_more_calls(bench, waiting_for):
    faults = {"a repair": "prose", "a retry": "500"}
    settings = {"the rate": {"requests_per_minute": 1}, "a slot": {"concurrency": 2}}.get(waiting_for, {})
    begun = {"the rate": 1, "a slot": 2}.get(waiting_for, 12)
    with bench(delay_s=1.0, fault_for=lambda *_: faults.get(waiting_for)) as b:

        async def work(llm):
            started(llm, *(f"q{number}" for number in range(12)))
            await until(lambda: b.server.count == begun)

        llm = b.llm(max_usd=None, **{"concurrency": 12, **settings})
        began = time.monotonic()
        b.run(work, llm)
        assert b.server.count == llm.spent.calls == begun
        assert time.monotonic() - began < 30, "a turn of the rate comes after a minute"


def test_closing_waits_for_calls_on_their_way_and_keeps_their_answers(bench):
    async def leave(llm):
        asker = asyncio.ensure_future(llm.ask(question()))
        await asyncio.sleep(0.05)
        asker.cancel()
        await asyncio.gather(asker, return_exceptions=True)
        await llm.close()

    with bench(delay_s=0.2) as b:
        b.run(leave)
        assert b.run(lambda llm: llm.ask(question())).error is None
        assert b.server.count == 1


def test_works_in_one_loop_after_another(bench):
    with bench() as b:
        llm = b.llm()
        for number in range(3):
            assert asyncio.run(llm.ask(question(text=f"q{number}"))).error is None
        asyncio.run(llm.close())
        assert b.server.count == 3


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("model", [MODEL, OTHER])
@pytest.mark.parametrize("fault", [*CHECKED, "truncated", "no choices"])
def test_an_unusable_answer_is_asked_for_again(bench, fault, model):
    with bench(faults=[fault]) as b:
        llm = b.llm()
        reply = b.run(lambda llm: llm.ask(question(model=model)), llm)
        assert reply.error is None
        assert reply.value in range(1, 6)
        assert b.server.count == 2
        assert (llm.spent.calls, llm.spent.repaired) == (2, 1)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("fault", CHECKED)
def test_an_answer_that_stays_unusable_is_a_failure_and_not_kept(bench, fault):
    with bench(fault_for=lambda n, _: fault if n <= 3 else None) as b:
        llm = b.llm()
        reply = b.run(lambda llm: llm.ask(question()), llm)
        assert reply.value is None
        assert reply.error.startswith("the answer cannot be used: ")
        assert b.server.count == 3
        assert llm.spent.repaired == 0
        assert b.run(lambda llm: llm.ask(question())).value is not None


@pytest.mark.parametrize(
    ("fault", "phrase"), [("quote", '"grade" must be a whole number from 1 to 5'), ("empty", "it is empty")]
)
def test_a_correction_tells_what_is_wrong_and_repeats_nothing_of_the_answer(bench, fault, phrase):
    with bench(faults=[fault]) as b:
        b.run(lambda llm: llm.ask(question(passage="a quotable passage")))
        first, second = (request["messages"] for request in b.server.requests)
    assert second[: len(first)] == first
    (asked,) = second[len(first) :]
    assert asked["role"] == "user"
    assert phrase in asked["content"]
    assert "quotable" not in asked["content"]


def test_a_truncated_answer_gets_more_room_each_time(bench):
    with bench(faults=["truncated", "truncated"]) as b:
        b.run(lambda llm: llm.ask(question(max_output_tokens=50)), max_usd=None)
        first, second, third = b.server.requests
    assert first["messages"] == second["messages"] == third["messages"]
    assert "max_tokens" not in first
    assert second["max_tokens"] == 200


def test_more_room_goes_by_the_name_the_user_chose(bench):
    with bench(faults=["truncated"]) as b:
        b.run(lambda llm: llm.ask(question(max_output_tokens=50, parameters={"max_completion_tokens": 10})))
        assert b.server.requests[0]["max_completion_tokens"] == 10
        assert b.server.requests[1]["max_completion_tokens"] == 200


def test_the_raw_answer_of_a_failure_is_told(bench):
    with bench(fault_for=lambda *_: "prose") as b:
        assert b.run(lambda llm: llm.ask(question())).raw == "I would say four."


def test_no_repairs_when_none_are_wanted(bench):
    with bench(faults=["prose"]) as b:
        assert b.run(lambda llm: llm.ask(question()), max_repairs=0).error
        assert b.server.count == 1


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("model", [MODEL, OTHER])
@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_is_retried(bench, fault, model):
    with bench(faults=[fault, fault]) as b:
        llm = b.llm()
        assert b.run(lambda llm: llm.ask(question(model=model)), llm).error is None
        assert b.server.count == 3
        assert (llm.spent.calls, llm.spent.repaired) == (3, 0)


def test_a_slow_answer_is_given_up_and_retried(bench):
    with bench(faults=["slow:60"]) as b:
        began = time.monotonic()
        assert b.run(lambda llm: llm.ask(question()), timeout_s=0.5).error is None
        assert time.monotonic() - began < 30
        assert b.server.count >= 2


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("fault", PASSING)
def test_exhausted_retries_are_a_failure_of_one_question(bench, fault):
    with bench(fault_for=lambda n, _: fault if n <= 2 else None) as b:
        llm = b.llm(max_attempts=2)
        reply = b.run(lambda llm: llm.ask(question()), llm)
        assert reply.value is None
        assert "provider" in reply.error
        assert KEY not in reply.error
        assert b.server.count == 2
        assert b.run(lambda llm: llm.ask(question())).error is None, "the failure was kept"


def test_nobody_there(bench):
    with bench() as b:
        reply = b.run(lambda llm: llm.ask(question()), api_base="http://127.0.0.1:9/v1", max_attempts=2)
        assert "Cannot connect" in reply.error


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("model", [MODEL, OTHER])
@pytest.mark.parametrize(("fault", "least"), [("429:0.2", 0.2), ("503:0.2", 0.2), ("429:date", 0.0)])
def test_retry_after_is_honoured(bench, fault, least, model):
    with bench(faults=[fault]) as b:
        assert b.run(lambda llm: llm.ask(question(model=model))).error is None
        first, second = b.server.times
        assert least <= second - first < least + 20


@pytest.mark.parametrize("after", ["3600", "1" + "0" * 20, "day"])
def test_a_provider_that_wants_an_hour_ends_the_run_and_says_until_when(bench, after):
    with bench(faults=[f"429:{after}"]) as b:
        with pytest.raises(ProviderError, match=r"for another (60 min, until 2|24 h, until 2|age)") as caught:
            b.run(lambda llm: llm.ask(question()))
        assert "llm.max_wait_s" in str(caught.value)
        assert caught.value.exit_code == 6
        assert b.server.count == 1


def test_headers_that_leave_nothing_for_a_day_end_the_run_and_what_is_done_is_kept(bench):
    day = {"x-ratelimit-remaining-tokens": "1", "x-ratelimit-reset-tokens": "24h0m0s"}

    async def work(llm):
        first = await llm.ask(question(text="first"))
        await llm.ask(question(text="second", passage="long " * 5000))
        return first

    with bench(headers_for=lambda _: day) as b:
        with pytest.raises(ProviderError, match=r"for another \d+ (min|h), until 2"):
            b.run(work)
        assert b.run(lambda llm: llm.ask(question(text="first")), max_calls=0).error is None


def test_the_longest_pause_is_a_setting(bench):
    with bench(faults=["429:2"]) as b:
        settings = LLMSettings(api_base=b.server.url, prices={MODEL: Price(input=1, output=1)}, max_wait_s=1)
        llm = LLM(settings, BudgetSettings(), b.folder / "llm")
        with pytest.raises(ProviderError, match="another 2 s"):
            b.run(lambda llm: llm.ask(question()), llm)


def test_calls_without_a_key_are_not_counted(bench, monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_API_KEY")
    path = tmp_path / "ledger.jsonl"
    with bench() as b:
        llm = LLM(LLMSettings(api_base=b.server.url), BudgetSettings(max_usd=None), None, CallLedger(path, "judge"))
        with pytest.raises(AuthenticationError):
            b.run(lambda llm: asyncio.gather(*(llm.ask(question(text=str(n))) for n in range(8))), llm)
        assert (llm.spent.calls, b.server.count, list(read_torn(path, LedgerLine, ""))) == (0, 0, [])


def test_damaged_entries_of_the_cache_are_a_miss_told_and_counted(bench):
    told, asked = [], [question(text=str(n)) for n in range(6)]
    good = {"raw": '{"grade": 4}', "model": "m", "prompt_tokens": 1, "completion_tokens": 1, "usd": 0.5}
    wrong = [{"usd": float("nan")}, {"usd": -1}, {"usd": float("inf")}, {"prompt_tokens": -1}, {"usd": 10**400}]
    rows = [*(json.dumps({**good, **each}) for each in wrong), "[" * 100_000]
    with bench() as b:
        llm = LLM(b.llm().settings, BudgetSettings(), b.folder / "llm", tell=told.append)
        for request, row in zip(asked, rows, strict=True):
            llm._cache._cache.set(llm._key(request, {}), row)
        b.run(lambda llm: asyncio.gather(*map(llm.ask, asked)), llm)
        assert b.server.count == 6
        assert told == [f"6 damaged entries in the answer cache ({b.folder / 'llm'}): requested and paid for again"]
        assert llm.spent.saved_usd == 0


@pytest.mark.parametrize("fault", ["400", "context", "policy"])
def test_a_rejected_request_is_a_failure_at_once(bench, fault):
    with bench(faults=[fault]) as b:
        reply = b.run(lambda llm: llm.ask(question()))
        assert reply.value is None
        assert reply.error
        assert b.server.count == 1


@pytest.mark.parametrize(
    ("fault", "error", "named"),
    [
        ("401", AuthenticationError, "OPENAI_API_KEY"),
        ("403", AuthenticationError, "OPENAI_API_KEY"),
        ("404", ConfigError, MODEL),
        ("quota", ProviderError, "credit"),
    ],
)
def test_what_every_question_would_meet_stops_the_run(bench, fault, error, named):
    with bench(fault_for=lambda *_: fault) as b:
        with pytest.raises(error, match=named) as caught:
            b.run(lambda llm: llm.ask(question()))
        assert b.server.count == 1
        assert "sk-te" not in str(caught.value)


def test_all_who_wait_for_one_answer_hear_why_it_does_not_come(bench):
    async def work(llm):
        return await asyncio.gather(*(llm.ask(question()) for _ in range(4)), return_exceptions=True)

    with bench(fault_for=lambda *_: "401", delay_s=0.05) as b:
        assert [type(error) for error in b.run(work)] == [AuthenticationError] * 4
        assert b.server.count == 1


def test_a_missing_key_is_named(bench, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with bench() as b, pytest.raises(AuthenticationError, match=r"openai/test-model needs a key.*set OPENAI_API_KEY"):
        b.run(lambda llm: llm.ask(question()))


def test_a_missing_key_of_another_provider_is_named(bench, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with bench() as b, pytest.raises(AuthenticationError, match="set ANTHROPIC_API_KEY"):
        b.run(lambda llm: llm.ask(question(model="anthropic/claude-sonnet-4-5")))


def test_a_model_without_a_provider_is_refused(bench):
    with bench() as b, pytest.raises(ConfigError, match="provider/model"):
        b.run(lambda llm: llm.ask(question(model="nonsense")), max_usd=None)


@pytest.mark.parametrize("model", [MODEL, "hosted_vllm/m"])
def test_a_parameter_that_the_model_does_not_take_is_refused(bench, model):
    with bench(fault_for=lambda *_: "no parameter") as b:
        with pytest.raises(ConfigError, match="does not accept one of its parameters"):
            b.run(lambda llm: llm.ask(question(model=model, parameters={"temperature": 0.3})))
        assert b.server.count == 1


def test_an_unknown_parameter_is_left_to_litellm(bench):
    with bench() as b:
        b.run(lambda llm: llm.ask(question(parameters={"extra_body": {"guided": True}})))
        assert b.server.requests[0]["guided"] is True


def test_a_server_without_structured_output_is_asked_without_it(bench):
    def fault_for(_, body):
        return "no schema" if "response_format" in body else None

    with bench(fault_for=fault_for) as b:
        llm = b.llm()

        async def work(llm):
            return [await llm.ask(question(text=f"q{number}")) for number in range(3)]

        assert all(reply.error is None for reply in b.run(work, llm))
        assert b.server.count == 4, "it asks for structured output once only"


def test_concurrency_is_kept(bench):
    with bench(delay_s=0.02) as b:
        b.run(lambda llm: asyncio.gather(*(llm.ask(question(text=f"q{n}")) for n in range(20))), concurrency=3)
        assert b.server.peak == 3


def test_the_budget_in_calls_stops_before_the_call(bench):
    async def work(llm):
        found = await asyncio.gather(*(llm.ask(question(text=f"q{n}")) for n in range(10)), return_exceptions=True)
        return [outcome for outcome in found if isinstance(outcome, BudgetError)]

    with bench(delay_s=0.01) as b:
        stopped = b.run(work, max_calls=4)
        assert b.server.count == 4
        assert len(stopped) == 6
        assert "raise budget.max_calls and run again" in str(stopped[0])
        b.run(work, max_calls=6)
        assert b.server.count == 10, "the second invocation starts from what was paid"


def test_the_budget_in_money_is_not_overdrawn_by_calls_in_flight(bench):
    async def work(llm):
        found = await asyncio.gather(*(llm.ask(question(text=f"q{n}")) for n in range(40)), return_exceptions=True)
        return [outcome for outcome in found if isinstance(outcome, BudgetError)]

    with bench(delay_s=0.005) as b:
        llm = b.llm(max_usd=0.006)  # a call reserves 0.003 and costs 0.00014
        stopped = b.run(work, llm)
        assert stopped
        assert "raise budget.max_usd and run again: paid answers are cached" in str(stopped[0])
        assert llm.spent.usd <= 0.006
        assert llm.spent.usd > 0.0025, "calls that cost less than reserved make room for more"
        rest = b.llm(max_usd=1)
        assert b.run(work, rest) == []
        assert b.server.count == 40


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"max_usd": None, "max_usd_per_invocation": 1},
            r"cannot enforce budget\.max_usd_per_invocation: .* or budget",
        ),
        (
            {"max_usd_per_invocation": 1},
            r"cannot enforce budget\.max_usd and budget\.max_usd_per_invocation: .*null and",
        ),
    ],
)
def test_the_limits_that_need_a_price_are_named(limits, said):
    llm = LLM(LLMSettings(), BudgetSettings(**limits), None)
    with pytest.raises(ConfigError, match=said):
        llm.require_price("openai/nobody-knows")


def test_an_unknown_price_is_refused_while_money_is_limited(bench):
    request = question(model="openai/nobody-knows")
    with bench() as b:
        with pytest.raises(ConfigError, match=r"openai/nobody-knows.*llm\.prices.*budget\.max_usd: null"):
            b.run(lambda llm: llm.ask(request))
        assert b.server.count == 0
        llm = b.llm(max_usd=None)
        assert b.run(lambda llm: llm.ask(request), llm).error is None
        assert llm.spent.usd == 0


def test_a_cached_answer_needs_no_price_no_key_and_no_budget(bench, monkeypatch):
    with bench() as b:
        b.run(lambda llm: llm.ask(question()))
        monkeypatch.delenv("OPENAI_API_KEY")
        assert b.run(lambda llm: llm.ask(question()), prices={}, max_calls=0, max_usd=0).error is None


def test_a_cached_answer_is_checked_again(bench):
    def stricter(answer):
        if answer["grade"] != 5:
            raise ValueError("must be 5")
        return 5

    grades = iter([3, 5])
    with bench(truth=lambda *_: next(grades)) as b:
        assert b.run(lambda llm: llm.ask(question())).value == 3
        assert b.run(lambda llm: llm.ask(question(check=stricter))).value == 5
        assert b.run(lambda llm: llm.ask(question(check=stricter))).value == 5
        assert b.server.count == 2


def test_tokens_are_estimated_where_the_server_does_not_count(bench):
    with bench(count_tokens=False) as b:
        llm = b.llm()
        b.run(lambda llm: llm.ask(question()), llm)
        assert llm.spent.prompt_tokens > 10
        assert llm.spent.completion_tokens > 5
        assert llm.spent.usd > 0


def test_without_a_cache_everything_is_asked(bench):
    with bench() as b:
        for _ in range(2):
            b.run(lambda llm: llm.ask(question()), cached=False)
        assert b.server.count == 2
        assert not list(b.folder.iterdir())


def test_no_key_in_the_cache_the_log_or_on_the_terminal(bench, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with bench(faults=["401", "500", "grade 7"]) as b:
        for number in range(3):
            try:
                b.run(lambda llm, number=number: llm.ask(question(text=f"q{number}")), max_attempts=1)
            except AuthenticationError:
                continue
        stored = b"".join(path.read_bytes() for path in b.folder.rglob("*") if path.is_file())
    out, err = capfd.readouterr()
    assert len(stored) > 1000
    assert KEY.encode() not in stored
    assert KEY not in caplog.text + out + err
    assert "LiteLLM" not in caplog.text
    assert not out
    assert not err


def test_building_touches_nothing(tmp_path):
    llm = LLM(LLMSettings(), BudgetSettings(), tmp_path / "llm")
    assert llm.spent == Spending()
    assert llm.price("openai/gpt-5-mini")
    assert not list(tmp_path.iterdir())
    asyncio.run(llm.close())


def test_a_limited_server_is_asked_no_faster_than_it_allows(bench):
    """Thirty calls a second, by a window of the last one; a refusal tells when there is room again."""
    accepted = []

    def fault_for(*_):
        now = time.monotonic()
        recent = [moment for moment in accepted if moment > now - 1]
        if len(recent) < 30:
            accepted.append(now)
            return None
        return f"429:{recent[0] + 1 - now:.3f}"

    with bench(fault_for=fault_for) as b:
        began = time.monotonic()
        replies = b.run(
            lambda llm: asyncio.gather(*(llm.ask(question(text=f"q{n}")) for n in range(120))), concurrency=32
        )
        assert all(reply.error is None for reply in replies)
        assert b.server.count - 120 < 60, "calls that were refused"
        assert 2.9 <= time.monotonic() - began < 60


def test_headers_of_answers_slow_calls_down(bench):
    def headers_for(number):
        return {"X-RateLimit-Remaining-Requests": str(max(0, 10 - number)), "X-RateLimit-Reset-Requests": "500ms"}

    with bench(headers_for=headers_for) as b:
        b.run(lambda llm: asyncio.gather(*(llm.ask(question(text=f"q{n}")) for n in range(12))), concurrency=2)
        assert b.server.times[11] - b.server.times[9] >= 0.45


def test_one_models_pause_does_not_stop_another(bench):
    def fault_for(number, body):
        return "429:1" if number == 1 else None

    async def work(llm):
        slow = asyncio.ensure_future(llm.ask(question()))
        await asyncio.sleep(0.3)
        await llm.ask(question(model="openai/other-model"))
        await slow

    prices = {MODEL: Price(input=1, output=1), "openai/other-model": Price(input=1, output=1)}
    with bench(fault_for=fault_for) as b:
        b.run(work, prices=prices)
        assert [body["model"] for body in b.server.requests] == ["test-model", "other-model", "test-model"]
        assert b.server.times[-1] - b.server.times[0] >= 1


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("model", [MODEL, OTHER])
@pytest.mark.parametrize("fault", ["200:500", "200:429", "deep body"])
def test_an_error_under_the_status_of_a_success_is_tried_again_and_costs_nothing(bench, fault, model):
    with bench(faults=[fault]) as b:
        llm = b.llm(prices={MODEL: Price(input=1, output=1), OTHER: Price(input=1, output=1)})
        reply = b.run(lambda llm: llm.ask(question(model=model)), llm)
        assert (reply.error, b.server.count) == (None, 2)
        assert (llm.spent.calls, llm.spent.repaired) == (2, 0)
        assert llm.spent.completion_tokens < 30


def test_an_error_under_the_status_of_a_success_may_stop_the_run(bench):
    with bench(faults=["200:quota"]) as b, pytest.raises(ProviderError, match="no credit left"):
        b.run(lambda llm: llm.ask(question()))


@pytest.mark.parametrize("model", [MODEL, OTHER])
def test_counts_that_cannot_be_are_estimated(bench, model):
    with bench(faults=["huge usage"]) as b:
        llm = b.llm()
        assert b.run(lambda llm: llm.ask(question(model=model)), llm).error is None
        assert 0 < llm.spent.completion_tokens < 100


def test_a_key_may_end_with_a_line_break_but_hold_none(bench, monkeypatch):
    with bench() as b:
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        assert b.run(lambda llm: llm.ask(question())).error is None
        for key in ("sk-first-012345\nsk-second-012345", "sk-\u00e4\u00f6\u00fc-0123456789"):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            with pytest.raises(AuthenticationError, match="characters that no key has") as caught:
                b.run(lambda llm: llm.ask(question(text="other")))
            assert "0123" not in str(caught.value)
        monkeypatch.setenv("OPENAI_API_KEY", "\n")
        with pytest.raises(AuthenticationError, match="needs a key, which is not set"):
            b.run(lambda llm: llm.ask(question(text="blank")))


def test_hidden_reasoning_does_not_break_a_cap(bench):
    """16 questions at once to a model that thinks for 20,000 tokens before each answer, under a cap of 5 USD."""

    async def work(llm):
        return await asyncio.gather(*(llm.ask(question(text=str(n))) for n in range(16)), return_exceptions=True)

    with bench(fault_for=lambda *_: "hidden") as b:
        llm = b.llm(prices={MODEL: Price(input=0, output=100.0)}, concurrency=16)
        found = b.run(work, llm)
        assert llm.spent.usd <= 5
        assert llm.spent.calls == 2, "of 2 USD each, and a third would not fit"
        assert [type(reply) for reply in found].count(BudgetSpent) == 14


def test_under_a_cap_the_first_call_goes_alone_and_each_end_lets_two_more_go(bench):
    async def work(llm):
        await asyncio.gather(*(llm.ask(question(text=str(n))) for n in range(14)))

    for caps, peak in (({}, 4), ({"max_usd": None}, 14)):
        with bench(delay_s=0.2) as b:
            b.run(work, concurrency=14, cached=False, **caps)
            assert b.server.times[1] - b.server.times[0] > 0.15 or caps
            assert b.server.peak >= peak


def test_a_call_that_times_out_is_booked_at_its_likely_price_each_time(bench, tmp_path):
    with bench(faults=["slow:60", "slow:60"]) as b:
        ledger = CallLedger(tmp_path / "ledger.jsonl", "judge")
        settings = LLMSettings(
            api_base=b.server.url, prices={MODEL: Price(input=1, output=1)}, timeout_s=1, backoff_s=0.001
        )
        llm = LLM(settings, BudgetSettings(), None, ledger)
        assert b.run(lambda llm: llm.ask(question()), llm).error is None
        (line,) = read_torn(tmp_path / "ledger.jsonl", LedgerLine, "")
        assert (line.attempts, line.outcome) == (3, "answered")
        assert 0 < line.perhaps_usd < line.usd
        assert line.perhaps_usd > 2 * 300e-6, "twice the length that an answer may have"
        assert llm.spent.usd == pytest.approx(line.usd)


def test_a_call_that_is_stopped_while_it_connects_is_not_booked(bench, busy_port, monkeypatch):
    monkeypatch.setattr("raggs.llm.client.GRACE_S", 0.05)

    for address, calls in ((f"http://127.0.0.1:{busy_port}/v1", 0), (None, 1)):
        with bench(faults=["slow:60"]) as b:

            async def stop(llm, server=b.server, sent=calls):
                asker = asyncio.ensure_future(llm.ask(question()))
                await asyncio.sleep(0.3)
                await until(lambda: server.count == sent)
                await llm.close()
                await asyncio.gather(asker, return_exceptions=True)

            settings = LLMSettings(api_base=address or b.server.url, prices={MODEL: Price(input=1, output=1)})
            llm = LLM(settings, BudgetSettings(), None)
            b.run(stop, llm)
            assert llm.spent.calls == calls
            assert (llm.spent.usd > 0) is bool(calls)


def test_what_no_server_was_sent_is_not_booked(bench):
    with bench() as b:
        gone = b.server.url
    llm = LLM(
        LLMSettings(api_base=gone, prices={MODEL: Price(input=1, output=1)}, backoff_s=0.001), BudgetSettings(), None
    )
    assert "cannot be reached: Cannot connect" in str(b.run(lambda llm: llm.ask(question()), llm).error)
    assert (llm.spent.calls, llm.spent.usd) == (0, 0)


# --- limits of answers, where USD are limited ---

DEAR = Price(input=0, output=100.0)  # 1,000 tokens for 0.10 USD


def ask_all(count, **changes):
    async def work(llm):
        asked = (llm.ask(question(text=str(number), **changes)) for number in range(count))
        return await asyncio.gather(*asked, return_exceptions=True)

    return work


@pytest.mark.parametrize("length", [20, 2_000, 40_000])
def test_a_cap_holds_for_answers_of_any_length(bench, length):
    """16 calls in flight to a model whose answers become longer after 30 of them, up to 2,000 times."""
    with bench() as b:
        b.server.hidden_for = lambda _: length if b.server.count > 30 else 0
        llm = b.llm(max_usd=1.0, prices={MODEL: DEAR}, concurrency=16)
        found = b.run(ask_all(60, max_output_tokens=40), llm)
        assert llm.spent.usd <= 1
        ended = [reply for reply in found if isinstance(reply, BudgetSpent)]
        assert len(ended) == sum(isinstance(reply, Exception) for reply in found)
        assert all(reply.error is None for reply in found if not isinstance(reply, Exception)), "none of them failed"
        assert bool(ended) is (length > 20)


def test_an_answer_that_was_cut_for_want_of_money_is_asked_for_again_as_long_as_there_is_some(bench):
    with bench() as b:
        b.server.hidden_for = lambda _: 1_500
        llm = b.llm(max_usd=1.0, prices={MODEL: DEAR}, max_repairs=0)
        assert b.run(lambda llm: llm.ask(question(max_output_tokens=100)), llm).error is None
        assert [body["max_tokens"] for body in b.server.requests] == [400, 6_400]
        assert [len(body["messages"]) for body in b.server.requests] == [1, 1], "it is not told of a mistake"
        poor = b.llm(max_usd=0.05, prices={MODEL: DEAR}, cached=False)
        with pytest.raises(BudgetSpent):
            b.run(lambda llm: llm.ask(question(max_output_tokens=100)), poor)
        assert 0 < poor.spent.usd <= 0.05


def test_a_limit_of_the_user_is_lowered_where_the_money_ends(bench):
    with bench() as b:
        for max_usd, limit in ((5.0, 20_000), (0.5, 4_999)):
            llm = b.llm(max_usd=max_usd, prices={MODEL: DEAR}, cached=False)
            b.run(lambda llm: llm.ask(question(parameters={"max_tokens": 20_000})), llm)
            assert b.server.requests[-1]["max_tokens"] == limit


def test_the_limit_of_an_answer_is_no_part_of_its_key(bench):
    with bench() as b:
        for max_usd in (5.0, None, 0.5):
            b.run(lambda llm: llm.ask(question()), b.llm(max_usd=max_usd))
        assert b.server.count == 1


@pytest.mark.parametrize("model", [MODEL, OTHER])
@pytest.mark.parametrize("names", [("max_tokens",), ("max_tokens", "max_completion_tokens")], ids=len)
def test_a_server_that_takes_no_limit_of_that_name_is_asked_without_it(bench, model, names):
    tried = [*names, "" if len(names) > 1 else "max_completion_tokens"]
    with bench(fault_for=lambda _, body: "no limit" if set(names) & body.keys() else None) as b:
        llm = b.llm(prices={model: PRICE}, cached=False, concurrency=1)
        assert all(reply.error is None for reply in b.run(ask_all(8, model=model), llm))
        sent = [next((name for name in tried if name in body), "") for body in b.server.requests]
        assert sent[: len(tried)] == tried
        assert sent[-2:] == tried[-1:] * 2, "it is not tried again and again"
        assert llm.spent.calls == b.server.count, "what was refused was sent as well"


def test_a_server_that_ignores_the_limit_exceeds_the_cap_by_what_is_in_flight(bench):
    with bench(delay_s=0.05) as b:
        b.server.honours_limit = False
        b.server.hidden_for = lambda _: 9_000 if b.server.count > 10 else 0
        llm = b.llm(max_usd=1.0, prices={MODEL: DEAR}, concurrency=4)
        b.run(ask_all(40, max_output_tokens=40), llm)
        assert llm.spent.usd <= 1 + 4 * 0.91
