"""Corrected means: by hand, against an independent implementation, and by what intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.hashing import generator
from raggs.stats.correction import QueryTotals, are_chances_implausible, correct, totals_of

NAN = math.nan


def of_units(truth: Floats, judge: Floats, drawn: Flags, chance: float) -> QueryTotals:
    """A passage a query, each of weight 1."""
    people, rows = np.where(drawn, truth, NAN), np.arange(len(truth))
    return totals_of(rows, np.ones(len(truth)), judge, people, np.full(len(truth), chance), queries=len(truth))


def world(
    seed: int, queries: int = 200, each: int = 4, chance: float = 0.3, *, even: bool = False
) -> tuple[Ints, Floats, Floats, Floats]:
    """Passages of queries: their queries, people's labels, the judge's, and people's of those that were drawn."""
    rng = generator(seed, "world")
    query = np.repeat(np.arange(queries), each)
    truth = (rng.random(queries * each) < (0.5 if even else np.repeat(rng.random(queries), each))).astype(float)
    judge = np.where(rng.random(queries * each) < 0.2, 1.0 - truth, truth)
    return query, truth, judge, np.where(rng.random(queries * each) < chance, truth, NAN)


def test_by_hand() -> None:
    """Two queries of two passages, weights a half: one passage is drawn with chance a quarter, and the judge erred."""
    found = totals_of([0, 0, 1, 1], [0.5] * 4, [1, 1, 0, 1], [0, NAN, NAN, NAN], [0.25, NAN, NAN, NAN], queries=3)
    assert found.judge.tolist() == [1.0, 0.5, 0.0]
    assert found.people.tolist() == [0.0, 0.0, 0.0]
    assert found.judge_drawn.tolist() == [2.0, 0.0, 0.0]
    assert found.weight.tolist() == [1.0, 1.0, 0.0]
    assert found.weight_drawn.tolist() == [2.0, 0.0, 0.0]
    assert found.drawn.tolist() == [1, 0, 0]


def test_all_drawn_is_the_mean_of_peoples_labels_whatever_the_judge() -> None:
    _, truth, _, _ = world(1)
    found = correct(of_units(truth, 1.0 - truth, np.ones(len(truth), bool), 1.0))
    assert found.mean == pytest.approx(truth.mean())
    half = 1.9629 * truth.std(ddof=1) / math.sqrt(len(truth))
    assert found.high - found.mean == pytest.approx(half, rel=5e-3)


def test_a_perfect_judge_is_relied_on() -> None:
    query, truth, _, people = world(2)
    totals = totals_of(query, np.full(len(truth), 0.25), truth, people, np.full(len(truth), 0.3), queries=200)
    found = correct(totals)
    assert found.power == pytest.approx(1.0)
    assert found.mean == pytest.approx(truth.mean(), abs=0.01)


def test_a_judge_of_one_word_gets_no_power_and_costs_nothing() -> None:
    query, truth, _, people = world(3)
    totals = totals_of(query, np.full(len(truth), 0.25), np.ones(len(truth)), people, np.full(800, 0.3), queries=200)
    found, alone = correct(totals), correct(totals, power=0.0)
    assert found.mean == pytest.approx(alone.mean)
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.01)


def test_a_useful_judge_narrows_the_interval() -> None:
    query, truth, _, people = world(4, even=True)
    judge = np.where(np.arange(len(truth)) % 20 == 7, 1.0 - truth, truth)
    totals = totals_of(query, np.full(len(truth), 0.25), judge, people, np.full(len(truth), 0.3), queries=200)
    found, alone = correct(totals), correct(totals, power=0.0)
    assert 0 < found.power < 1
    assert found.high - found.low < 0.8 * (alone.high - alone.low)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("error", [0.0, 0.25, 0.5])
def test_intervals_hold_what_they_promise(error: float) -> None:
    """Over 300 worlds, whatever the judge: right, wrong on a quarter (always upwards), no better than a coin."""
    held = 0
    for seed in range(300):
        query, truth, _, people = world(seed, queries=80)
        rng = generator(seed, "judge")
        judge = np.where(rng.random(len(truth)) < error, rng.random(len(truth)) < 0.75, truth).astype(float)
        totals = totals_of(query, np.full(len(truth), 0.25), judge, people, np.full(len(truth), 0.3), queries=80)
        found = correct(totals)
        held += found.low <= 0.5 <= found.high
    assert 0.92 * 300 <= held <= 0.98 * 300


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0])
def test_the_mean_is_that_of_ppi_python(power: float) -> None:
    """A draw of a fifth of the passages, each of its own query: there both are one formula."""
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    rng = generator(5, "ppi")
    truth = rng.random(400)
    judge = np.clip(truth + rng.normal(0.1, 0.3, 400), 0, 1)
    drawn = np.zeros(400, bool)
    drawn[rng.permutation(400)[:80]] = True
    theirs = ppi.ppi_mean_pointestimate(truth[drawn], judge[drawn], judge, lam=power)
    assert correct(of_units(truth, judge, drawn, 0.2), power=power).mean == pytest.approx(float(theirs.item()))


def test_the_formula_of_ppi_plus_plus() -> None:
    """The same without the package: power times the judge's mean, and the mean of what is left on those drawn."""
    rng = generator(6, "ppi")
    truth, judge = rng.random(300), rng.random(300)
    drawn = np.arange(300) % 5 == 0
    expected = 0.7 * judge.mean() + (truth[drawn] - 0.7 * judge[drawn]).mean()
    assert correct(of_units(truth, judge, drawn, 0.2), power=0.7).mean == pytest.approx(expected)


def test_differences_are_paired() -> None:
    """Two lists of the same passages differ by what one of them has more, and by nothing else."""
    query, truth, judge, people = world(7)
    chance = np.full(len(truth), 0.3)
    first = totals_of(query, np.full(len(truth), 0.25), judge, people, chance, queries=200)
    nothing = correct(first - first)
    assert (nothing.mean, nothing.low, nothing.high) == (0.0, 0.0, 0.0)
    fewer = np.where(np.arange(len(truth)) % 4 == 3, 0.0, 0.25)
    second = totals_of(query, fewer, judge, people, chance, queries=200)
    found, truly = correct(first - second), 0.25 * truth[3::4].mean()
    assert found.low < truly < found.high
    assert found.high - found.low < correct(first).high - correct(first).low


def test_few_queries_have_no_interval() -> None:
    people = [1.0] * 9 + [NAN] * 31
    found = correct(totals_of(range(40), [1.0] * 40, [1.0] * 40, people, [0.5] * 40, queries=40))
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.informed, found.drawn, found.queries) == (9, 9, 40)
    assert math.isnan(correct(totals_of([], [], [], [], [], queries=0)).mean)


def test_an_unfinished_draw_is_noticed() -> None:
    query, truth, judge, people = world(8)
    weight = np.full(len(truth), 0.25)
    assert not are_chances_implausible(totals_of(query, weight, judge, people, np.full(len(truth), 0.3), queries=200))
    half = np.where(np.arange(len(truth)) < 400, people, NAN)
    assert are_chances_implausible(totals_of(query, weight, judge, half, np.full(len(truth), 0.3), queries=200))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [(([0], [1.0], [1.0], [1.0], [0.0]), "sampling probability"), (([0, 1], [1.0], [1.0], [1.0], [0.5]), "passages")],
)
def test_what_is_no_table_is_refused(columns: tuple[list[float], ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        totals_of(*columns, queries=2)
