from __future__ import annotations

from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear


class Ndcg(Linear):
    """Discounted cumulative gain over that of the best order: gains are linear."""

    NAME = "ndcg"
    FORMULA = "sum gain / log2(rank + 1) over the top k / the same of the best order; 0 where that is 0"
    SOURCE = "Jaervelin and Kekaelaeinen 2002; trec_eval"
    CUTOFF = "possible"
    ALIASES: ClassVar[tuple[str, ...]] = ("retrieval-ndcg-at-k",)

    def table(self, qrels: Qrels) -> Floats:
        """Shape (grades,): the gains of the scale."""
        return np.array(qrels.scale.gains)

    def worth(self, ranks: Floats) -> Floats:
        """1 / log2(rank + 1)."""
        return w.logarithmic(ranks)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): the sum of the best order."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff, self.worth)


class NdcgExp(Ndcg):
    """As ndcg, with exponential gains."""

    NAME = "ndcg_exp"
    ALIASES = ()
    FORMULA = "as ndcg, with 2^gain - 1 for the gain"
    SOURCE = "Burges et al. 2005"

    def table(self, qrels: Qrels) -> Floats:
        """Shape (grades,): 2^gain - 1."""
        found: Floats = np.exp2(super().table(qrels)) - 1.0
        return found
