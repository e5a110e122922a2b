"""The budget: what is promised and spent never exceeds the cap."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Spending
from raggs.base.errors import BudgetError
from raggs.llm import BudgetSettings
from raggs.llm.budget import Budget, BudgetCap, BudgetSpent, Cost, Reservation


def budget(max_usd=None, max_calls=None):
    return Budget(BudgetSettings(max_usd=max_usd, max_calls=max_calls))


def test_the_sentence_names_spent_cap_and_remedy():
    async def main():
        book = budget(max_usd=1)
        book.settle(await book.reserve(Cost(0.75)), 0.5)
        await book.reserve(Cost(0.75))

    with pytest.raises(BudgetError) as caught:
        asyncio.run(main())
    assert caught.value.exit_code == 7
    assert str(caught.value) == (
        "the budget is used up: 0.5000 of 1.0000 USD spent, the next call may cost 0.7500"
        " — raise budget.max_usd and run again: paid answers are cached"
    )


def test_a_call_waits_for_room_while_others_are_in_flight():
    async def main():
        book = budget(max_usd=1)
        first = await book.reserve(Cost(0.6))
        second = asyncio.ensure_future(book.reserve(Cost(0.6)))
        await asyncio.sleep(0)
        assert not second.done()
        book.settle(first, 0.1)
        await second

    asyncio.run(main())


def test_calls_are_counted_also_while_waiting_for_money():
    async def main():
        book = budget(max_usd=1, max_calls=2)
        first = await book.reserve(Cost(0.6))
        waiting = [asyncio.ensure_future(book.reserve(Cost(0.6))) for _ in range(2)]
        await asyncio.sleep(0)
        book.settle(first, 0.1)
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(main())] == [Reservation, BudgetSpent]


@pytest.mark.parametrize(("max_usd", "max_calls"), [(0, None), (None, 0)])
def test_nothing_is_allowed_by_zero(max_usd, max_calls):
    with pytest.raises(BudgetError):
        asyncio.run(budget(max_usd, max_calls).reserve(Cost(0.01)))


def test_what_costs_nothing_needs_no_money():
    asyncio.run(budget(max_usd=0).reserve(Cost(0.0)))


def test_without_caps_everything_fits():
    async def main():
        book = budget()
        for _ in range(100):
            await book.reserve(Cost(1e6))

    asyncio.run(main())


@given(
    cap=st.floats(0, 10),
    calls=st.lists(st.tuples(st.floats(0.001, 2), st.floats(0, 1), st.integers(0, 3)), max_size=25),
)
def test_spent_and_promised_stay_within_the_cap(cap, calls):
    """Each call: what it reserves, the part of it that it costs, and how long it takes."""

    async def main():
        book, spent, peak = budget(max_usd=cap), 0.0, 0.0
        promised = 0.0

        async def call(reserved, part, turns):
            nonlocal spent, promised, peak
            found = await book.reserve(Cost(reserved))
            promised += reserved
            peak = max(peak, spent + promised)
            for _ in range(turns):
                await asyncio.sleep(0)
            promised -= reserved
            spent += reserved * part
            book.settle(found, reserved * part)

        outcomes = await asyncio.wait_for(asyncio.gather(*(call(*each) for each in calls), return_exceptions=True), 60)
        assert peak <= cap + 1e-6
        assert all(outcome is None or isinstance(outcome, BudgetError) for outcome in outcomes)
        stopped = [reserved for (reserved, *_), outcome in zip(calls, outcomes, strict=True) if outcome]
        assert all(spent + reserved > cap - 1e-6 for reserved in stopped), "stopped while there was room"

    asyncio.run(main())


def test_what_the_run_spent_before_counts_against_its_caps_alone():
    earlier = Spending(calls=3, usd=0.9)

    async def main(**caps):
        await Budget(BudgetSettings(**{"max_usd": None, "max_calls": None, **caps}), lambda: earlier).reserve(Cost(0.2))

    for caps in ({"max_usd": 1}, {"max_calls": 3}):
        with pytest.raises(BudgetSpent):
            asyncio.run(main(**caps))
    for caps in ({"max_usd": 1.1}, {"max_calls": 4}, {"max_usd_per_invocation": 0.2, "max_calls_per_invocation": 1}):
        asyncio.run(main(**caps))


@pytest.mark.parametrize("cap", ["max_usd_per_invocation", "max_calls_per_invocation"])
def test_an_invocation_has_caps_of_its_own(cap):
    with pytest.raises(BudgetSpent, match="the budget is used up") as caught:
        asyncio.run(Budget(BudgetSettings(**{cap: 0})).reserve(Cost(0.1)))
    assert (caught.value.cap.setting, caught.value.cap.per_invocation) == (cap, True)


def test_a_closed_budget_lets_nothing_through_that_would_still_fit():
    book, why = budget(max_usd=1), BudgetError("it has ended")
    book.check_open()
    book.close(why)
    for ask in (book.check_open, lambda: asyncio.run(book.reserve(Cost(0.0)))):
        with pytest.raises(BudgetError) as caught:
            ask()
        assert caught.value is why


@pytest.mark.parametrize(
    ("setting", "limit", "now", "binds"),
    [
        ("max_usd", 5.0, {"max_usd": 5.0}, True),
        ("max_usd", 5.0, {"max_usd": 4.0}, True),
        ("max_usd", 5.0, {"max_usd": 5.01}, False),
        ("max_usd", 5.0, {"max_usd": None}, False),
        ("max_calls", 70, {"max_calls": 70}, True),
        ("max_calls", 70, {"max_calls": 71, "max_usd": 1.0}, False),
        ("max_usd_per_invocation", 5.0, {"max_usd_per_invocation": 5.0}, False),
    ],
)
def test_a_cap_that_was_reached_binds_until_it_is_raised(setting, limit, now, binds):
    assert BudgetCap(setting, limit, limit).binds(BudgetSettings.model_validate(now)) is binds


def test_what_a_budget_affords_is_told_by_the_dearest_model():
    async def main():
        book = budget(max_usd=1.0, max_calls=50)
        assert book.affords() == 0, "nobody knows what a call costs"
        for model, usd in (("cheap", 0.01), ("dear", 0.1), ("dear", 0.3)):
            book.settle(await book.reserve(Cost(usd), model), usd)
        assert book.affords() == pytest.approx((1.0 - 0.41) / 0.2)
        await book.reserve(Cost(0.19), "dear")
        assert book.affords() == pytest.approx(0.4 / 0.2), "what is promised is not there"

    asyncio.run(main())
    assert budget(max_calls=7).affords() == 7
    assert budget().affords() == float("inf")


def test_an_answer_may_be_as_long_as_the_money_pays_for():
    async def main():
        book = budget(max_usd=1.0)
        cost = Cost(sent=0.1, token=0.01, enough=10, wanted=40)
        first, second = await book.reserve(cost), await book.reserve(cost)
        assert (first.tokens, first.usd) == (40, pytest.approx(0.5))
        assert (second.tokens, second.usd) == (40, pytest.approx(0.5))
        waiting = asyncio.ensure_future(book.reserve(cost))
        await asyncio.sleep(0)
        assert not waiting.done(), "fewer calls are in flight as the budget shrinks"
        book.settle(first, 0.3)
        third = await waiting
        assert (third.tokens, third.usd) == (10, pytest.approx(0.2)), "shorter, rather than not at all"
        book.settle(second, 0.5)
        book.settle(third, 0.2)
        with pytest.raises(BudgetSpent, match=r"the next call may cost 0\.2000"):
            await book.reserve(cost)

    asyncio.run(main())


def test_money_set_aside_for_long_answers_is_still_affordable():
    """How many calls there is money for is told by what calls cost, not by what they could cost at most."""

    async def main():
        book = budget(max_usd=1.0)
        book.settle(await book.reserve(Cost(0.1), "m"), 0.1)
        await book.reserve(Cost(sent=0.1, token=0.01, enough=0, wanted=80), "m")
        assert book.affords() == pytest.approx(8)

    asyncio.run(main())


def test_a_call_that_never_left_is_not_counted():
    async def main():
        book = budget(max_calls=1)
        book.settle(await book.reserve(Cost(0.1)), 0.0, sent=False)
        await book.reserve(Cost(0.1))

    asyncio.run(main())
