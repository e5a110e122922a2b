"""The rules in their order, one reason for each system that is not chosen, and the published choices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published import lite_candidates

from raggs.stats.choice import ChoiceLimits, Exclusion, choose, turning_points
from raggs.stats.front import Candidate

FIVE = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4])
systems = st.lists(
    st.builds(
        dict,
        usd_per_1k=st.one_of(st.none(), FIVE),
        latency_ms=st.one_of(st.none(), st.integers(0, 9).map(lambda step: 40.0 * step)),
        quality=st.tuples(FIVE, FIVE),
        k=st.sampled_from([50, 100]),
        tokens=st.sampled_from([300.0, 500.0]),
    ),
    max_size=8,
).map(lambda rows: [Candidate(f"s{place}", **row) for place, row in enumerate(rows)])
limits = st.builds(
    ChoiceLimits,
    latency_ms=st.sampled_from([None, 100.0, 250.0]),
    usd_per_1k=st.sampled_from([None, 0.2]),
    quality=st.sampled_from([None, 0.2]),
)


def system(name, usd, ms, *quality, k=50, tokens=500.0):
    return Candidate(name, usd, ms, quality, k, tokens)


def reasons(choice):
    return {each.name: each.reason for each in choice.excluded}


@pytest.mark.parametrize("slo", [350.0, 500.0])
@pytest.mark.parametrize("jitter", [0.0, 75.0])
def test_the_published_choices(slo, jitter):
    choice = choose(lite_candidates(), ChoiceLimits(latency_ms=slo), jitter)
    assert choice.winner.name == "voyage-3.5 512d K=50"
    assert len(choice.excluded) == 19


def test_a_limit_is_held_before_dominance():
    """The better one dominates within the jitter, but is not allowed."""
    candidates = [system("slow", 1, 360, 0.9), system("fast", 1, 340, 0.5)]
    choice = choose(candidates, ChoiceLimits(latency_ms=350))
    assert choice.winner.name == "fast" and choice.runner_up is None
    assert choice.excluded == (Exclusion("slow", "latency", value=360, bound=350),)
    assert choose(candidates).winner.name == "slow"


def test_each_other_system_has_the_rule_that_put_it_aside():
    choice = choose(
        [
            system("best", 2, 300, 0.8),
            system("dear", 4, 300, 0.9),
            system("slow", 1, 600, 0.9),
            system("unpriced", None, 300, 0.9),
            system("untimed", 1, None, 0.9),
            system("beaten", 3, 300, 0.7),
            system("cheap", 1, 300, 0.6),
        ],
        ChoiceLimits(latency_ms=500, usd_per_1k=3),
    )
    assert choice.winner.name == "best" and choice.rule == "best quality"
    assert reasons(choice) == {
        "dear": "cost",
        "slow": "latency",
        "unpriced": "cost unknown",
        "untimed": "latency unknown",
        "beaten": "dominated",
        "cheap": "quality",
    }
    assert choice.excluded[-1] == Exclusion("cheap", "quality", by="best", value=0.6, bound=0.8)
    assert choice.runner_up.name == "beaten", "the winner gone, nobody dominates it"


def test_a_target_is_reached_fast_then_cheap():
    candidates = [
        system("best", 3, 400, 0.9),
        system("fastest", 2, 100, 0.8),
        system("cheaper", 1, 170, 0.76),
        system("cheapest", 0.5, 180, 0.75),
        system("below", 0.1, 10, 0.6),
    ]
    choice = choose(candidates, ChoiceLimits(quality=0.7))
    assert choice.winner.name == "cheaper" and choice.rule == "target reached"
    assert reasons(choice) == {"best": "slower", "fastest": "dearer", "cheapest": "slower", "below": "target"}
    assert choose(candidates, ChoiceLimits(quality=0.7), jitter_ms=0).winner.name == "fastest"
    assert choose(candidates, ChoiceLimits(quality=0.95)).winner is None


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"k": 100}, "larger k"),
        ({"tokens": 501.0}, "more tokens"),
        ({"usd_per_1k": 0.5, "latency_ms": 200.0}, "less efficient"),
        ({}, "name"),
    ],
)
def test_ties_go_by_k_then_tokens_then_efficiency(other, reason):
    first = system("a", 1, 100, 0.5)
    second = replace(first, name="b", **{"usd_per_1k": 0.5, "latency_ms": 200.0, **other})
    if reason == "name":
        second = replace(first, name="b")
    choice = choose([second, first])
    assert choice.winner.name == "a" and reasons(choice) == {"b": reason}


def test_rounding_is_no_difference():
    choice = choose([system("large", 1, 100, 0.1 + 0.2, k=100), system("small", 1, 100, 0.3)])
    assert choice.winner.name == "small"


@given(systems, limits, st.randoms())
def test_a_choice_holds_the_limits_and_accounts_for_all(candidates, asked, random):
    choice = choose(candidates, asked)
    assert {each.name for each in choice.excluded} | ({choice.winner.name} if choice.winner else set()) == {
        each.name for each in candidates
    }
    again = choose(random.sample(candidates, len(candidates)), asked)
    assert (again.winner, again.runner_up, reasons(again)) == (choice.winner, choice.runner_up, reasons(choice))
    if choice.winner is None:
        assert not any(each.reason == "dominated" for each in choice.excluded)
        return
    assert choice.winner.name in choice.front.names
    assert asked.latency_ms is None or choice.winner.latency_ms <= asked.latency_ms
    assert asked.usd_per_1k is None or choice.winner.usd_per_1k <= asked.usd_per_1k
    if asked.quality is None:
        broken = {"latency", "latency unknown", "cost", "cost unknown"}
        kept = [each for each in candidates if reasons(choice).get(each.name) not in broken]
        assert choice.winner.quality[0] == max(each.quality[0] for each in kept)


@given(systems)
def test_turning_points_are_the_choices_at_their_limits(candidates):
    single = [replace(each, quality=each.quality[:1]) for each in candidates]
    turns = turning_points(single, "latency")
    scores = {each.name: each.quality[0] for each in candidates}
    for turn in turns:
        winner = choose(single, ChoiceLimits(latency_ms=turn.limit), jitter_ms=0).winner
        assert winner.quality[0] == scores[turn.winner]
    assert [turn.limit for turn in turns] == sorted({turn.limit for turn in turns})


def test_turning_points_of_the_published_rows():
    turns = turning_points(lite_candidates(), "latency")
    assert [(turn.limit, turn.winner) for turn in turns] == [
        (339.5, "voyage-3.5 512d K=50"),
        (537.3, "voyage-3-large 1024d K=150"),
    ]
    assert [turn.limit for turn in turning_points(lite_candidates(), "cost")] == [0.5, 1.5]


def test_turning_points_hold_the_limit_on_the_other_axis():
    kept = [system("a", 1, 100, 0.5), system("c", 2, 300, 0.7)]
    candidates = [*kept, system("b", 9, 200, 0.9), system("d", None, 50, 1.0)]
    assert [turn.winner for turn in turning_points(candidates, "latency")] == ["d"]
    within = turning_points(candidates, "latency", ChoiceLimits(usd_per_1k=5, latency_ms=1))
    assert [(turn.limit, turn.winner) for turn in within] == [(100, "a"), (300, "c")]
    assert [turn.winner for turn in turning_points(candidates, "cost", ChoiceLimits(latency_ms=150))] == ["a"]


@pytest.mark.parametrize("bad", [{"latency_ms": -1}, {"usd_per_1k": float("nan")}, {"quality": float("inf")}])
def test_limits_are_numbers(bad):
    with pytest.raises(ValueError, match="the limit on"):
        ChoiceLimits(**bad)
