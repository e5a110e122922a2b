"""Training data for retrievers: pairs with utilities, and triplets with margins, for one side of a split of queries.

Queries are split into the sides `train` and `test`, and only one side is written. The side depends on the set of words
of a query. Queries that differ only in case, punctuation, or the order of their words are therefore on the same side.
With a file of evaluation queries, the test side consists of these queries and of all queries with the same words.

The utility of a passage is its score in the ranking, or its grade if the judge did not order it, on a scale from 0 to
1. A passage is a positive if its grade is at least `binary_at`. All negatives of a positive were judged, and have a
lower grade and utility. Positives and their near-duplicates are never negatives. Near-duplicates are those that the run
found, and passages with the same set of words. A negative must also be worse with a confidence of at least
`MIN_CONFIDENCE`. The confidence comes from the posterior of the ranking, or else from the probabilities that the judge
states. If neither is known, the grades must differ by at least two.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import ClassVar

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, Passage, RankRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.files import read_whole
from raggs.base.hashing import derive_seed, hash_value
from raggs.golden.base import GoldenContent, GoldenQuery, GoldenSet
from raggs.golden.formats import TEST, TRAIN, Exporter, write_objects

MAX_NEGATIVES = 5  # per positive
MIN_CONFIDENCE = 0.9  # probability that a negative is worse than its positive
CLEAR_GRADES = 2  # minimum difference of the grades of a positive and a negative whose uncertainty is unknown
RANGE = 2.0**64
DIGITS = 4  # decimals of utilities, margins and confidences


def words_key(text: str) -> str:
    """Return a hash of the set of words of a text, without case, punctuation, order and repetitions."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return hash_value(sorted(set(words)) or [text])


class QuerySplit:
    """The side of each query: `train` or `test`.

    Args:
        share: share of the test side, 0 to 1, if no evaluation queries are named.
        named: keys of the evaluation queries (see `words_key`); None to split by a hash.
    """

    def __init__(self, share: float, named: frozenset[str] | None = None) -> None:
        self._share, self._named = share, named

    def side(self, text: str) -> str:
        """Return the side of a query."""
        key = words_key(text)
        if self._named is not None:
            return TEST if key in self._named else TRAIN
        return TEST if derive_seed(0, "training", key) < self._share * RANGE else TRAIN

    @classmethod
    def of(cls, golden: GoldenSet, share: float, evaluation: Path | None) -> QuerySplit:
        """Return the split of a set.

        Args:
            evaluation: file with one id of an evaluation query per line; None to split by a hash.

        Raises:
            UsageError: the share is not in 0..1.
            NotFoundError: the file is missing.
            DataError: the file names a query that the set does not contain, or no query at all.
        """
        if not 0 <= share <= 1:
            raise UsageError(f"--test-share {share:g} is not in 0..1", remedy="use e.g. 0.2")
        if evaluation is None:
            return cls(share)
        lines = read_whole(evaluation).decode("utf-8", "replace").splitlines()
        wanted = {line.strip(): number for number, line in reversed(list(enumerate(lines, start=1))) if line.strip()}
        if not wanted:
            raise DataError("names no query", where=evaluation, remedy="write one query id per line")
        found = {query.qid: words_key(query.text) for query in golden.queries() if query.qid in wanted}
        if missing := [qid for qid in wanted if qid not in found]:
            first = min(missing, key=lambda qid: wanted[qid])
            remedy = "correct the id, or remove the line"
            raise DataError(f"the set has no query {first!r}", where=evaluation, line=wanted[first], remedy=remedy)
        return cls(share, frozenset(found.values()))


@dataclass(frozen=True)
class TrainingPassage:
    """A judged passage of a query.

    Attributes:
        graded, placed: its judgment, and its place in the ranking; `placed` is None if the judge did not order it.
        group: id of the representative of its near-duplicates.
        utility: its worth, 0 to 1.
    """

    passage: Passage
    graded: JudgeRecord
    placed: RankRecord | None
    group: str
    utility: float

    @property
    def grade(self) -> int:
        """Its grade, 1 to 5."""
        return self.graded.grade or MIN_GRADE

    @property
    def keys(self) -> frozenset[str]:
        """Keys of which near-duplicates have at least one in common: ids, and a hash of the words."""
        return frozenset({self.passage.doc_id, self.group, words_key(self.passage.content)})


def judged_passages(query: GoldenQuery) -> list[TrainingPassage]:
    """Return the passages of a query that have a grade and a text, best fused passage first."""
    texts = {passage.doc_id: passage for passage in query.pool}
    places = {record.doc_id: record for record in query.order if record.exposures and not record.unordered}
    found = []
    for graded in query.grades:
        passage, placed = texts.get(graded.doc_id), places.get(graded.doc_id)
        if graded.grade is None or passage is None:
            continue
        score = graded.grade if placed is None else placed.score
        utility = (min(MAX_GRADE, max(MIN_GRADE, score)) - MIN_GRADE) / (MAX_GRADE - MIN_GRADE)
        group = graded.duplicate_of or (placed.duplicate_of if placed else None) or graded.doc_id
        found.append(TrainingPassage(passage, graded, placed, group, utility))
    return found


def confidence(better: TrainingPassage, worse: TrainingPassage) -> float | None:
    """Return the probability that the first passage is truly better; None if their uncertainty is unknown."""
    one, other = better.placed, worse.placed
    if one is not None and other is not None and (spread := math.hypot(one.sigma, other.sigma)) > 0:
        return NormalDist().cdf((one.score - other.score) / spread)
    mine, theirs = better.graded.distribution, worse.graded.distribution
    if mine is None or theirs is None:
        return None
    return sum(share * sum(theirs[:place]) for place, share in enumerate(mine))


@dataclass(frozen=True)
class TrainingTriplet:
    """A positive, one of its hard negatives, the difference of their utilities, and the `confidence` in their order."""

    positive: TrainingPassage
    negative: TrainingPassage
    margin: float
    sure: float | None


def triplets_of(passages: list[TrainingPassage], least: int) -> Iterator[TrainingTriplet]:
    """Yield the triplets of a query: for each positive, up to `MAX_NEGATIVES` negatives, best fused passage first.

    Of near-duplicates, only the first is used, among the positives and among the negatives.

    Args:
        least: lowest grade of a positive.
    """
    positives = [each for each in passages if each.grade >= least]
    taken = {key for each in positives for key in each.keys}
    others = [each for each in passages if not each.keys & taken]
    for positive in _without_copies(positives):
        worse = [triplet for each in _without_copies(others) if (triplet := _triplet(positive, each)) is not None]
        yield from worse[:MAX_NEGATIVES]


def _without_copies(passages: list[TrainingPassage]) -> Iterator[TrainingPassage]:
    seen: set[str] = set()
    for each in passages:
        if not each.keys & seen:
            yield each
        seen |= each.keys


def _triplet(positive: TrainingPassage, negative: TrainingPassage) -> TrainingTriplet | None:
    margin = round(positive.utility - negative.utility, DIGITS)
    if negative.grade >= positive.grade or margin <= 0:
        return None
    sure = confidence(positive, negative)
    clear = positive.grade - negative.grade >= CLEAR_GRADES if sure is None else sure >= MIN_CONFIDENCE
    return TrainingTriplet(positive, negative, margin, sure) if clear else None


class TrainingExporter(Exporter):
    """Base of exporters of training data. They write the queries of one side of the split."""

    TRAINING: ClassVar[bool] = True
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = None

    def sides(self, golden: GoldenSet) -> Iterator[tuple[GoldenQuery, list[TrainingPassage]]]:
        """Yield the queries of the exported side with their judged passages, sorted by id."""
        side_of = self.options.side_of or QuerySplit(0.0).side
        for query in golden.by_query():
            if query.query is not None and side_of(query.query.text) == self.options.side:
                yield query, judged_passages(query)


def _pair_objects(exporter: TrainingExporter, golden: GoldenSet) -> Iterator[Mapping[str, object]]:
    for query, passages in exporter.sides(golden):
        text = query.query.text if query.query else ""
        for each in passages:
            yield {"anchor": text, "positive": each.passage.raw, "score": round(each.utility, DIGITS)}


class SentenceTransformersExporter(TrainingExporter):
    """sentence-transformers: triplets with margins, and pairs with utilities.

    `triplets.jsonl` has the columns anchor, positive, negative and score (the margin: difference of utilities).
    `pairs.jsonl` has the columns anchor, positive and score (the utility of any judged passage, 0 to 1).
    """

    FORMAT: ClassVar[str] = "sentence-transformers"

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write both files; see `Exporter.write`."""
        made = {"triplets.jsonl": self._triplets(golden), "pairs.jsonl": _pair_objects(self, golden)}
        files = {name: {"rows": write_objects(folder / name, rows)} for name, rows in made.items()}
        return [*(folder / name for name in files), self.write_sidecar(golden, folder, files, side=self.options.side)]

    def _triplets(self, golden: GoldenSet) -> Iterator[Mapping[str, object]]:
        for query, passages in self.sides(golden):
            for each in triplets_of(passages, self.options.scale.binary_at):
                yield {
                    "anchor": query.query.text if query.query else "",
                    "positive": each.positive.passage.raw,
                    "negative": each.negative.passage.raw,
                    "score": each.margin,
                }


class PairsExporter(TrainingExporter):
    """Pairs of a query and a judged passage, with grade, utility and its uncertainty.

    `pairs.jsonl` has one line per judged passage: qid, query, doc_id, passage, grade, utility (0 to 1) and sigma
    (standard error of the utility; null if unknown).
    """

    FORMAT: ClassVar[str] = "pairs-jsonl"

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write the file; see `Exporter.write`."""
        rows = write_objects(folder / "pairs.jsonl", self._pairs(golden))
        files = {"pairs.jsonl": {"rows": rows}}
        return [folder / "pairs.jsonl", self.write_sidecar(golden, folder, files, side=self.options.side)]

    def _pairs(self, golden: GoldenSet) -> Iterator[Mapping[str, object]]:
        for query, passages in self.sides(golden):
            for each in passages:
                sigma = None if each.placed is None else round(each.placed.sigma / (MAX_GRADE - MIN_GRADE), DIGITS)
                yield {
                    "qid": query.qid,
                    "query": query.query.text if query.query else "",
                    "doc_id": each.passage.doc_id,
                    "passage": each.passage.raw,
                    "grade": each.grade,
                    "utility": round(each.utility, DIGITS),
                    "sigma": sigma,
                }
