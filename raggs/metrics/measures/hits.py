"""Measures based on the ranks of single passages: hit, hits, hit_all, mrr, containment, and span measures."""

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
    """Whether a relevant passage is in the top k."""

    NAME = "hit"
    FORMULA = "1 if a relevant passage is in the top k, else 0"
    SOURCE = "success@k of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("success", "hit_rate", "retrieval-hit-at-k")

    def score(self, hits: Hits) -> Floats:
        """Return 1 if the top k contains a relevant passage, else 0; shape (queries,)."""
        found = hits.total(hits.weigh(self.table(hits.qrels)) * (hits.rank <= self.cutoff))
        return (found > 0).astype(np.float64)

    def expected(self, hits: Hits) -> Floats:
        """Return the probability that the top k contains a relevant passage, shape (queries,)."""
        return 1.0 - none_within(hits, hits.weigh(self.table(hits.qrels)) > 0, self.cutoff)


class RelevantRetrieved(Linear):
    """Number of relevant passages in the top k."""

    NAME = "hits"
    FORMULA = "|relevant in the top k|"
    SOURCE = "McSherry and Najork 2008"
    FIXED = True
    RANGE = (0.0, float("inf"))
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return 1, because hits are counted and not divided."""
        return w.flat(hits.length.astype(np.float64))


class HitAll(Measure):
    """Whether all passages of grade 4 or 5 are in the top k: a "hit" in Acc|Hit, the accuracy of answers given a hit.

    The measure is undefined for a query without such passages, because nothing can be missed. With `vacuous=1`, its
    value is then 1, as in the source.
    """

    NAME = "hit_all"
    FORMULA = "1 if all passages with g >= 4 are in the top k, else 0"
    SOURCE = "Dallaire 2025, section 4.1"
    PARAMS = parameters(vacuous=FLAG)
    FIRST = "vacuous"
    GOLDEN = True

    def table(self, qrels: Qrels) -> Floats:
        """Return 1 for grades 4 and 5, else 0; shape (grades,)."""
        return w.at_least(qrels, 4)

    def score(self, hits: Hits) -> Floats:
        """Return 1 if all passages of grade 4 or 5 are in the top k, else 0; shape (queries,).

        A query without such passages has NaN, or 1 with `vacuous`.
        """
        table = self.table(hits.qrels)
        found = hits.total(hits.weigh(table) * (hits.rank <= self.cutoff))
        return self._defined(hits, (found == w.number_of(hits.qrels, table)).astype(np.float64))

    def expected(self, hits: Hits) -> Floats:
        """Return the probability that all passages of grade 4 or 5 are in the top k, shape (queries,).

        A query without such passages has NaN, or 1 with `vacuous`.
        """
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
    FORMULA = "1 / rank of the first relevant passage; 0 if the top k contains none"
    SOURCE = "Voorhees 1999; trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("rr", "recip_rank", "retrieval-mrr")

    def score(self, hits: Hits) -> Floats:
        """Return 1 / rank of the first relevant passage, shape (queries,); 0 if the top k contains no relevant
        passage.
        """
        good = (hits.weigh(self.table(hits.qrels)) > 0) & (hits.rank <= self.cutoff)
        best = np.zeros(len(hits.length))
        np.maximum.at(best, hits.query[good], 1.0 / hits.rank[good])
        return best

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,)."""
        return expected_reciprocal_rank(hits, hits.weigh(self.table(hits.qrels)) > 0, self.cutoff)


class Containment(Measure):
    """Whether a text in the top k contains the expected answer."""

    NAME = "containment"
    FORMULA = "1 if a text in the top k contains the answer (NFKC, ignoring case and white space), else 0"
    SOURCE = "has-answer of open-domain question answering (Chen et al. 2017)"
    CUTOFF = "possible"
    ALIASES = ("answer-containment-at-k",)
    TIES = False

    def check(self, hits: Hits) -> None:
        """Check the judgments as every measure does, and that texts and answers are known.

        Raises:
            DataError: the measure is not defined on the judgments, or texts or answers are unknown.
        """
        super().check(hits)
        if hits.answer_rank is None:
            raise DataError(
                "containment needs the retrieved texts and the expected answers",
                remedy="use raggs eval --samples SAMPLES --outputs OUTPUTS, or evaluate(..., answer_rank=...)",
            )

    def score(self, hits: Hits) -> Floats:
        """Return 1 if a text in the top k contains the answer, else 0; shape (queries,). NaN if no answer is
        expected.
        """
        rank = np.full(len(hits.length), np.nan) if hits.answer_rank is None else hits.answer_rank
        return np.where(np.isnan(rank), np.nan, (rank <= self.cutoff).astype(np.float64))


class _Span(Measure):
    """Ratio of numbers of characters, defined for queries with relevant characters."""

    SOURCE = "Smith and Troynikov 2024, with grades in place of references"
    CUTOFF = "possible"
    GOLDEN = True
    TIES = False

    def check(self, hits: Hits) -> None:
        """Check the judgments as every measure does, and that character offsets are known.

        Raises:
            DataError: the measure is not defined on the judgments, or offsets are unknown.
        """
        super().check(hits)
        if hits.reading is None:
            raise DataError(
                f"{self.NAME} needs character offsets of judged and retrieved passages, and uncondensed lists",
                remedy="use raggs eval with --project and without --condensed",
            )

    def score(self, hits: Hits) -> Floats:
        """Return the ratio, shape (queries,); NaN if no character is relevant, 0 if nothing was retrieved."""
        if (reading := hits.reading) is None:
            return np.full(len(hits.length), math.nan)
        share = w.ratio(reading.within(reading.fresh, self.cutoff), self.whole(reading), 0.0)
        return np.where(reading.wanted > 0, share, math.nan)

    @abstractmethod
    def whole(self, reading: RetrievedSpans) -> Floats:
        """Return the number of characters in the denominator, shape (queries,)."""


class SpanRecall4(_Span):
    """Share of characters of grade 4 or 5 that are in the top k."""

    NAME = "span_recall4"
    FORMULA = "|characters of g >= 4 in the top k| / |characters of g >= 4|"

    def whole(self, reading: RetrievedSpans) -> Floats:
        """Return the number of relevant characters, shape (queries,)."""
        return reading.wanted.astype(np.float64)


class SpanPrecision4(_Span):
    """Share of the retrieved characters that have grade 4 or 5; each relevant character counts once."""

    NAME = "span_precision4"
    FORMULA = "|characters of g >= 4 in the top k, each once| / sum of the lengths of the top k"

    def whole(self, reading: RetrievedSpans) -> Floats:
        """Return the number of retrieved characters, shape (queries,); a character counts each time it is retrieved."""
        return reading.within(reading.length, self.cutoff)
