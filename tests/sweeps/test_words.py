"""Figures in sentences: a limit that is typed as it is printed gives what the sentence says."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from raggs.decision.choice import Turn, choose
from raggs.decision.front import Candidate
from raggs.sweeps.words import ms, ms_change, only_by_name, turns, usd

LIMITS = ((0.2237, 0.8961, 3.14, 12.4, 99.6), (0.2161, 0.2189), (0.0, 0.004, 0.0512), (499.6, 500.2), (0.33333, 1.255))


@pytest.mark.parametrize("axis", ["latency", "cost"])
@pytest.mark.parametrize("limits", LIMITS)
def test_a_limit_that_is_typed_as_printed_gives_what_was_said(axis: str, limits: tuple[float, ...]) -> None:
    points = [Turn(limit, f"system-{at}") for at, limit in enumerate(limits)]
    said = turns(points, (), axis, None)
    ends = dict(pairwise(limits))
    for point, sentence in zip(points[-len(said) :], said, strict=True):
        start, *end = (
            float(found) for found in re.findall(r"[\d.]*\d", sentence.partition(" per ")[0].partition(" and ")[0])
        )
        assert point.limit <= start
        assert start < ends.get(point.limit, float("inf"))
        assert all(start < each <= ends[point.limit] for each in end)
        assert sentence.endswith(f"and no other limit: {point.winner}")


def test_figures_keep_two_digits_where_they_are_small() -> None:
    assert (ms(0.3), ms(0.0432), ms(9.96), ms(1234.5)) == ("0.3 ms", "0.043 ms", "10 ms", "1,234 ms")
    assert (usd(0), usd(0.00037), usd(2.5)) == ("$0.00", "$0.00037", "$2.50")
    assert (ms_change(-0.022), ms_change(0), ms_change(12)) == ("-0.022 ms", "0 ms", "+12 ms")


def test_a_system_that_wins_by_its_name_alone_is_told_as_such() -> None:
    alike = [Candidate(name, 1.0, 100.0, (0.5,), 10, 200.0) for name in ("b", "a", "c")]
    assert only_by_name(choose(alike)) == ["Only its name puts a before b, c: the same by all that was measured."]
    assert only_by_name(choose([*alike[:1], Candidate("z", 1.0, 100.0, (0.6,), 10, 200.0)])) == []
    assert only_by_name(choose([])) == []
