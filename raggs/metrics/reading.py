"""What reading a list costs and gives, in characters: of each retrieved passage its length, how much of it is judged,
and how much relevant text it adds to what stands above it. So the value at any cutoff is a quotient of sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints


@dataclass(frozen=True)
class Reading:
    """Retrieved passages with places; a row each, of queries that are judged, in any order.

    Attributes:
        query: shape (n,), the number of the row's query.
        rank: shape (n,), from 1.
        length: shape (n,), characters of the passage.
        judged: shape (n,), those of them that are judged.
        fresh: shape (n,), those of them that are relevant and stand in no passage above it.
        wanted: shape (queries,), all relevant characters, each once.
    """

    query: Ints
    rank: Ints
    length: Ints
    judged: Ints
    fresh: Ints
    wanted: Ints

    def within(self, values: Ints, k: int) -> Floats:
        """Shape (queries,): the sum of a column over the top k."""
        shown = self.rank <= k
        return np.bincount(self.query[shown], values[shown], len(self.wanted)).astype(np.float64)

    def judged_share(self, k: int) -> float:
        """Of all characters in the tops k, those that are judged; NaN where nothing was retrieved."""
        shown = self.rank <= k
        length = int(self.length[shown].sum())
        return float(self.judged[shown].sum()) / length if length else float("nan")
