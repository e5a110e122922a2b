from __future__ import annotations

from types import MappingProxyType

from raggs.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear


class Rbp(Linear):
    """Rank-biased precision: a reader goes on to the next passage with probability p."""

    NAME = "rbp"
    FORMULA = "(1 - p) sum p^(rank - 1) over relevant passages in the top k"
    SOURCE = "Moffat and Zobel 2008"
    CUTOFF = "possible"
    PARAMS = MappingProxyType({"p": 0.8, "rel": None})
    FIRST = "p"

    def worth(self, ranks: Floats) -> Floats:
        found: Floats = (1.0 - self["p"]) * self["p"] ** (ranks - 1.0)
        return found

    def norm(self, hits: Hits, table: Floats) -> Floats:
        return w.flat(hits.length.astype(float))
