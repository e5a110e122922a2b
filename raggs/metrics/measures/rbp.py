from __future__ import annotations

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, Parameter, parameters
from raggs.metrics.measures.parameters import REL


class Rbp(Linear):
    """Rank-biased precision: a reader goes on to the next passage with probability p."""

    NAME = "rbp"
    FORMULA = "(1 - p) sum p^(rank - 1) over relevant passages in the top k"
    SOURCE = "Moffat and Zobel 2008"
    FIXED = True
    CUTOFF = "possible"
    PARAMS = parameters(p=Parameter(0.8, 0, 0.9999), rel=REL)
    FIRST = "p"

    def worth(self, ranks: Floats) -> Floats:
        """(1 - p) p^(rank - 1)."""
        found: Floats = (1.0 - self["p"]) * self["p"] ** (ranks - 1.0)
        return found

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """1: the worths of all ranks sum to it."""
        return w.flat(hits.length.astype(float))
