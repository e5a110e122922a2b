"""How often would each system be chosen with other questions of the same kind? A winner out of noise is no winner.

Queries are resampled, each system's mean taken anew, and the rules of `choice` applied under the same limits; cost and
latency are held as they were measured. The front plays a part among systems that are equal on every query alone: who
has the best allowed quality without a rival is on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.stats.decision.choice import NO_LIMITS, Field, Limits, Peers, broken_limit
from raggs.stats.decision.front import JITTER_MS, Candidate, checked, find_front, rounded
from raggs.stats.decision.resamples import DRAWS, checked_values, resampled_means

CONFIDENCE = 0.95
FEWEST = 10  # queries; below, resamples of them are too alike to bear a claim


@dataclass(frozen=True)
class Share:
    """A system, and the share of draws that it wins, in 0..1."""

    name: str
    share: float


@dataclass(frozen=True)
class Winners:
    """Who wins how often.

    Attributes:
        shares: of the systems that win at all, most often first; they and `none` add up to 1.
        none: the share of draws in which no system holds the limits.
        draws: resamples; a share of p has a standard error of sqrt(p (1 - p) / draws) from that alone.
        queries: that were resampled.
        confidence: in 0..1, asked of whoever is called the winner.
        rivals: the fewest systems that together win that share of the draws; empty where they never do.
        told_apart: one system alone does.
    """

    shares: tuple[Share, ...]
    none: float
    draws: int
    queries: int
    confidence: float
    rivals: tuple[str, ...]
    told_apart: bool

    def share_of(self, name: str) -> float:
        """Of draws won by a system; 0 where it wins none."""
        return next((each.share for each in self.shares if each.name == name), 0.0)

    @property
    def _asked(self) -> str:
        return "one query alone" if self.queries == 1 else f"the {self.queries:,} queries"

    @property
    def sentence(self) -> str:
        """What may be said of it."""
        return self.told()

    def told(self, *, equals: bool = False) -> str:
        """The same where others are equal to the first on every query, and it wins in their place."""
        drawn = f"of {self.draws:,} resamples of {self._asked}"
        if not self.shares:
            return f"No system holds the limits in any {drawn}."
        best = self.shares[0]
        if self.told_apart:
            hint = "" if self.queries >= FEWEST else f": a hint, since a claim takes {FEWEST}"
            return f"{best.name} {'and its equals win' if equals else 'wins'} {best.share:.0%} {drawn}{hint}."
        listed = ", ".join(f"{each.name} {each.share:.0%}" for each in self.shares[:3])
        rest = len(self.rivals) - 3
        more = f" and {rest} more" if rest > 0 else ""
        missed = f"; in {self.none:.0%} no system holds the limits" if self.none else ""
        return f"The data do not tell the first from the others: {listed}{more} {drawn}{missed}."


def find_winners(
    candidates: Sequence[Candidate],
    values: npt.ArrayLike,
    limits: Limits = NO_LIMITS,
    *,
    seed: int,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    jitter_ms: float = JITTER_MS,
    peers: Peers | None = None,
) -> Winners:
    """How often each system would be chosen under resampled queries.

    Args:
        candidates: in the order of the rows of `values`.
        values: of the deciding measure, shape (systems, queries); NaN where it is undefined.
        limits: those of the choice; a quality to be reached is asked of each draw's mean.
        seed: of the run.
        draws: at least 1.
        confidence: inside 0..1; the share of draws that makes a winner.
        jitter_ms, peers: as in `choose`; who is equivalent to whom is not judged anew in each draw.

    Raises:
        ValueError: a name twice, another shape, an infinite value, an argument out of its range.
    """
    checked(candidates)
    matrix = checked_values(values, len(candidates))
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence is {confidence}; it lies inside 0..1")
    fixed = Limits(limits.latency_ms, limits.usd_per_1k)
    kept = [row for row, each in enumerate(candidates) if broken_limit(each, fixed) is None]
    kept = _undominated(candidates, matrix, kept, jitter_ms)
    field = Field.of([candidates[row] for row in kept])
    wins, none = np.zeros(len(kept), dtype=np.int64), 0
    target = -np.inf if limits.quality is None else float(rounded(limits.quality))
    for means in resampled_means(matrix[kept], draws=draws, seed=seed):
        for quality in rounded(means):
            alive = quality >= target  # NaN is not
            if alive.any():
                wins[field.winner(quality, limits, jitter_ms, alive, peers)] += 1
            else:
                none += 1
    return _result([candidates[row].name for row in kept], wins, none, matrix.shape[1], confidence)


def _undominated(candidates: Sequence[Candidate], values: Floats, rows: Sequence[int], jitter_ms: float) -> list[int]:
    """Without those that another one dominates which does as well on every query: they are equal in all draws."""
    alike: dict[bytes, list[int]] = {}
    for row in rows:
        alike.setdefault(values[row].tobytes(), []).append(row)
    kept: set[int] = set()
    for group in alike.values():
        front = set(find_front([candidates[row] for row in group], jitter_ms).names) if len(group) > 1 else None
        kept |= {row for row in group if front is None or candidates[row].name in front}
    return sorted(kept)


def _result(names: list[str], wins: Ints, none: int, queries: int, confidence: float) -> Winners:
    draws = int(wins.sum()) + none
    order = sorted(np.flatnonzero(wins).tolist(), key=lambda row: (-wins[row], names[row]))
    shares = tuple(Share(names[row], float(wins[row]) / draws) for row in order)
    reached = np.cumsum([each.share for each in shares]) >= confidence
    rivals = tuple(each.name for each in shares[: int(reached.argmax()) + 1]) if reached.any() else ()
    return Winners(shares, none / draws, draws, queries, confidence, rivals, len(rivals) == 1)
