"""Measures by the rank of single passages: hit, hits, hit_all, mrr, containment, and span measures."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import FLAG, REL, Linear, Measure, parameters
from raggs.metrics.spans.scores import RetrievedSpans
from raggs.metrics.weights import all_within, expected_reciprocal_rank, none_within


class HitAny(Measure):
    """Whether any relevant passage is in the top k."""

    NAME = "hit"
    FORMULA = "1 if rel and the top k meet, else 0"
    SOURCE = "success@k of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("success", "hit_rate", "retrieval-hit-at-k")

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 where the top k holds a relevant passage, else 0."""
        found = hits.total(hits.weigh(self.table(hits.qrels)) * (hits.rank <= self.cutoff))
        return (found > 0).astype(np.float64)

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): the chance that not all k places go to others."""
        return 1.0 - none_within(hits, hits.weigh(self.table(hits.qrels)) > 0, self.cutoff)


class RelevantRetrieved(Linear):
    """How many relevant passages are in the top k."""

    NAME = "hits"
    FORMULA = "|rel and the top k|"
    SOURCE = "McSherry and Najork 2008"
    FIXED = True
    RANGE = (0.0, float("inf"))
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """1: hits are counted, not shared out."""
        return w.flat(hits.length.astype(np.float64))


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


class Mrr(Measure):
    """Reciprocal rank of the first relevant passage."""

    NAME = "mrr"
    FORMULA = "1 / rank of the first relevant passage in the top k, 0 without one"
    SOURCE = "Voorhees 1999; trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("rr", "recip_rank", "retrieval-mrr")

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 / rank of the first relevant passage in the top k; 0 without one."""
        good = (hits.weigh(self.table(hits.qrels)) > 0) & (hits.rank <= self.cutoff)
        best = np.zeros(len(hits.length))
        np.maximum.at(best, hits.query[good], 1.0 / hits.rank[good])
        return best

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): its mean over the places that the first tie with a relevant passage covers."""
        return expected_reciprocal_rank(hits, hits.weigh(self.table(hits.qrels)) > 0, self.cutoff)


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
    def whole(self, reading: RetrievedSpans) -> Floats:
        """Shape (queries,): the characters that the relevant ones are a share of."""


class SpanRecall4(_Span):
    """Share of the characters of grade 4 or 5 that the top k holds."""

    NAME = "span_recall4"
    FORMULA = "|characters of g >= 4 in the top k| / |characters of g >= 4|"

    def whole(self, reading: RetrievedSpans) -> Floats:
        """Shape (queries,): all relevant characters."""
        return reading.wanted.astype(np.float64)


class SpanPrecision4(_Span):
    """Share of the retrieved characters that are of grade 4 or 5: the text that was worth its reading."""

    NAME = "span_precision4"
    FORMULA = "|characters of g >= 4 in the top k, each once| / sum of the lengths of the top k"

    def whole(self, reading: RetrievedSpans) -> Floats:
        """Shape (queries,): what was retrieved, as often as it was."""
        return reading.within(reading.length, self.cutoff)
