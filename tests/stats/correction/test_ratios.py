"""Ratios and whole queries: by hand, what intervals hold, and where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.base.arrays import Floats
from raggs.base.hashing import generator
from raggs.stats.correction import FEWEST_WHOLE, correct, correct_ratio, correct_values, has_enough_values, totals_of

NAN = math.nan
QUERIES = 120


def lot(seed: int, read: int, queries: int = QUERIES) -> Floats:
    """The chances of `read` queries, drawn at random."""
    chance = np.full(queries, NAN)
    chance[generator(seed, "lot").permutation(queries)[:read]] = read / queries
    return chance


def test_all_read_is_the_mean_of_people_whatever_the_judge() -> None:
    people = generator(1, "values").random(QUERIES)
    found = correct_values(1.0 - people, people, np.ones(QUERIES))
    assert found.mean == pytest.approx(people.mean())
    assert (found.informed, found.queries) == (QUERIES, QUERIES)


def test_undefined_queries_do_not_count() -> None:
    """A mean over those that are defined, by people's labels, though the judge says otherwise of some."""
    people = generator(2, "values").random(QUERIES)
    people[:30] = NAN
    judge = people.copy()
    judge[20:40] = np.where(np.isnan(people[20:40]), 0.5, NAN)
    found = correct_values(judge, people, np.ones(QUERIES))
    assert found.mean == pytest.approx(np.nanmean(people))
    some = correct_values(
        judge, np.where(np.arange(QUERIES) % 2, people, NAN), np.where(np.arange(QUERIES) % 2, 0.5, NAN)
    )
    assert some.low < np.nanmean(people) < some.high


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("judge", ["good", "useless", "undefined"])
def test_intervals_hold_what_they_promise(judge: str) -> None:
    """Over 200 worlds of which three in ten queries are read; what is measured need not be a sum over passages."""
    held, width = 0, [0.0, 0.0]
    for seed in range(200):
        rng = generator(seed, "world", judge)
        people = rng.beta(2, 1, QUERIES)
        machine = {"good": np.clip(people + rng.normal(0.1, 0.1, QUERIES), 0, 1)}.get(judge, rng.random(QUERIES))
        if judge == "undefined":
            people[rng.random(QUERIES) < 0.2] = NAN
            machine[rng.random(QUERIES) < 0.2] = NAN
        chance = lot(seed, 36)
        found, alone = (correct_values(machine, people, chance, power=power) for power in (None, 0.0))
        held += found.low <= 2 / 3 <= found.high
        width = [width[0] + found.high - found.low, width[1] + alone.high - alone.low]
    assert 0.91 * 200 <= held <= 0.985 * 200
    assert width[0] < (0.7 if judge == "good" else 1.05) * width[1]


def test_a_ratio_is_that_of_what_people_say() -> None:
    """Found over there, each a sum over passages, of which three in ten are drawn."""
    held = 0
    for seed in range(200):
        rng = generator(seed, "ratio")
        query, top = np.repeat(np.arange(QUERIES), 6), np.tile([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], QUERIES)
        truth = (rng.random(len(query)) < np.where(top, 0.6, 0.2)).astype(float)
        judge = np.where(rng.random(len(query)) < 0.2, 1.0, truth)
        people, chance = np.where(rng.random(len(query)) < 0.3, truth, NAN), np.full(len(query), 0.3)
        above, below = (totals_of(query, w, judge, people, chance, queries=QUERIES) for w in (top, np.ones_like(top)))
        found = correct_ratio(above, below)
        held += found.low <= 0.6 <= found.high
        assert correct_ratio(below, below).mean == pytest.approx(1.0)
    assert 0.91 * 200 <= held <= 0.985 * 200


def test_nothing_to_divide_by_has_no_number() -> None:
    nothing = totals_of([0, 1], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0], queries=2)
    assert math.isnan(correct_ratio(nothing, nothing).mean)


def test_where_too_little_was_read_there_is_no_interval() -> None:
    people = generator(3, "values").random(QUERIES)
    assert math.isnan(correct_values(people, people, lot(1, FEWEST_WHOLE - 1)).low)
    assert not math.isnan(correct_values(people, people, lot(1, FEWEST_WHOLE)).low)
    assert not has_enough_values(np.array([1.0] * 40 + [0.0] * 2)), "a measure near its ceiling needs more"
    assert has_enough_values(np.array([1.0] * 40 + [0.0] * 3))


def test_times_multiplies_the_mean() -> None:
    people = generator(4, "values").random(QUERIES)
    totals = totals_of(range(QUERIES), np.ones(QUERIES), people, people, np.ones(QUERIES), queries=QUERIES)
    assert correct(totals.times(3.0)).mean == pytest.approx(3 * people.mean())
