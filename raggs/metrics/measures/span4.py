from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure
from raggs.metrics.reading import Reading


class _Span(Measure):
    """A quotient of characters, over the queries for which any character is relevant."""

    SOURCE = "Smith and Troynikov 2024, with grades in place of references"
    CUTOFF = "possible"
    GOLDEN = True
    TIES = False

    def check(self, hits: Hits) -> None:
        """As every measure, and that places are known.

        Raises:
            DataError: they are not.
        """
        super().check(hits)
        if hits.reading is None:
            raise DataError(
                f"{self.NAME} needs the places of what was judged and of what was retrieved, in whole lists",
                remedy="raggs eval --project, without --condensed",
            )

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): the share; NaN where no character is relevant, 0 where nothing was retrieved."""
        if (reading := hits.reading) is None:
            return np.full(len(hits.length), math.nan)
        share = w.ratio(reading.within(reading.fresh, self.cutoff), self.whole(reading), 0.0)
        return np.where(reading.wanted > 0, share, math.nan)

    @abstractmethod
    def whole(self, reading: Reading) -> Floats:
        """Shape (queries,): the characters that the relevant ones are a share of."""


class SpanRecall4(_Span):
    """Share of the characters of grade 4 or 5 that the top k holds."""

    NAME = "span_recall4"
    FORMULA = "|characters of g >= 4 in the top k| / |characters of g >= 4|"

    def whole(self, reading: Reading) -> Floats:
        """Shape (queries,): all relevant characters."""
        return reading.wanted.astype(np.float64)


class SpanPrecision4(_Span):
    """Share of the retrieved characters that are of grade 4 or 5: the text that was worth its reading."""

    NAME = "span_precision4"
    FORMULA = "|characters of g >= 4 in the top k, each once| / sum of the lengths of the top k"

    def whole(self, reading: Reading) -> Floats:
        """Shape (queries,): what was retrieved, as often as it was."""
        return reading.within(reading.length, self.cutoff)
