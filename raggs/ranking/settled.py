"""Which pairs are settled: locks made by confidence, and taken back when the evidence turns.

A pair is locked when the bounds of its difference exclude zero on consecutive updates and judged batches back it:
the winner beat the loser, or beat something that beat the loser. Locks never close a cycle and are not made
where others imply them. A lock whose pair has come to be believed the other way round is released: locks
explain and audit an order, they must not freeze an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.ranking.base import Lock
from raggs.ranking.locks import LockGraph


@dataclass(frozen=True)
class LockRule:
    """When to lock and when to release.

    Attributes:
        z: half-width of the bounds of a difference, in standard errors, > 0.
        updates: consecutive updates on which the bounds must exclude zero, >= 1.
        regret: a lock is released when its pair stands the other way round by this many standard errors, >= 0.
    """

    z: float = 3.0
    updates: int = 2
    regret: float = 0.25


class SettledPairs:
    """The locks over passages 0..size-1.

    Attributes:
        graph: the locks that stand.
        wins[w, l]: judged batches that placed w above l.
        told[w, l]: orders given beforehand that did so.
    """

    def __init__(self, names: Sequence[str], rule: LockRule) -> None:
        self.graph = LockGraph(len(names))
        self.wins: Ints = np.zeros((len(names), len(names)), dtype=np.int64)
        self.told: Ints = np.zeros_like(self.wins)
        self._names = names
        self._rule = rule
        self._streaks: Ints = np.zeros_like(self.wins)
        self._standing: dict[tuple[int, int], Lock] = {}
        self._released: list[Lock] = []

    @property
    def locks(self) -> tuple[Lock, ...]:
        """Those that stand, in the order in which they were made."""
        return tuple(self._standing.values())

    @property
    def released(self) -> tuple[Lock, ...]:
        """Those taken back, in that order."""
        return tuple(self._released)

    @property
    def shown(self) -> Ints:
        """How often each pair was judged in the same batch."""
        return self.wins + self.wins.T

    def count(self, order: Ints) -> None:
        """Take in a judged batch, best first."""
        rows, columns = np.triu_indices(order.size, k=1)
        self.wins[order[rows], order[columns]] += 1

    def count_told(self, groups: Sequence[Sequence[int]]) -> None:
        """Take in an order given beforehand, best group first."""
        for place, group in enumerate(groups):
            below = [item for later in groups[place + 1 :] for item in later]
            self.told[np.ix_(group, below)] += 1

    def update(self, mean: Floats, covariance: Floats, call: int) -> None:
        """Take in the posterior of all counted batches."""
        gaps = standard_gaps(mean, covariance)
        self._streaks = np.where(gaps > self._rule.z, self._streaks + 1, 0)
        self._release(gaps)
        self._lock(gaps, mean, call)

    def _release(self, gaps: Floats) -> None:
        contrary = [pair for pair in self._standing if gaps[pair] < -self._rule.regret]
        for pair in contrary:
            self._released.append(self._standing.pop(pair))
        if contrary:
            self.graph.remove(contrary)

    def _lock(self, gaps: Floats, mean: Floats, call: int) -> None:
        """Lock what is ripe, the closest pairs first: so the far ones are mostly implied."""
        graph = self.graph
        ripe = (self._streaks >= self._rule.updates) & self._backed() & ~graph.reach & ~graph.reach.T
        winners, losers = np.nonzero(ripe)
        closest = np.argsort(mean[winners] - mean[losers], kind="stable")
        for winner, loser in zip(winners[closest].tolist(), losers[closest].tolist(), strict=True):
            if graph.reach[winner, loser] or graph.reach[loser, winner]:
                continue
            graph.add(winner, loser)
            evidence = int(self.wins[winner, loser] + self.told[winner, loser])
            gap = float(gaps[winner, loser])
            self._standing[winner, loser] = Lock(self._names[winner], self._names[loser], gap, evidence, call)

    def _backed(self) -> Flags:
        won = (self.wins + self.told > 0).astype(np.float32)
        return np.asarray((won + won @ won) > 0)


def standard_gaps(mean: Floats, covariance: Floats) -> Floats:
    """z[i, j] = (x_i - x_j) / sqrt(v_ij), v_ij the joint variance of the difference; 0 on the diagonal."""
    spread = covariance.diagonal()
    variances = np.maximum(spread[:, None] + spread[None, :] - 2 * covariance, 1e-12)
    return np.asarray((mean[:, None] - mean[None, :]) / np.sqrt(variances))
