"""Texts of options, read or refused with what to write instead."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import UsageError
from raggs.cli.eval_options import finite, parse_cutoffs, parse_gains, parse_limit, parse_scale, parse_ties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ndcg@10=0.55", ("ndcg@10", 0.55)),
        ("nDCG@10 = .5", ("ndcg@10", 0.5)),
        ("P(rel=2)@10=1e-2", ("precision(rel=2)@10", 0.01)),
        ("E[RR]=1", ("E[mrr]", 1.0)),
        ("bias[mrr]=-0.1", ("bias[mrr]", -0.1)),
    ],
)
def test_limits_are_read(text, expected):
    assert parse_limit(text) == expected


@pytest.mark.parametrize(
    "text", ["ndcg@10", "ndcg@10=", "=0.5", "ndcg@10=nan", "ndcg@10=inf", "ndcg@10=1_0", "x=1", "P(rel=2)@10"]
)
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(UsageError):
        parse_limit(text)


@given(st.lists(st.integers(1, 10**9 - 1)))
def test_cutoffs_are_sorted_and_stand_once(cutoffs):
    assert parse_cutoffs(" , ".join(map(str, cutoffs))) == tuple(sorted(set(cutoffs)))


@pytest.mark.parametrize("text", ["0", "5,-1", "ten", "1.5", "1" * 10, "５"])
def test_what_is_no_cutoff_is_refused(text):
    with pytest.raises(UsageError, match="is not a cutoff"):
        parse_cutoffs(text)


@pytest.mark.parametrize(("text", "ends"), [("1-5", (1, 5)), (" 0 .. 3 ", (0, 3)), ("5-1", (5, 1))])
def test_scales_are_read_whether_or_not_they_make_sense(text, ends):
    assert parse_scale(text) == ends


@pytest.mark.parametrize("text", ["5", "1-", "-1-5", "0-9999", "a-b", "1-5-9"])
def test_what_is_no_scale_is_refused(text):
    with pytest.raises(UsageError, match="is not a scale"):
        parse_scale(text)


def test_gains_are_read_by_grade():
    assert parse_gains("5=4,4=2.5,") == {5: 4.0, 4: 2.5}
    assert parse_gains("") == {}


@pytest.mark.parametrize("text", ["5", "5=much", "high=4", "=4", "4.5=1"])
def test_what_is_no_gain_is_refused(text):
    with pytest.raises(UsageError, match="is not of the form grade=gain"):
        parse_gains(text)


def test_ties_are_broken_in_one_of_two_ways():
    assert (parse_ties("trec"), parse_ties("file")) == ("trec", "file")
    with pytest.raises(UsageError, match="trec or file"):
        parse_ties("random")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_is_finite(value):
    assert finite("--x", 0.5) == 0.5
    with pytest.raises(UsageError, match="--x must be a finite number"):
        finite("--x", value)
