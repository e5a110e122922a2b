"""Which systems are as good as another one, statistically: what "near the frontier" means when a tie is broken.

The source breaks ties among near-frontier peers (Dallaire, 2025, section 3.3) and does not say how near. Here a system
is a peer of another one if the data show it:

- By the measure that decides first, the interval of the mean difference over the queries lies within the margin on both
  sides: the verdict "equivalent" of `raggs eval`.
- By each other measure that decides, the interval does not reach below the margin: the system may be better, not worse.

If an interval is wider than that, the data cannot tell, and the system is no peer: then the better mean decides, as
before. At least as many queries are needed as a verdict takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.stats.compare import SAME
from raggs.metrics.stats.intervals import Interval, bootstrap_means
from raggs.metrics.stats.paired import least_queries


class EquivalentSystems:
    """Names the systems that are statistically equivalent to one; each system is looked at once.

    Args:
        quality: the measures that decide, most important first.
        values: by system and measure, a value for each judged query; NaN where it is not defined.
        margin: a mean difference within -margin..margin is none, in the unit of the measures.
        confidence: of the intervals.
        seed: of their bootstrap.
    """

    def __init__(
        self,
        quality: Sequence[str],
        values: Mapping[str, Mapping[str, Floats]],
        *,
        margin: float,
        confidence: float,
        seed: int,
    ) -> None:
        self._quality, self._values = quality, values
        self._margin, self._confidence, self._seed = margin, confidence, seed
        self._found: dict[str, frozenset[str]] = {}

    def __call__(self, name: str) -> frozenset[str]:
        """Return the names of the system's peers, its own among them."""
        if name not in self._found:
            self._found[name] = frozenset({name, *self._peers(name)})
        return self._found[name]

    def _peers(self, name: str) -> list[str]:
        peers = [other for other in self._values if other != name and self._may_be(name, other)]
        for measure in self._quality:
            if not peers:
                return []
            found = self._intervals(name, peers, measure)
            first = measure == self._quality[0]
            peers = [other for other, each in zip(peers, found, strict=True) if self._near(each, both_sides=first)]
        return peers

    def _may_be(self, name: str, other: str) -> bool:
        """Whether the means are near enough to ask for intervals, which takes its time."""
        difference = self._differences(name, other, self._quality[0])
        return bool(np.isfinite(difference).any()) and abs(float(np.nanmean(difference))) <= self._margin

    def _near(self, found: Interval, *, both_sides: bool) -> bool:
        if found.count < least_queries(1 - self._confidence) or not found.low >= -self._margin:
            return False
        return not both_sides or found.high <= self._margin

    def _intervals(self, name: str, others: Sequence[str], measure: str) -> Sequence[Interval]:
        rows = np.stack([self._differences(name, other, measure) for other in others])
        return bootstrap_means(rows, confidence=self._confidence, seed=self._seed)

    def _differences(self, name: str, other: str, measure: str) -> Floats:
        """The other system minus this one, by query; exactly 0 where they differ by rounding only."""
        ours, theirs = self._values[name][measure], self._values[other][measure]
        return np.where(np.isclose(ours, theirs, rtol=SAME, atol=SAME), 0.0, theirs - ours)
