"""Losses of approximate indexes: the published table, computed, and the rule of effort."""

from __future__ import annotations

import pytest

from raggs.stats.front import MeasuredIndex, deltas

# Table 7, voyage-3.5 at 1024 dimensions: N-Recall4+, N-Recall5 and RA-nWG at 10 and 20, median ms
FLAT = MeasuredIndex("flat", (0.592, 0.596, 0.566, 0.636, 0.677, 0.625), 47.6)
HNSW = MeasuredIndex("hnsw-f32", (0.592, 0.596, 0.566, 0.594, 0.616, 0.580), 35.4)
INT8 = MeasuredIndex("hnsw-int8", (0.521, 0.507, 0.497, 0.526, 0.555, 0.522), 35.0)


def percents(delta):
    return [round(100 * change, 1) for change in delta.quality]


def test_the_published_changes_are_computed():
    hnsw, int8 = deltas(FLAT, [HNSW, INT8])
    assert percents(hnsw) == [0, 0, 0, -6.6, -9.0, -7.2], "printed as +0.8, -0.7 and +0.6 at 20"
    assert percents(int8) == [-12.0, -14.9, -12.2, -17.3, -18.0, -16.5]
    assert round(100 * hnsw.latency, 1) == -25.6 and hnsw.loss == pytest.approx(0.0901, abs=1e-4)


def test_gains_are_no_losses_and_zero_is_not_compared():
    assert deltas(MeasuredIndex("flat", (0.5, 0.0)), [MeasuredIndex("ivf", (0.6, 0.1))])[0].quality[1] is None
    assert deltas(MeasuredIndex("flat", (0.5, 0.0)), [MeasuredIndex("ivf", (0.6, 0.1))])[0].loss == 0
    nothing = deltas(MeasuredIndex("flat", (0.0,), 5.0), [MeasuredIndex("ivf", (0.1,))])[0]
    assert (nothing.loss, nothing.latency) == (None, None)


@pytest.mark.parametrize("quality", [(0.5,), (0.5, float("nan"))])
def test_the_same_measures_are_needed(quality):
    with pytest.raises(ValueError, match="the same measures"):
        deltas(MeasuredIndex("flat", (0.5, 0.5)), [MeasuredIndex("ivf", quality)])
