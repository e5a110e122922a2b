"""Positions and texts of a golden set's passages, and projection of its grades to another chunking.

When grades are projected to another corpus, its texts are compared with the judged ones. If a passage and a judged
passage overlap, their texts must be equal in the overlap. Otherwise, raggs stops with an error.

Both corpora must be chunked from the same documents. A document is identified by its name in the corpus. Only positions
of the corpus are kept, no texts. Candidates for the best possible list are the passages of the corpus that overlap a
judged passage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.artifacts import MergeRecord, Passage, Span
from raggs.base.errors import DataError
from raggs.base.text import shorten
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import DataOrigin, Judgments
from raggs.metrics.columns import IdColumn, Qrels, Run
from raggs.metrics.hits import Ties, find_hits
from raggs.metrics.spans import (
    DocumentOffsets,
    JudgedSpans,
    ProjectedPassages,
    ProjectionRule,
    SpanIndex,
    Spans,
    new_characters,
    project,
)
from raggs.metrics.spans.columns import SpanPlace
from raggs.metrics.spans.projection import merge_stretches
from raggs.metrics.spans.scores import RetrievedSpans
from raggs.parts.file_shapes import RELEVANT

Lookup = Callable[[Iterable[str]], Mapping[str, Passage]]
SAME_DOCUMENTS_REMEDY = "project onto a corpus of the same documents, or judge its passages again"


class JudgedText:
    """The judged text of documents, as stretches that neither overlap nor touch.

    Args:
        golden: name of the golden set, for messages.
    """

    def __init__(self, golden: str) -> None:
        self._golden = golden
        self._passages: dict[Span, str] = {}

    @property
    def sources(self) -> set[str]:
        """The documents."""
        return {span.source for span in self._passages}

    def paint(self, passage: Passage) -> None:
        """Record the text at a passage's position.

        Raises:
            DataError: the passage has no position, or another text was recorded there.
        """
        span, text = placed_text(passage, self._golden)
        if self._passages.setdefault(span, text) != text:
            raise self._differs(_describe_place(passage.doc_id, span), self._golden)

    def check(self, passage: Passage, place: Path | str) -> Span:
        """Return a passage's position if its text equals the judged text where they overlap.

        Raises:
            DataError: the passage has no position, or another text there.
        """
        span, text = placed_text(passage, place)
        starts, stretches = self._stretches.get(span.source, ([], []))
        for begin, judged in stretches[max(0, bisect_right(starts, span.start) - 1) :]:
            low, high = max(begin, span.start), min(begin + len(judged), span.end)
            if begin >= span.end:
                break
            if low < high and judged[low - begin : high - begin] != text[low - span.start : high - span.start]:
                raise self._differs(_describe_place(passage.doc_id, span), place)
        return span

    @cached_property
    def _stretches(self) -> dict[str, tuple[list[int], list[tuple[int, str]]]]:
        """Starts of stretches and the stretches, by document.

        Raises:
            DataError: two judged passages overlap and differ there.
        """
        found = {}
        ordered = sorted(self._passages, key=lambda span: (span.source, span.start, span.end))
        for source, spans in groupby(ordered, key=lambda span: span.source):
            joined = list(self._joined(spans))
            found[source] = [begin for begin, _ in joined], joined
        return found

    def _joined(self, spans: Iterable[Span]) -> Iterator[tuple[int, str]]:
        """Yield the stretches of one document. Passages that overlap or touch are joined."""
        pieces: list[str] = []
        begin, far = 0, (-1, "")  # the passage that ends last: every overlap with the stretch is an overlap with it
        for span in spans:
            text, end = self._passages[span], far[0] + len(far[1])
            if span.start > end or not pieces:
                if pieces:
                    yield begin, "".join(pieces)
                begin, pieces, end = span.start, [], span.start
            elif not far[1][span.start - far[0] :].startswith(text[: end - span.start]):
                raise self._differs(f"at {span.source}[{span.start}:{span.end}]", self._golden)
            if span.end > end or not pieces:
                pieces.append(text[end - span.start :])
                far = span.start, text
        if pieces:
            yield begin, "".join(pieces)

    def _differs(self, passage: str, place: Path | str) -> DataError:
        return DataError(
            f"the text of the passage {passage} differs from the text that {self._golden} was judged on: "
            "the document has changed, or its characters are counted differently",
            where=place,
            remedy=SAME_DOCUMENTS_REMEDY,
        )


def _describe_place(doc_id: str, span: Span) -> str:
    return f"{doc_id} at {span.source}[{span.start}:{span.end}]"


def same_documents(one: Path | str, other: Path | str) -> bool:
    """Return whether the passages of two run directories are from the same documents."""
    return bool(_documents(Path(one)) & _documents(Path(other)))


def _documents(folder: Path) -> set[str]:
    """Return the documents with passages in the pools of a run; empty if the folder is not a run."""
    from raggs.runs.manifests.open_run import OpenedRun  # imported lazily: files need no manifests
    from raggs.runs.manifests.store import RunStore

    store = RunStore(folder)
    if not folder.is_dir() or not store.exists:
        return set()
    records = OpenedRun(store, store.manifest()).typed("merge", MergeRecord)
    return {record.span.source for record in records if record.span}


def placed_text(passage: Passage, place: Path | str) -> tuple[Span, str]:
    """Return a passage's position, and its characters there. A breadcrumb may precede them in the text, so they are the
    last characters.

    Raises:
        DataError: the passage has no position, or its text is shorter than the position.
    """
    if passage.span is None:
        raise DataError(
            f"passage {passage.doc_id} has no position in a document",
            where=place,
            remedy="use a corpus of type folder, or give each passage a span with source, start and end",
        )
    length = passage.span.end - passage.span.start
    if len(passage.text) < length:
        raise DataError(
            f"passage {passage.doc_id} has {len(passage.text)} characters, but its span "
            f"{passage.span.source}[{passage.span.start}:{passage.span.end}] has {length}",
            where=place,
            remedy="the text must be the slice of the document that the span describes",
        )
    return passage.span, passage.text[-length:]


@dataclass(frozen=True)
class JudgedPlaces:
    """The judged positions of a golden set.

    Attributes:
        golden: the grades.
        query, grade: query and grade of each position.
        spans: the positions.
        canvas: the judged text of each document.
    """

    golden: Judgments
    query: Ints
    grade: Ints
    spans: tuple[Span, ...]
    canvas: JudgedText


def judged_places(golden: GoldenSet, judgments: Judgments, lookup: Lookup | None = None) -> JudgedPlaces:
    """Return the positions of all passages with a grade.

    Args:
        golden: the set whose pools contain the passages.
        judgments: its grades.
        lookup: returns passages of the judged corpus by id, if the set does not contain them.

    Raises:
        NotFoundError: the corpus does not contain a judged passage.
        DataError: a judged passage has no position, or two judged passages have different texts at the same position.
    """
    qrels = judgments.qrels
    rows = np.flatnonzero(qrels.grade >= 0)
    ids = [name.decode() for name in qrels.docs.take(rows).tolist()]
    wanted = set(ids)
    passages = lookup(wanted) if lookup else _pooled_passages(golden, wanted)
    canvas, places = JudgedText(golden.source), dict[str, Span]()
    for row, doc_id in zip(rows.tolist(), ids, strict=True):
        passage = passages.get(doc_id)
        if passage is None or passage.span is None:
            raise _no_place(golden, qrels.qids[qrels.query[row]], doc_id)
        if doc_id not in places:
            canvas.paint(passage)
            places[doc_id] = passage.span
    return JudgedPlaces(judgments, qrels.query[rows], qrels.grade[rows], tuple(places[name] for name in ids), canvas)


def _pooled_passages(golden: GoldenSet, wanted: Collection[str]) -> dict[str, Passage]:
    pools = (query.pool for query in golden.by_query("pool"))
    return {passage.doc_id: passage for pool in pools for passage in pool if passage.doc_id in wanted}


def _no_place(golden: GoldenSet, qid: str, doc_id: str) -> DataError:
    return DataError(
        f"query {qid}: the judged passage {doc_id} has no position in a document, so its grade cannot be "
        "projected to another chunking",
        where=golden.source,
        remedy="use a run directory whose corpus has positions (type folder, or a span for each passage); for "
        "labels in a file, give the configuration of their corpus with --corpus golden=CONFIG",
    )


MAX_SHOWN_IDS = 3
DEFAULT_RULE = ProjectionRule()


@dataclass(frozen=True)
class PassagePlaces:
    """The positions of a corpus's passages.

    Attributes:
        place: location of the corpus, for messages.
        ids: ids of the passages.
        sources: its documents, by number.
        spans: the positions.
    """

    place: Path | str
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    spans: Spans

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row of each passage by id."""
        return {doc_id: row for row, doc_id in enumerate(self.ids)}


@dataclass(frozen=True)
class Projection:
    """A golden set projected to the passages of another corpus.

    Attributes:
        judged: the judged positions.
        cut: positions of the corpus's passages.
        rule: rule for the grades of overlapping passages.
        origin: origin of the projected grades: the corpus.
    """

    judged: JudgedPlaces
    cut: PassagePlaces
    rule: ProjectionRule
    origin: DataOrigin = field(default=DataOrigin())

    @cached_property
    def judgments(self) -> Judgments:
        """The projected grades. Every query of the golden set is included, even without remaining grades."""
        golden, found = self.judged.golden, self.projected
        docs = IdColumn.of(self.cut.ids[row] for row in found.passage.tolist())
        qrels = Qrels(golden.qrels.qids, found.query, found.grade, docs, golden.qrels.scale)
        return Judgments(
            golden.source,
            qrels,
            origin=self.origin,
            warnings=golden.warnings,
            sources=golden.sources,
            version=golden.version,
        )

    @cached_property
    def projected(self) -> ProjectedPassages:
        """The passages that overlap a judged position: the candidates of the best possible list."""
        return project(self.painted, self.cut.spans, self.rule)

    @cached_property
    def painted(self) -> JudgedSpans:
        """The judged positions, numbered by the corpus's documents. Missing documents are numbered after them."""
        numbers = {name: number for number, name in enumerate(self.cut.sources)}
        spans = Spans.of(
            (numbers.setdefault(span.source, len(numbers)), span.start, span.end) for span in self.judged.spans
        )
        lengths = np.zeros(len(numbers), dtype=np.int64)
        for each in (spans, self.cut.spans):
            np.maximum.at(lengths, each.document, each.end)
        qids = self.judged.golden.qrels.qids
        return JudgedSpans(len(qids), spans, self.judged.query, self.judged.grade, DocumentOffsets.of(lengths.tolist()))

    @cached_property
    def lost(self) -> float:
        """Share of the judged characters that no passage of the corpus contains."""
        line, spans, nobody = self.painted.line, self.painted.spans, np.zeros(len(self.painted.query), dtype=np.int64)
        wanted = merge_stretches(nobody, line.starts(spans), line.ends(spans), line.length)
        cut = np.zeros(len(self.cut.ids), dtype=np.int64)
        held = merge_stretches(cut, line.starts(self.cut.spans), line.ends(self.cut.spans), line.length)
        one, other = SpanIndex(held.starts, held.ends).overlapping(wanted.starts, wanted.ends)
        both = np.minimum(wanted.ends[one], held.ends[other]) - np.maximum(wanted.starts[one], held.starts[other])
        return 1.0 - float(both.sum()) / float(wanted.lengths.sum())

    @cached_property
    def lengths(self) -> tuple[float, float]:
        """Median lengths of the judged passages, and of the passages that overlap them, in characters."""
        spans, places = self.painted.spans, self._places(self.projected.passage)
        return float(np.median(spans.end - spans.start)), float(np.median(places.end - places.start))

    def reading(self, run: Run, ties: Ties, where: str) -> RetrievedSpans:
        """Return the hits of a system for the judged queries as spans of characters.

        Args:
            run: lists of this corpus.
            ties: order of equal scores.
            where: the system's file, for messages.

        Raises:
            DataError: a passage of a judged query is not in this corpus.
        """
        golden, line = self.judged.golden.qrels, self.painted.line
        query, passage = self._retrieved(run, where)
        docs = IdColumn.of(self.cut.ids[row] for row in passage.tolist())
        everything = Qrels(golden.qids, query, np.full(len(query), golden.scale.low), docs, golden.scale)
        hits = find_hits(everything, run, ties)
        query, passage = hits.query, passage[hits.item]
        spans, wanted = self._places(passage), self.painted.from_grade(RELEVANT, self.rule.overlap)
        return RetrievedSpans(
            query,
            hits.rank,
            spans.end - spans.start,
            self._judged(query, passage),
            new_characters(wanted, spans, query, hits.rank, line),
            np.bincount(wanted.query, wanted.lengths, len(golden.qids)).astype(np.int64),
        )

    def _retrieved(self, run: Run, where: str) -> tuple[Ints, Ints]:
        """Return query and passage of each row of a judged query, sorted by query."""
        numbers = {qid: number for number, qid in enumerate(self.judged.golden.qrels.qids)}
        known = np.array([numbers.get(qid, -1) for qid in run.qids], dtype=np.int64)[run.query]
        rows = np.flatnonzero(known >= 0)
        rows = rows[np.argsort(known[rows], kind="stable")]
        ids = [name.decode() for name in run.docs.take(rows).tolist()]
        found = [self.cut.rows.get(doc_id, -1) for doc_id in ids]
        if -1 in found:
            at = found.index(-1)
            qid, doc_id = run.qids[run.query[rows[at]]], ids[at]
            raise DataError(
                f"query {qid}: passage {shorten(doc_id, 60)} is not in the corpus {self.cut.place}",
                where=where,
                remedy="give the configuration of the lists' corpus with --corpus CONFIG",
            )
        return known[rows], np.array(found, dtype=np.int64)

    def _places(self, passage: Ints) -> Spans:
        spans = self.cut.spans
        return Spans(spans.document[passage], spans.start[passage], spans.end[passage])

    def _judged(self, query: Ints, passage: Ints) -> Ints:
        """Return the number of judged characters in each retrieved passage."""
        found, width = self.projected, max(1, len(self.cut.ids))
        keys, wanted = found.query * width + found.passage, query * width + passage
        at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        spans = self._places(passage)
        share = np.where(keys[at] == wanted, found.share[at], 0.0)
        characters: Ints = np.rint(share * (spans.end - spans.start)).astype(np.int64)
        return characters


def project_onto(
    judged: JudgedPlaces,
    corpus: Iterable[Passage],
    content: str,
    place: Path | str,
    rule: ProjectionRule = DEFAULT_RULE,
) -> Projection:
    """Return a projection of a golden set's grades to the passages of a corpus.

    Args:
        judged: the judged positions.
        corpus: all passages.
        content: hash of the corpus.
        place: location of the corpus, for messages.
        rule: rule for the grades of overlapping passages.

    Raises:
        DataError: a passage has no position or a different text there, no passage is from a judged document, or none
            overlaps a judged passage.
    """
    cut = _passage_places(corpus, judged.canvas, place)
    if not judged.canvas.sources & set(cut.sources):
        raise DataError(
            f"contains none of the documents of {judged.golden.source}: the judged documents are "
            f"{_shorten_ids(judged.canvas.sources)}, but it contains {_shorten_ids(cut.sources)}",
            where=place,
            remedy=SAME_DOCUMENTS_REMEDY,
        )
    found = Projection(judged, cut, rule, DataOrigin(content))
    if not len(found.projected.query):
        raise DataError(
            f"no passage overlaps a judged passage of {judged.golden.source}", where=place, remedy=SAME_DOCUMENTS_REMEDY
        )
    return found


def _passage_places(corpus: Iterable[Passage], canvas: JudgedText, place: Path | str) -> PassagePlaces:
    numbers: dict[str, int] = {}
    ids: list[str] = []
    places: list[SpanPlace] = []
    for passage in corpus:
        span = canvas.check(passage, place)
        ids.append(passage.doc_id)
        places.append((numbers.setdefault(span.source, len(numbers)), span.start, span.end))
    return PassagePlaces(place, tuple(ids), tuple(numbers), Spans.of(places))


def _shorten_ids(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:MAX_SHOWN_IDS]) + (", …" if len(ordered) > MAX_SHOWN_IDS else "") or "none"
