"""Indexes beside each other where they lose equally much on average: what stands at one level of mean recall.

Each index was measured at several efforts. Between two of them a value is read linearly in mean recall, queries a
second and the effort itself in their logarithm. Beyond the points nothing is guessed: such a level is "not bracketed".
The doubt is that of other queries of the same kind: queries are resampled, for all indexes and points alike, and the
whole reading is done again on each resample, so that a difference between two indexes is a paired one.

Wang et al. 2025, Fig. 3 and 9, whose curves are read at one mean recall; resampling is added here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.stats import Interval
from raggs.metrics.stats.intervals import resampled_means

DRAWS = 2_000
CONFIDENCE = 0.95
MOST_MISSING = 0.05  # resamples in which a level may lie outside, before an interval would leave them out silently
FUZZ = 1e-12
RECALL = "recall"


@dataclass(frozen=True)
class Swept:
    """One index at several efforts.

    Attributes:
        name: of the index with the settings that all points share.
        efforts: shape (points,), ascending, above 0.
        qps: shape (points,), queries a second, above 0.
        means: by measure, shape (points,); "recall" among them.
        drawn: by measure, means over resampled queries, shape (points, draws).
        queries: how many there are.
    """

    name: str
    efforts: Floats
    qps: Floats
    means: Mapping[str, Floats]
    drawn: Mapping[str, Floats]
    queries: int

    @classmethod
    def of(
        cls,
        name: str,
        efforts: Sequence[float],
        qps: Sequence[float],
        values: Sequence[Mapping[str, Floats]],
        *,
        seed: int,
        draws: int = DRAWS,
    ) -> Swept:
        """From the values by query of each point, in the order of `efforts`.

        Args:
            values: a point's values, shape (queries,), by measure; the same measures and queries at each.

        Raises:
            ValueError: no point, efforts that do not ascend, or a number that has no logarithm.
        """
        order, rates = np.asarray(efforts, dtype=np.float64), np.asarray(qps, dtype=np.float64)
        if not len(order) or (np.diff(order) <= 0).any() or order[0] <= 0 or (rates <= 0).any():
            raise ValueError("efforts ascend from above 0, and so are queries a second above it")
        names = list(values[0])
        rows = [point[measure] for measure in names for point in values]
        means = np.array([row.mean() for row in rows]).reshape(len(names), len(order))
        drawn = np.array(resampled_means(rows, draws, seed)).reshape(len(names), len(order), draws)
        size = len(rows[0])
        return cls(name, order, rates, dict(zip(names, means, strict=True)), dict(zip(names, drawn, strict=True)), size)


@dataclass(frozen=True)
class Matched:
    """What an index is at one mean recall.

    Attributes:
        name, level: which index, and the mean recall.
        effort, qps: there.
        values: by measure, with the interval over queries; its bounds are NaN where the level lies outside of the
            points in more than one resample of 20.
    """

    name: str
    level: float
    effort: float
    qps: float
    values: Mapping[str, Interval]


def at_level(swept: Swept, level: float) -> Matched | None:
    """What is to be read at one mean recall; None where that is not bracketed."""
    where = _Bracket.of(swept.means[RECALL][:, None], level)
    if not where.inside[0]:
        return None
    return Matched(
        name=swept.name,
        level=level,
        effort=float(np.exp(where.read(np.log(swept.efforts)[:, None])[0])),
        qps=float(np.exp(where.read(np.log(swept.qps)[:, None])[0])),
        values={name: _interval(*_read(swept, name, level), swept.queries) for name in swept.means},
    )


def differences(
    one: Swept, other: Swept, level: float, confidence: float = CONFIDENCE
) -> Mapping[str, Interval] | None:
    """By measure, `one` minus `other` at one mean recall, over the same resamples; None where it is not bracketed.

    Args:
        confidence: of the intervals; for all of m of them to hold together, 1 - 0.05 / m (Bonferroni).

    Raises:
        ValueError: the two were not asked the same number of queries.
    """
    if one.queries != other.queries:
        raise ValueError(f"{one.queries} queries and {other.queries}: only answers to the same queries pair")
    if at_level(one, level) is None or at_level(other, level) is None:
        return None
    found = {}
    for name in one.means:
        (mine, my_draws), (its, its_draws) = _read(one, name, level), _read(other, name, level)
        found[name] = _interval(mine - its, my_draws - its_draws, one.queries, confidence)
    return found


def deviations(indexes: Sequence[Swept], level: float) -> Mapping[str, Mapping[str, Interval]]:
    """By index and measure, how far a value lies from the mean of all indexes, as a share of that mean (Fig. 3).

    Indexes for which the level is not bracketed are left out; fewer than two leave nothing.
    """
    there = [each for each in indexes if at_level(each, level) is not None]
    if len(there) < 2:
        return {}
    found: dict[str, dict[str, Interval]] = {each.name: {} for each in there}
    for name in there[0].means:
        read = [_read(each, name, level) for each in there]
        mean, drawn = sum(value for value, _ in read) / len(read), np.mean([draws for _, draws in read], axis=0)
        if not mean:
            continue
        for each, (value, draws) in zip(there, read, strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):
                found[each.name][name] = _interval(value / mean - 1, draws / drawn - 1, each.queries)
    return found


def _read(swept: Swept, name: str, level: float) -> tuple[float, Floats]:
    """A measure at a level, as it was seen and on each resample; NaN where the level lies outside."""
    seen = _Bracket.of(swept.means[RECALL][:, None], level).read(swept.means[name][:, None])
    return float(seen[0]), _Bracket.of(swept.drawn[RECALL], level).read(swept.drawn[name])


@dataclass(frozen=True)
class _Bracket:
    """Between which two points a level lies, for each of several draws.

    The first point, by growing effort, that reaches the level, and the one before it.
    """

    low: Ints
    high: Ints
    share: Floats  # of the way from the lower to the upper one
    inside: Flags

    @classmethod
    def of(cls, recall: Floats, level: float) -> _Bracket:
        """`recall`: shape (points, draws)."""
        reaches = recall >= level - FUZZ
        high = reaches.argmax(axis=0)
        low, every = np.maximum(high - 1, 0), np.arange(recall.shape[1])
        above, below = recall[high, every], recall[low, every]
        inside = reaches.any(axis=0) & ((high > 0) | (np.abs(above - level) <= FUZZ))
        apart = np.where(above > below, above - below, 1.0)
        return cls(low, high, np.where(above > below, (level - below) / apart, 1.0).clip(0, 1), inside)

    def read(self, values: Floats) -> Floats:
        """`values`: shape (points, draws); what stands at the level, NaN outside."""
        every = np.arange(values.shape[1])
        below, above = values[self.low, every], values[self.high, every]
        return np.where(self.inside, below + self.share * (above - below), np.nan)


def _interval(value: float, draws: Floats, queries: int, confidence: float = CONFIDENCE) -> Interval:
    """The percentiles of the draws around what was seen."""
    tail, known = (1 - confidence) / 2, draws[np.isfinite(draws)]
    low = high = np.nan
    if len(known) >= (1 - MOST_MISSING) * len(draws):
        low, high = np.quantile(known, [tail, 1 - tail]).tolist()
    return Interval(value, low, high, confidence, queries, 0, "percentile")
