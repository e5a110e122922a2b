"""The random part: its chances are the ones it tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.decision.drawing import draw


@given(st.lists(st.integers(-1, 4), max_size=80), st.integers(0, 100), st.integers(0, 5))
def test_as_many_as_asked_for_each_once(strata: list[int], count: int, seed: int) -> None:
    found = draw(np.array(strata, dtype=np.int64), count, seed)
    assert len(set(found.items.tolist())) == len(found.items) == min(count, len(strata))
    assert ((found.chance > 0) & (found.chance <= 1)).all()
    again = draw(np.array(strata, dtype=np.int64), count, seed)
    assert found.items.tolist() == again.items.tolist()


def test_every_item_is_drawn_as_often_as_its_chance_says() -> None:
    strata = np.repeat([0, 1, 2], [100, 16, 2])
    times, chance = np.zeros(118), np.zeros(118)
    for seed in range(2000):
        found = draw(strata, 15, seed)
        times[found.items] += 1
        chance[found.items] = found.chance
    assert times / 2000 == pytest.approx(chance, abs=0.05)
    assert chance[117] > chance[110] > chance[0], "rare grades are read more often"


def test_weighed_by_chance_a_mean_is_right() -> None:
    strata = np.repeat([0, 1], [300, 30])
    values = np.where(strata == 0, 0.0, 1.0)
    found = [draw(strata, 20, seed) for seed in range(300)]
    means = [float((values[each.items] / each.chance).sum()) / 330 for each in found]
    assert np.mean(means) == pytest.approx(30 / 330, abs=0.002)
