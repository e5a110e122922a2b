"""Spending adds up, and what lies between two moments is their difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Spending
from raggs.runs.manifests.costs import LedgerSum

COUNT = st.integers(0, 10**9)
MONEY = st.integers(0, 2**40).map(lambda part: part / 2**10)  # exact in binary, so that sums are
SPENDING = st.builds(Spending, calls=COUNT, cached=COUNT, prompt_tokens=COUNT, usd=MONEY, saved_usd=MONEY)


@given(SPENDING, SPENDING)
def test_what_was_added_can_be_taken_away(one: Spending, other: Spending) -> None:
    assert one + other == other + one
    assert one + other - other == one
    assert one + Spending() == one - Spending() == one


def test_every_field_counts() -> None:
    ones = Spending(**dict.fromkeys(Spending.model_fields, 1))
    assert (ones + ones).model_dump() == dict.fromkeys(Spending.model_fields, 2)
    assert ones - ones == Spending()


def test_a_sum_with_more_fields_stays_one() -> None:
    two = LedgerSum(calls=1, answered=1, seconds=0.5) + LedgerSum(calls=2, failed=1, seconds=1.5)
    assert two == LedgerSum(calls=3, answered=1, failed=1, seconds=2.0)
    assert two.mean_s == 1.0


def test_the_lock_holds_the_fields_that_it_always_held() -> None:
    assert list(Spending().model_dump()) == [
        "calls",
        "cached",
        "prompt_tokens",
        "completion_tokens",
        "usd",
        "saved_usd",
        "repaired",
    ]
