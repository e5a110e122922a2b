"""The graph of locked pairs, the orders that respect the locks, and the rules for locking and releasing pairs.

The graph is always acyclic: a lock is refused if the graph has a path from its loser to its winner. The transitive
closure is stored as a boolean matrix, so that one look-up shows whether a path exists.

`SettledPairs` locks a pair if two conditions hold: the bounds of its difference exclude zero on consecutive updates,
and a judged batch or an order given beforehand supports the lock. A batch or order supports a lock if it ranks the
winner above the loser. Two batches or orders support a lock together if the winner beat some item in one, and this item
beat the loser in the other. A
lock never closes a cycle, and none is made for a pair that other locks imply. A lock is released if the posterior now
ranks its pair the other way round, beyond a small tolerance, so that locks do not preserve an error. Locks explain an
order and make it possible to audit it. The engine `online` uses only the graph, and has its own rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.ranking.base import Lock

if TYPE_CHECKING:
    from networkx import DiGraph


class LockGraph:
    """Locks over items 0..size-1.

    Attributes:
        edges[w, l]: w is locked above l.
        reach[w, l]: a path of locks leads from w down to l; False on the diagonal.
    """

    def __init__(self, size: int) -> None:
        self.edges: Flags = np.zeros((size, size), dtype=np.bool_)
        self.reach: Flags = np.zeros((size, size), dtype=np.bool_)

    def add(self, winner: int, loser: int) -> None:
        """Lock `winner` above `loser`.

        Raises:
            ValueError: the lock would close a cycle.
        """
        if winner == loser or self.reach[loser, winner]:
            raise ValueError(f"locking {winner} above {loser} would close a cycle")
        self.edges[winner, loser] = True
        self._connect(winner, loser)

    def remove(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Release locks, and with them the implied pairs that no other locks imply.

        Raises:
            ValueError: a pair is not locked.
        """
        for winner, loser in pairs:
            if not self.edges[winner, loser]:
                raise ValueError(f"{winner} is not locked above {loser}")
            self.edges[winner, loser] = False
        self.reach[:] = False
        for winner, loser in np.argwhere(self.edges).tolist():
            self._connect(winner, loser)

    def _connect(self, winner: int, loser: int) -> None:
        """Record paths from every item that reaches `winner` to every item that `loser` reaches."""
        if not self.reach[winner, loser]:
            above, below = self.reach[:, winner].copy(), self.reach[loser].copy()
            above[winner] = below[loser] = True
            self.reach |= above[:, None] & below

    def twice_implied(self, winner: int, loser: int) -> bool:
        """Return whether two paths without a common inner item lead from `winner` to `loser`, each through other items.

        By Menger's theorem, two such paths exist exactly if no inner item is on every path. With the inner items in
        topological order, an item is on every path exactly if no edge jumps over the item.
        """
        between = np.flatnonzero(self.reach[winner] & self.reach[:, loser])
        if between.size < 2:
            return False
        heights = self.reach[:, between].sum(axis=0)  # along every edge, the number of ancestors increases
        line = np.concatenate(([winner], between[np.argsort(heights, kind="stable")], [loser]))
        edges = self.edges[np.ix_(line, line)].copy()
        edges[0, -1] = False
        tails, heads = np.nonzero(edges)
        jumps = np.zeros(line.size + 1, dtype=np.int64)
        np.add.at(jumps, tails + 1, 1)
        np.add.at(jumps, heads, -1)
        return bool((np.cumsum(jumps)[1 : line.size - 1] > 0).all())

    def chains(self, order: Sequence[int], top: int) -> bool:
        """Return whether locks imply the order of the first `top` items, and the last of these above all other
        items.
        """
        head = order[:top]
        chained = all(self.reach[above, below] for above, below in pairwise(head))
        return chained and bool(self.reach[head[-1], order[top:]].all())

    def order(self, scores: Sequence[float]) -> list[int]:
        """Return a topological order of the locks. An item may come next if every item locked above it is already
        placed. Of these items, the one with the highest score comes next. Ties are sorted by number.
        """
        line = np.argsort(-np.asarray(scores), kind="stable")
        place = np.argsort(line)
        winners, losers = np.nonzero(self.edges)
        if (place[winners] < place[losers]).all():  # usually true, and this path is many times faster
            return [int(item) for item in line]
        return self._sorted_by_networkx(scores)

    def final_order(self, scores: Sequence[float]) -> list[int]:
        """Return the same order as `order`, built by networkx. networkx also computes the closure again.

        The engines call this method once per ranking, because networkx takes longer than the rest of the engine if it
        is called for each answer (docs/project/decisions/packages.md).

        Raises:
            RuntimeError: networkx finds a cycle or another closure. This is an error in raggs.
        """
        import networkx as nx  # imported lazily: takes a tenth of a second

        size = len(self.edges)
        try:
            line = self._sorted_by_networkx(scores)
            closure = nx.transitive_closure_dag(self._as_networkx())
        except (nx.NetworkXUnfeasible, nx.NetworkXNotImplemented) as error:
            raise RuntimeError("the graph of locks has a cycle") from error
        if not np.array_equal(nx.to_numpy_array(closure, nodelist=list(range(size))) > 0, self.reach):
            raise RuntimeError("the stored closure of the locks differs from that of networkx")
        return line

    def _sorted_by_networkx(self, scores: Sequence[float]) -> list[int]:
        import networkx as nx

        return list(nx.lexicographical_topological_sort(self._as_networkx(), key=lambda item: (-scores[item], item)))

    def _as_networkx(self) -> DiGraph[int]:
        import networkx as nx

        graph: DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.edges)))
        winners, losers = np.nonzero(self.edges)
        graph.add_edges_from(zip(winners.tolist(), losers.tolist(), strict=True))
        return graph


@dataclass(frozen=True)
class LockRule:
    """Rule for locking and releasing a pair.

    Attributes:
        z: half-width of the bounds of a difference, in standard errors, > 0.
        updates: number of consecutive updates on which the bounds must exclude zero, >= 1.
        regret: a lock is released if its pair is reversed by more than this many standard errors, >= 0.
    """

    z: float = 3.0
    updates: int = 2
    regret: float = 0.25


class SettledPairs:
    """The locks over passages, which are numbered from 0, with the evidence for them.

    Attributes:
        graph: the current locks.
        wins[w, l]: number of judged batches that ranked w above l.
        told[w, l]: number of orders given beforehand that ranked w above l.
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
        """Current locks, in the order in which they were made."""
        return tuple(self._standing.values())

    @property
    def released(self) -> tuple[Lock, ...]:
        """Released locks, in the order of their release."""
        return tuple(self._released)

    @property
    def shown(self) -> Ints:
        """Number of times that each pair was judged in the same batch."""
        return self.wins + self.wins.T

    def count(self, order: Ints) -> None:
        """Count a judged batch, best first."""
        rows, columns = np.triu_indices(order.size, k=1)
        self.wins[order[rows], order[columns]] += 1

    def count_told(self, groups: Sequence[Sequence[int]]) -> None:
        """Count an order given beforehand, best group first."""
        for place, group in enumerate(groups):
            below = [item for later in groups[place + 1 :] for item in later]
            self.told[np.ix_(group, below)] += 1

    def update(self, mean: Floats, covariance: Floats, call: int) -> None:
        """Update the streaks, release locks and make new locks, given the posterior of all counted batches."""
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
        """Lock the pairs that fulfil the rule. The closest pairs come first, because they imply most of the distant
        pairs.
        """
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
    """Return z[i, j] = (x_i - x_j) / sqrt(v_ij), with v_ij the joint variance of the difference; 0 on the diagonal."""
    spread = covariance.diagonal()
    variances = np.maximum(spread[:, None] + spread[None, :] - 2 * covariance, 1e-12)
    return np.asarray((mean[:, None] - mean[None, :]) / np.sqrt(variances))
