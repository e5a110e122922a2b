"""A provider that is gone stops the run; one that fails now and then does not."""

from __future__ import annotations

import asyncio

import pytest
from support.llm_bench import MODEL, PRICE, question

from raggs.base.errors import AuthenticationError, DataError, ProviderError
from raggs.llm import LLM, BatchSettings, BudgetSettings, EmbedRequest, LLMSettings
from raggs.llm.faults import Fault, FaultRule, Outage, Treatment


def fault(treatment=Treatment.RETRY, error=ProviderError):
    return Fault(FaultRule(treatment, error, "down"), error("it is down"))


def watched(outage, problem=None):
    """The fault that comes out of a call which ends with `problem`."""
    try:
        with outage.watch():
            if problem is not None:
                raise problem
    except Fault as found:
        return found
    return None


def test_failures_in_a_row_are_an_outage():
    outage = Outage(3)
    first = fault()
    assert watched(outage, first) is first
    assert watched(outage, fault()).treatment is Treatment.RETRY
    last = watched(outage, fault())
    assert last.treatment is Treatment.STOP
    assert isinstance(last.error, ProviderError)
    assert "3 calls in a row" in str(last.error)
    assert "run again" in str(last.error)


@pytest.mark.parametrize("sign", [None, fault(Treatment.FAIL, DataError), fault(Treatment.STOP, AuthenticationError)])
def test_any_sign_of_life_begins_the_count_anew(sign):
    outage = Outage(2)
    assert watched(outage, fault()).treatment is Treatment.RETRY
    assert watched(outage, sign) is sign
    assert watched(outage, fault()).treatment is Treatment.RETRY


def test_without_a_limit_there_is_no_outage():
    outage = Outage(None)
    assert {watched(outage, fault()).treatment for _ in range(100)} == {Treatment.RETRY}


def ask_all(llm, count, **changes):
    return asyncio.gather(*(llm.ask(question(text=str(number), **changes)) for number in range(count)))


def test_a_run_of_questions_stops_soon_and_loses_nothing(bench):
    gone = False
    with bench(fault_for=lambda *_: "500" if gone else None) as b:
        b.run(lambda llm: ask_all(llm, 5))
        gone = True
        with pytest.raises(ProviderError, match="does not answer: 4 calls in a row"):
            b.run(lambda llm: ask_all(llm, 50), max_attempts=2, outage_after=4, concurrency=1)
        sent = b.server.count
        assert sent <= 5 + 4 * 2 + 2, "one more may be on its way when the run stops"
        gone = False
        b.run(lambda llm: ask_all(llm, 50))
        assert b.server.count == sent + 45


def test_a_provider_that_is_gone_is_noticed_beside_one_that_answers(bench):
    other = "openai/another"
    with bench(fault_for=lambda _, body: "500" if body["model"] == "another" else None) as b:

        async def in_turn(llm):
            for number in range(9):
                await llm.ask(question(text=str(number)))
                await llm.ask(question(text=str(number), model=other))

        llm = b.llm(max_attempts=1, outage_after=3, prices={MODEL: PRICE, other: PRICE})
        with pytest.raises(ProviderError, match="does not answer: 3 calls in a row"):
            b.run(in_turn, llm)
        assert b.server.count == 6


def test_embeddings_count(bench):
    with bench(fault_for=lambda *_: "500") as b:

        async def twice(llm):
            request = EmbedRequest(MODEL, ["text"], dims=8)
            with pytest.raises(ProviderError, match="the provider failed"):
                await llm.embed(request)
            with pytest.raises(ProviderError, match="does not answer: 2 calls in a row"):
                await llm.embed(request)

        b.run(twice, max_attempts=1, outage_after=2)


def test_batches_count(bench):
    with bench(fault_for=lambda *_: "500") as b:
        settings = LLMSettings(
            api_base=b.server.url, prices={MODEL: PRICE}, outage_after=4, timeout_s=20, backoff_s=0.001
        )
        batch = BatchSettings(poll_s=0.02, rounds=1)
        llm = LLM(settings, BudgetSettings(), b.folder / "llm", batch=batch)
        with pytest.raises(ProviderError, match="does not answer: 4 calls in a row"):
            b.run(lambda llm: ask_all(llm, 6, patient=True), llm)
