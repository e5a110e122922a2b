from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure


class Containment(Measure):
    """Whether a text in the top k contains the expected answer."""

    NAME = "containment"
    FORMULA = "1 if the answer stands in a text of the top k (NFKC, case and white space folded), else 0"
    SOURCE = "has-answer of open-domain question answering (Chen et al. 2017)"
    CUTOFF = "possible"
    ALIASES = ("answer-containment-at-k",)
    TIES = False

    def check(self, hits: Hits) -> None:
        """As every measure, and that texts and answers are known.

        Raises:
            DataError: they are not.
        """
        super().check(hits)
        if hits.answer_rank is None:
            raise DataError(
                "containment needs the texts that were retrieved and the expected answers",
                remedy="use raggs eval --samples SAMPLES --outputs OUTPUTS, or evaluate(..., answer_rank=...)",
            )

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 or 0; NaN where no answer is expected."""
        rank = np.full(len(hits.length), np.nan) if hits.answer_rank is None else hits.answer_rank
        return np.where(np.isnan(rank), np.nan, (rank <= self.cutoff).astype(np.float64))
