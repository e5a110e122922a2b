"""The lock-DAG: which pairs are settled, what follows from them, and the orders that respect them.

Invariant: the graph is acyclic at every moment, because a lock whose reverse path exists is refused. The
transitive closure is kept as a boolean matrix, so that asking for a path costs one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from raggs.base.arrays import Flags

if TYPE_CHECKING:
    from networkx import DiGraph


class LockGraph:
    """Locks over items 0..size-1.

    Attributes:
        edges[w, l]: w is locked above l.
        reach[w, l]: some path of locks leads from w down to l; never reflexive.
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
        """Take locks back; what only they implied is no longer reached.

        Raises:
            ValueError: no such lock.
        """
        for winner, loser in pairs:
            if not self.edges[winner, loser]:
                raise ValueError(f"{winner} is not locked above {loser}")
            self.edges[winner, loser] = False
        self.reach[:] = False
        for winner, loser in np.argwhere(self.edges).tolist():
            self._connect(winner, loser)

    def _connect(self, winner: int, loser: int) -> None:
        """Whoever reaches `winner` reaches whatever `loser` reaches."""
        if not self.reach[winner, loser]:
            above, below = self.reach[:, winner].copy(), self.reach[loser].copy()
            above[winner] = below[loser] = True
            self.reach |= above[:, None] & below

    def twice_implied(self, winner: int, loser: int) -> bool:
        """Whether two paths that share no item between them, each through others, lead from `winner` to `loser`.

        By Menger's theorem that holds unless one item lies on every path. With the items between sorted
        topologically, an item lies on every path exactly when no edge jumps over it.
        """
        between = np.flatnonzero(self.reach[winner] & self.reach[:, loser])
        if between.size < 2:
            return False
        heights = self.reach[:, between].sum(axis=0)  # ancestors strictly grow along every edge
        line = np.concatenate(([winner], between[np.argsort(heights, kind="stable")], [loser]))
        edges = self.edges[np.ix_(line, line)].copy()
        edges[0, -1] = False
        tails, heads = np.nonzero(edges)
        jumps = np.zeros(line.size + 1, dtype=np.int64)
        np.add.at(jumps, tails + 1, 1)
        np.add.at(jumps, heads, -1)
        return bool((np.cumsum(jumps)[1 : line.size - 1] > 0).all())

    def chains(self, order: Sequence[int], top: int) -> bool:
        """Whether the first `top` of an order are locked, each above the next, and the last of them above the rest."""
        head = order[:top]
        chained = all(self.reach[above, below] for above, below in pairwise(head))
        return chained and bool(self.reach[head[-1], order[top:]].all())

    def order(self, scores: Sequence[float]) -> list[int]:
        """A topological order: of the items that no lock holds back, always the highest score next, ties by number."""
        line = np.argsort(-np.asarray(scores), kind="stable")
        place = np.argsort(line)
        winners, losers = np.nonzero(self.edges)
        if (place[winners] < place[losers]).all():  # mostly so, and many times faster
            return [int(item) for item in line]
        import networkx as nx  # late: an eighth of a second, which most rankings do without

        graph: DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.edges)))
        graph.add_edges_from(zip(winners.tolist(), losers.tolist(), strict=True))
        return list(nx.lexicographical_topological_sort(graph, key=lambda item: (-scores[item], item)))
