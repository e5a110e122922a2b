"""Figures in sentences: a limit that is typed as it is printed gives what the sentence says."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from support.sweeping import make_sweep

from raggs.stats.choice import LimitTurn, choose
from raggs.stats.front import Candidate
from raggs.sweeps.messages import choice_sentence, equal_names, ms, ms_change, other_limit_sentences, puts_first, usd

LIMITS = ((0.2237, 0.8961, 3.14, 12.4, 99.6), (0.2161, 0.2189), (0.0, 0.004, 0.0512), (499.6, 500.2), (0.33333, 1.255))


@pytest.mark.parametrize("axis", ["latency", "cost"])
@pytest.mark.parametrize("limits", LIMITS)
def test_a_limit_that_is_typed_as_printed_gives_what_was_said(axis: str, limits: tuple[float, ...]) -> None:
    points = [LimitTurn(limit, f"system-{at}") for at, limit in enumerate(limits)]
    said = other_limit_sentences(points, (), axis, None)
    ends = dict(pairwise(limits))
    for point, sentence in zip(points[-len(said) :], said, strict=True):
        start, *end = (
            float(found)
            for found in re.findall(
                r"[\d.]*\d", sentence.partition(" limit is ")[2].partition(" per ")[0].partition(" (")[0]
            )
        )
        assert point.limit <= start
        assert start < ends.get(point.limit, float("inf"))
        assert all(start < each <= ends[point.limit] for each in end)
        assert sentence.endswith(f"(no {'cost' if axis == 'latency' else 'p95'} limit): {point.winner}.")


def test_ranges_narrower_than_one_shown_step_are_omitted() -> None:
    points = [LimitTurn(0.316946, "a"), LimitTurn(0.319732, "b")]
    assert other_limit_sentences(points, ("b",), "cost", 2.0) == []
    wider = [LimitTurn(0.30, "a"), LimitTurn(0.35, "b")]
    assert other_limit_sentences(wider, ("b",), "cost", 2.0, {"a": "a or c"}) == [
        "If the cost limit is between $0.30 and $0.35 per 1,000 queries (p95 limit unchanged): a or c."
    ]


def test_equal_systems_have_one_name() -> None:
    found = equal_names([("h+k20+none", 1), ("h+k50+none", 1), ("x", 2), ("y", 2), ("z", 3)])
    assert found == {"h+k20+none": "h+none, k20 or k50", "h+k50+none": "h+none, k20 or k50",
                     "x": "x or y", "y": "x or y", "z": "z"}  # fmt: skip


def test_figures_keep_two_digits_where_they_are_small() -> None:
    assert (ms(0.3), ms(0.0432), ms(1.04), ms(9.96), ms(1234.5)) == (
        "0.3 ms",
        "0.043 ms",
        "1.0 ms",
        "10 ms",
        "1,234 ms",
    )
    assert (usd(0), usd(0.00037), usd(2.5)) == ("$0.00", "$0.00037", "$2.50")
    assert (ms_change(-0.022), ms_change(0), ms_change(12)) == ("-0.022 ms", "0 ms", "+12 ms")


def test_equals_are_told_with_what_puts_the_choice_first() -> None:
    alike = [Candidate(name, 1.0, 100.0, (0.5,), 10, 200.0) for name in ("b", "a", "c")]
    chosen = choose(alike)
    told = "Only its name puts a before b, c: same score on every query, same price."
    assert puts_first(chosen, ("b", "c"), 75) == [told]
    assert choice_sentence(chosen, 3, "ndcg@10", None, ("b", "c")).startswith(
        "Recommended: a or b, c, with the same score on every query (ndcg@10 0.500"
    )
    assert choice_sentence(chosen, 3, "ndcg@10", None).startswith("Recommended: a (ndcg@10 0.500")
    open_ = choice_sentence(chosen, 3, "ndcg@10", None, separated=False)
    assert open_.startswith("No single best configuration. The selection rules choose a (ndcg@10 0.500")
    assert puts_first(chosen, (), 75) == puts_first(choose([]), ("b",), 75) == []
    sooner = choose([*alike, Candidate("z", 1.0, 90.0, (0.5,), 10, 200.0)])
    said = "Only a latency shorter by less than 75 ms puts z before a: same score on every query, same price."
    assert puts_first(sooner, ("a",), 75) == [said]


def test_a_sweep_of_equals_calls_none_of_them_the_winner_alone(tmp_path: Path) -> None:
    """Queries without noise: the rewriter `clean` leaves them as they are. The other k differs by its own rule."""
    made = make_sweep(tmp_path, axes={"mode": "lexical", "k": [10, 20], "rewrite": ["none", "clean"]})
    report = made.sweep().report
    choice = report.choice
    first, other = sorted(("lexical+none+k10", "lexical+clean+k10"), key=lambda name: name != choice.winner)
    assert choice.sentence.startswith(f"Recommended: {first} or {other}, with the same score on every query (")
    assert choice.unknown[0].startswith(f"{first} or an identical system is chosen in 100% of ")
    assert f" puts {first} before {other}: same score on every query" in choice.unknown[1]
    page = (made.out / "sweep.md").read_text(encoding="utf-8")
    assert all(sentence in page for sentence in (choice.sentence, *choice.unknown))
