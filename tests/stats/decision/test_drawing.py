"""The random part: its chances are the ones it tells, and two draws are one that grew."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.arrays import Floats
from raggs.base.hashing import generator
from raggs.stats.correction import draw, sampling_numbers

STRATA = np.repeat([0, 1, 2], [100, 16, 2])


def random_lots(seed: int, count: int) -> Floats:
    return generator(seed, "lots").random(count)


@given(st.lists(st.integers(-1, 4), max_size=80), st.integers(0, 100), st.integers(0, 5))
def test_as_many_as_asked_for_each_once(strata: list[int], count: int, seed: int) -> None:
    numbers = sampling_numbers(seed, map(str, range(len(strata))))
    found = draw(np.array(strata, dtype=np.int64), numbers, count)
    assert len(set(found.items.tolist())) == len(found.items) == min(count, len(strata))
    assert ((found.chance > 0) & (found.chance <= 1)).all()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 20])
def test_every_item_has_a_chance_however_rare_its_grade(count: int) -> None:
    """So that what was drawn stands for all: chances over what they drew come to the number of items."""
    strata = np.repeat([0, 1, 2, 3], [5000, 300, 10, 2])
    found = draw(strata, random_lots(1, 5312), count)
    assert len(found.items) == count
    assert (1 / found.chance).sum() == pytest.approx(5312)


def test_an_items_number_hangs_on_seed_and_name_alone() -> None:
    assert sampling_numbers(1, ["a", "b"]).tolist() == sampling_numbers(1, ["b", "a"]).tolist()[::-1]
    assert sampling_numbers(1, ["a"]) != sampling_numbers(2, ["a"])
    many = sampling_numbers(3, map(str, range(4000)))
    assert many.mean() == pytest.approx(0.5, abs=0.02)
    assert many.std() == pytest.approx(12**-0.5, abs=0.01)


def test_every_item_is_drawn_as_often_as_its_chance_says() -> None:
    times, chance = np.zeros(118), np.zeros(118)
    for seed in range(2000):
        found = draw(STRATA, random_lots(seed, 118), 15)
        times[found.items] += 1
        chance[found.items] = found.chance
    assert times / 2000 == pytest.approx(chance, abs=0.05)
    assert chance[117] > chance[110] > chance[0], "rare grades are read more often"


def test_weighed_by_chance_a_mean_is_right() -> None:
    strata = np.repeat([0, 1], [300, 30])
    values = np.where(strata == 0, 0.0, 1.0)
    found = [draw(strata, random_lots(seed, 330), 20) for seed in range(300)]
    means = [float((values[each.items] / each.chance).sum()) / 330 for each in found]
    assert np.mean(means) == pytest.approx(30 / 330, abs=0.002)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("changed", [False, True])
def test_a_second_draw_holds_the_first_and_its_estimate_is_unbiased(changed: bool) -> None:
    """Also where a judge put a third of the items into other strata between the two."""
    values, strata = (np.arange(118) % 7) * 1.0, STRATA.copy()
    strata[::3] = np.where(changed, 1, STRATA[::3])
    means = []
    for seed in range(1500):
        numbers = random_lots(seed, 118)
        first = draw(STRATA, numbers, 12)
        held = np.zeros(118, dtype=bool)
        held[first.items] = True
        second = draw(strata, numbers, 5 + seed % 35, held)
        assert changed or set(first.items.tolist()) <= set(second.items.tolist())
        means.append(float((values[second.items] / second.chance).sum()) / 118)
    assert abs(np.mean(means) - values.mean()) < 3.5 * np.std(means) / len(means) ** 0.5


def test_the_order_of_reading_does_not_hang_on_the_number_that_drew() -> None:
    numbers = random_lots(4, 4000)
    found = draw(np.zeros(4000, dtype=np.int64), numbers, 2000)
    assert abs(np.corrcoef(np.arange(2000), numbers[found.items])[0, 1]) < 0.08


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 5))
def test_a_larger_draw_holds_each_smaller_one(sizes: list[int], seed: int) -> None:
    """From the number of strata on: below it, all items form one stratum."""
    strata = np.repeat(np.arange(len(sizes)), sizes)
    numbers = random_lots(seed, len(strata))
    found = [set(draw(strata, numbers, count).items.tolist()) for count in range(len(sizes), len(strata) + 1)]
    assert all(smaller < larger for smaller, larger in pairwise(found))
