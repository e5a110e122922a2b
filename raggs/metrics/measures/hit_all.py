from __future__ import annotations

import math

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.chances import all_within
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure, parameters
from raggs.metrics.measures.parameters import FLAG


class HitAll(Measure):
    """Whether every passage of grade 4 or 5 is in the top k: the condition of Acc|Hit.

    Not defined where there is none, since nothing can be missed there; `vacuous=1` makes that 1, as its source does.
    """

    NAME = "hit_all"
    FORMULA = "1 if all passages with g >= 4 are in the top k, else 0"
    SOURCE = "Dallaire 2025, section 4.1"
    PARAMS = parameters(vacuous=FLAG)
    FIRST = "vacuous"
    GOLDEN = True

    def table(self, qrels: Qrels) -> Floats:
        """Shape (grades,): 1 for grades 4 and 5."""
        return w.at_least(qrels, 4)

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 where all of them are in the top k, else 0; NaN where there is none, 1 if `vacuous`."""
        table = self.table(hits.qrels)
        found = hits.total(hits.weigh(table) * (hits.rank <= self.cutoff))
        return self._defined(hits, (found == w.number_of(hits.qrels, table)).astype(np.float64))

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): the chance that all of them get into the top k; NaN where there is none."""
        table = self.table(hits.qrels)
        everywhere = hits.total(hits.weigh(table)) == w.number_of(hits.qrels, table)
        return self._defined(hits, everywhere * all_within(hits, hits.weigh(table) > 0, self.cutoff))

    def _defined(self, hits: Hits, values: Floats) -> Floats:
        return np.where(
            w.number_of(hits.qrels, self.table(hits.qrels)) > 0, values, 1.0 if self.params.get("vacuous") else math.nan
        )
