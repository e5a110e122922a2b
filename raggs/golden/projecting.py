"""A golden set carried over to a corpus that is cut in another way, by the places of its passages.

Both must be cut from the same documents. A document is known by the name that its corpus gives it. Of the corpus places
are kept, and no texts; the best possible list is made of all its passages that hold something of a judged one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.artifacts import Passage
from raggs.base.errors import DataError
from raggs.base.text import shorten
from raggs.golden.judgments import Judgments
from raggs.golden.origin import Origin
from raggs.golden.places import SAME, Canvas, JudgedPlaces
from raggs.metrics.columns import Qrels, Run
from raggs.metrics.hits import Ties, find_hits
from raggs.metrics.ids import IdColumn
from raggs.metrics.reading import Reading
from raggs.metrics.spans import Line, Painted, Projected, Rule, SpanIndex, Spans, fresh, project
from raggs.metrics.spans.columns import Place
from raggs.metrics.spans.projection import merged
from raggs.parts.readers.scales import RELEVANT

SHOWN = 3
USUAL = Rule()


@dataclass(frozen=True)
class Cut:
    """The passages of a corpus by place.

    Attributes:
        place: where the corpus lies, for messages.
        ids: of the passages.
        sources: its documents, by number.
        spans: the places.
    """

    place: Path | str
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    spans: Spans

    @cached_property
    def rows(self) -> dict[str, int]:
        """Passages by id."""
        return {doc_id: row for row, doc_id in enumerate(self.ids)}


@dataclass(frozen=True)
class Projection:
    """A golden set on the passages of another corpus.

    Attributes:
        judged: what was judged.
        cut: the corpus.
        rule: by which grades were earned.
        origin: whose grades the projected ones are: the corpus' own.
    """

    judged: JudgedPlaces
    cut: Cut
    rule: Rule
    origin: Origin = field(default=Origin())

    @cached_property
    def judgments(self) -> Judgments:
        """The grades; each query of the golden set is in it, also one of which nothing is left."""
        golden, found = self.judged.golden, self.projected
        docs = IdColumn.of(self.cut.ids[row] for row in found.passage.tolist())
        qrels = Qrels(golden.qrels.qids, found.query, found.grade, docs, golden.qrels.scale)
        return Judgments(golden.source, qrels, origin=self.origin, warnings=golden.warnings, sources=golden.sources)

    @cached_property
    def projected(self) -> Projected:
        """The passages that hold something of a judged place: all that the best possible list is made of."""
        return project(self.painted, self.cut.spans, self.rule)

    @cached_property
    def painted(self) -> Painted:
        """The judged places by the corpus' documents; documents that it lacks come behind its own."""
        numbers = {name: number for number, name in enumerate(self.cut.sources)}
        spans = Spans.of(
            (numbers.setdefault(span.source, len(numbers)), span.start, span.end) for span in self.judged.spans
        )
        lengths = np.zeros(len(numbers), dtype=np.int64)
        for each in (spans, self.cut.spans):
            np.maximum.at(lengths, each.document, each.end)
        qids = self.judged.golden.qrels.qids
        return Painted(len(qids), spans, self.judged.query, self.judged.grade, Line.of(lengths.tolist()))

    @cached_property
    def lost(self) -> float:
        """The share of the judged characters that no passage of the corpus holds."""
        line, spans, nobody = self.painted.line, self.painted.spans, np.zeros(len(self.painted.query), dtype=np.int64)
        wanted = merged(nobody, line.starts(spans), line.ends(spans), line.length)
        cut = np.zeros(len(self.cut.ids), dtype=np.int64)
        held = merged(cut, line.starts(self.cut.spans), line.ends(self.cut.spans), line.length)
        one, other = SpanIndex(held.starts, held.ends).overlapping(wanted.starts, wanted.ends)
        both = np.minimum(wanted.ends[one], held.ends[other]) - np.maximum(wanted.starts[one], held.starts[other])
        return 1.0 - float(both.sum()) / float(wanted.lengths.sum())

    @cached_property
    def lengths(self) -> tuple[float, float]:
        """The median length of the judged passages, and of those of the corpus that hold something of them."""
        spans, places = self.painted.spans, self._places(self.projected.passage)
        return float(np.median(spans.end - spans.start)), float(np.median(places.end - places.start))

    def reading(self, run: Run, ties: Ties, where: str) -> Reading:
        """The lists of a system in characters.

        Args:
            run: of this corpus.
            ties: the order of equal scores.
            where: the system's file, for messages.

        Raises:
            DataError: a passage of a judged query is none of this corpus.
        """
        golden, line = self.judged.golden.qrels, self.painted.line
        query, passage = self._retrieved(run, where)
        docs = IdColumn.of(self.cut.ids[row] for row in passage.tolist())
        everything = Qrels(golden.qids, query, np.full(len(query), golden.scale.low), docs, golden.scale)
        hits = find_hits(everything, run, ties)
        query, passage = hits.query, passage[hits.item]
        spans, wanted = self._places(passage), self.painted.from_grade(RELEVANT, self.rule.overlap)
        return Reading(
            query,
            hits.rank,
            spans.end - spans.start,
            self._judged(query, passage),
            fresh(wanted, spans, query, hits.rank, line),
            np.bincount(wanted.query, wanted.lengths, len(golden.qids)).astype(np.int64),
        )

    def _retrieved(self, run: Run, where: str) -> tuple[Ints, Ints]:
        """Query and passage of each row of a judged query, sorted by query."""
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
                remedy="--corpus CONFIG names the configuration whose corpus the lists are of",
            )
        return known[rows], np.array(found, dtype=np.int64)

    def _places(self, passage: Ints) -> Spans:
        spans = self.cut.spans
        return Spans(spans.document[passage], spans.start[passage], spans.end[passage])

    def _judged(self, query: Ints, passage: Ints) -> Ints:
        """The judged characters of each retrieved passage."""
        found, width = self.projected, max(1, len(self.cut.ids))
        keys, wanted = found.query * width + found.passage, query * width + passage
        at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        spans = self._places(passage)
        share = np.where(keys[at] == wanted, found.share[at], 0.0)
        characters: Ints = np.rint(share * (spans.end - spans.start)).astype(np.int64)
        return characters


def project_onto(
    judged: JudgedPlaces, corpus: Iterable[Passage], content: str, place: Path | str, rule: Rule = USUAL
) -> Projection:
    """The grades of a golden set for the passages of a corpus.

    Args:
        judged: what was judged, by place.
        corpus: all passages.
        content: its hash.
        place: where it lies, for messages.
        rule: by which grades are earned.

    Raises:
        DataError: a passage has no place, or another text there; none lies in a document that was judged.
    """
    cut = _cut(corpus, judged.canvas, place)
    if not judged.canvas.sources & set(cut.sources):
        raise DataError(
            f"holds none of the documents that {judged.golden.source} was judged on: judged are "
            f"{_some(judged.canvas.sources)}, it holds {_some(cut.sources)}",
            where=place,
            remedy=SAME,
        )
    found = Projection(judged, cut, rule, Origin(content))
    if not len(found.projected.query):
        raise DataError(f"no passage stands where {judged.golden.source} judged anything", where=place, remedy=SAME)
    return found


def _cut(corpus: Iterable[Passage], canvas: Canvas, place: Path | str) -> Cut:
    numbers: dict[str, int] = {}
    ids: list[str] = []
    places: list[Place] = []
    for passage in corpus:
        span = canvas.check(passage, place)
        ids.append(passage.doc_id)
        places.append((numbers.setdefault(span.source, len(numbers)), span.start, span.end))
    return Cut(place, tuple(ids), tuple(numbers), Spans.of(places))


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:SHOWN]) + (", …" if len(ordered) > SHOWN else "") or "none"
