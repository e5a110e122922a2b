"""Judgments of a sweep: grades that unjudged passages get later, references, and grades projected onto other chunks.

Grades of unjudged passages are stored in the sweep's folder, in `holes.jsonl`. The golden set is not changed.

Measures by references count characters of the excerpts that answer a question, so they favour no chunking. Measures by
graded passages favour the judged chunking, because whole chunks count. The formulas are those of `span_recall4` and
`span_precision4`, with references instead of grades.

Systems with the chunks of the golden set are scored by its grades, all others by projected grades
(`raggs.golden.places`). The projection needs only positions and grades, so an audit can repeat it from the sweep's
folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.artifacts import MAX_GRADE, Frozen, JudgeRecord, Query, Span, names_of
from raggs.base.cache import OnceCache
from raggs.base.jsonl import Appender, read_torn
from raggs.golden.judgments import DataOrigin, Judgments
from raggs.golden.places import DEFAULT_RULE, JudgedPlaces, PassagePlaces, Projection
from raggs.metrics.columns import IdColumn, Qrels, RankedUtilities, Run, UtilityEstimates, belief_of
from raggs.metrics.hits import Hits, Ties
from raggs.metrics.names import parse_measure
from raggs.metrics.spans import Spans
from raggs.stats.annotation_value import UnjudgedPassage, order_holes
from raggs.sweeps.models import CutPart
from raggs.sweeps.outputs import Lists

TERMS = {
    "reference_recall": "Share of the characters of the question's references that the top k holds, each counted once",
    "reference_precision": "Share of the retrieved characters that are part of the question's references",
}
BY_GRADES = dict(zip(TERMS, ("span_recall4", "span_precision4"), strict=True))
References = Mapping[str, Sequence[Span]]


def references_of(queries: Iterable[Query]) -> References:
    """Return the references by question, for questions of which all references have a position."""
    found = {query.qid: [each.span for each in query.references] for query in queries}
    return {qid: [span for span in spans if span] for qid, spans in found.items() if spans and None not in spans}


def is_reference(name: str) -> bool:
    """Return whether this is a measure by references, with its required cutoff."""
    stem, at, cutoff = name.partition("@")
    return stem in TERMS and at == "@" and cutoff.isdigit() and int(cutoff) > 0


@dataclass(frozen=True)
class Excerpts:
    """The references of questions, projected onto the passages of one chunking.

    Attributes:
        places: projection of the golden set onto these passages.
        references: references by query.
    """

    places: Projection
    references: References

    def values(self, names: Iterable[str], hits: Hits, run: Run, ties: Ties, where: str) -> dict[str, Floats]:
        """Return a value per judged query by measure; NaN if the query has no references in the corpus.

        Args:
            names: of measures, with their cutoffs.
            hits: ranks of judged passages.
            run: lists of the chunks.
            ties: order of equal scores.
            where: name of the system, for messages.
        """
        read = replace(hits, reading=self.marked.reading(run, ties, where))
        told = ((name, name.partition("@")) for name in names)
        return {name: parse_measure(f"{BY_GRADES[stem]}@{k}").values(read) for name, (stem, _, k) in told}

    @cached_property
    def marked(self) -> Projection:
        """Projection of the references, as if only they were judged."""
        qids = self.places.judged.golden.qrels.qids
        own = self.places.cut.sources
        sources = {names_of(source)[1]: source for source in own} | {source: source for source in own}
        rows = [
            (query, span.model_copy(update={"source": sources.get(span.source, span.source)}))
            for query, qid in enumerate(qids)
            for span in self.references.get(qid, ())
        ]
        query = np.array([row for row, _ in rows], dtype=np.int64)
        judged = replace(
            self.places.judged, query=query, grade=np.full(len(query), MAX_GRADE), spans=tuple(span for _, span in rows)
        )
        return replace(self.places, judged=judged)


def of_queries(judgments: Judgments, qids: Collection[str]) -> Judgments:
    """Return the grades of some queries. If a query is removed, the uncertainty of the grades is dropped, because it is
    for the whole set.
    """
    qrels, wanted = judgments.qrels, set(qids)
    kept = tuple(qid for qid in qrels.qids if qid in wanted)
    if len(kept) == len(qrels.qids):
        return judgments
    number = {qid: at for at, qid in enumerate(kept)}
    renumbered = np.array([number.get(qid, -1) for qid in qrels.qids], dtype=np.int64)
    rows = np.flatnonzero(renumbered[qrels.query] >= 0)
    belief = None if qrels.belief is None else qrels.belief.taken(rows)
    part = Qrels(kept, renumbered[qrels.query[rows]], qrels.grade[rows], _docs(qrels, rows), qrels.scale, belief)
    return replace(judgments, qrels=part, doubt=None)


def graded_ids(judgments: Judgments) -> dict[str, dict[str, int]]:
    """Return the graded passages by query, with their grades."""
    qrels = judgments.qrels
    found: dict[str, dict[str, int]] = {qid: {} for qid in qrels.qids}
    docs = qrels.docs.take(np.arange(len(qrels.docs))).tolist()
    for number, doc, grade in zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True):
        if grade >= 0:
            found[qrels.qids[number]][doc.decode()] = grade
    return found


def with_grades(judgments: Judgments, more: Mapping[str, Mapping[str, int]]) -> Judgments:
    """Return the judgments with additional grades, by query and passage. Existing grades are not changed."""
    known = graded_ids(judgments)
    labels = {qid: {**more.get(qid, {}), **found} for qid, found in known.items()}
    qrels = Qrels.of(labels, judgments.qrels.scale)
    if judgments.qrels.belief is not None:
        pairs = ((qid, doc_id) for qid in qrels.qids for doc_id in labels[qid])
        qrels = replace(qrels, belief=belief_of(pairs, _ranked_places(judgments.qrels, judgments.qrels.belief)))
    return replace(judgments, qrels=qrels, doubt=None)


def _ranked_places(qrels: Qrels, belief: UtilityEstimates) -> RankedUtilities:
    rows = np.flatnonzero(belief.ranked)
    docs = map(bytes.decode, qrels.docs.take(rows).tolist())
    qids = (qrels.qids[number] for number in qrels.query[rows].tolist())
    places = zip(belief.score[rows].tolist(), belief.sigma[rows].tolist(), strict=True)
    return dict(zip(zip(qids, docs, strict=True), places, strict=True))


def _docs(qrels: Qrels, rows: Ints) -> IdColumn:
    return IdColumn([qrels.docs.take(rows)])


HOLES = "holes.jsonl"
REMEDY = "delete the line and run the sweep again; paid answers are cached"


def find_holes(judgments: Judgments, lists: Iterable[Lists], cutoffs: Sequence[int]) -> tuple[UnjudgedPassage, ...]:
    """Return all unjudged passages in the top of any system. Passages with the largest possible effect come first.

    Args:
        judgments: the existing grades.
        lists: of each system.
        cutoffs: of the measures.
    """
    known, relevant = graded_ids(judgments), judgments.qrels.scale.relevant
    useful = {qid: sum(grade >= relevant for grade in grades.values()) for qid, grades in known.items()}
    tops = ((1.0, {qid: [doc_id for doc_id, _ in hits] for qid, hits in each.items()}) for each in lists)
    return order_holes(tops, known, useful, cutoffs)


def with_holes(judgments: Judgments, folder: Path) -> Judgments:
    """Return the judgments with the grades of `holes.jsonl`."""
    found: dict[str, dict[str, int]] = {}
    for record in read_holes(folder):
        if record.grade is not None:
            found.setdefault(record.qid, {})[record.doc_id] = record.grade
    return with_grades(judgments, found) if found else judgments


def read_holes(folder: Path) -> list[JudgeRecord]:
    """Return the stored grades of holes (unjudged passages).

    Raises:
        DataError: a line is damaged.
    """
    return list(read_torn(folder / HOLES, JudgeRecord, REMEDY))


def keep_holes(folder: Path, records: Iterable[JudgeRecord]) -> None:
    """Append grades of holes (unjudged passages) to the file."""
    with Appender(folder / HOLES) as file:
        for record in records:
            file.append(record)


class PlaceRow(Frozen):
    """Record of places.jsonl: position of a chunk that a system returns or that overlaps a judged passage or a
    reference.
    """

    cut: str
    doc_id: str
    span: Span


@dataclass(frozen=True)
class ChunkingJudgments:
    """Judgments for the systems of one chunking.

    Attributes:
        part: the chunking.
        places: the golden set on its chunks, by position.
        excerpts: references of the questions; None if no question states their positions.
    """

    part: CutPart
    places: Projection
    excerpts: Excerpts | None = None

    @property
    def projection(self) -> Projection | None:
        """Projection of the grades; None if the golden set was judged on this chunking."""
        return None if self.part.golden else self.places


class ChunkingGrades:
    """All chunkings, and the grades of their chunks.

    Args:
        judged: the golden set by position, with all queries.
        labels: grades for scoring. They may be for some of the queries only, and include later grades of passages in
            the judged chunking.
        cuts: chunks of each chunking by position; for an audit at least those in lists, grades and references.
        references: of the questions.
    """

    def __init__(
        self,
        judged: JudgedPlaces,
        labels: Judgments,
        cuts: Sequence[tuple[CutPart, PassagePlaces]],
        references: References,
    ) -> None:
        self.judged, self._labels, self._references = judged, labels, references
        self._cuts = {part.label: (part, cut) for part, cut in cuts}
        self._sheets = OnceCache[ChunkingJudgments]()

    def graded(self, labels: Judgments) -> ChunkingGrades:
        """Return the same chunkings with other grades."""
        return ChunkingGrades(self.judged, labels, list(self._cuts.values()), self._references)

    @property
    def parts(self) -> tuple[CutPart, ...]:
        """The chunkings."""
        return tuple(part for part, _ in self._cuts.values())

    def sheet(self, label: str) -> ChunkingJudgments:
        """Return the judgments with which the systems of a chunking are scored."""
        return self._sheets(label, lambda: self._made(*self._cuts[label]))

    def rows(self, shown: Mapping[str, Iterable[str]]) -> Iterator[PlaceRow]:
        """Yield the records that an audit needs to score all systems again.

        Args:
            shown: by chunking, the passages that systems return.
        """
        for label, (_, cut) in self._cuts.items():
            sheet = self.sheet(label)
            reached = set(np.unique(sheet.places.projected.passage).tolist())
            if sheet.excerpts is not None:
                reached |= set(np.unique(sheet.excerpts.marked.projected.passage).tolist())
            rows = reached | {cut.rows[doc] for doc in shown.get(label, ())}
            for row in sorted(rows):
                yield PlaceRow(cut=label, doc_id=cut.ids[row], span=_span(cut, row))

    def _made(self, part: CutPart, cut: PassagePlaces) -> ChunkingJudgments:
        places = Projection(self._of_labels, cut, DEFAULT_RULE, DataOrigin(part.content))
        marked = any(qid in self._references for qid in self._labels.qrels.qids)
        return ChunkingJudgments(part, places, Excerpts(places, self._references) if marked else None)

    @property
    def _of_labels(self) -> JudgedPlaces:
        """Return the judged positions of the sweep's queries, including later grades."""
        number = {qid: at for at, qid in enumerate(self._labels.qrels.qids)}
        new = np.array([number.get(qid, -1) for qid in self.judged.golden.qrels.qids], dtype=np.int64)
        kept = np.flatnonzero(new[self.judged.query] >= 0)
        more = list(self._since(number))
        return replace(
            self.judged,
            golden=self._labels,
            query=np.append(new[self.judged.query[kept]], np.array([query for query, _, _ in more], dtype=np.int64)),
            grade=np.append(self.judged.grade[kept], np.array([grade for _, grade, _ in more], dtype=np.int64)),
            spans=(*(self.judged.spans[row] for row in kept.tolist()), *(span for _, _, span in more)),
        )

    def _since(self, number: Mapping[str, int]) -> Iterator[tuple[int, int, Span]]:
        """Yield query, grade and position of passages that were graded after the golden set was made."""
        own = next((cut for part, cut in self._cuts.values() if part.golden), None)
        before = graded_ids(self.judged.golden)
        for qid, grades in graded_ids(self._labels).items():
            for doc in sorted(grades.keys() - before.get(qid, {}).keys()):
                if own is not None and doc in own.rows:
                    yield number[qid], grades[doc], _span(own, own.rows[doc])


def cut_of(rows: Iterable[PlaceRow], place: Path) -> PassagePlaces:
    """Return a chunking from its record in a sweep's folder."""
    found = list(rows)
    numbers: dict[str, int] = {}
    places = [(numbers.setdefault(row.span.source, len(numbers)), row.span.start, row.span.end) for row in found]
    return PassagePlaces(place, tuple(row.doc_id for row in found), tuple(numbers), Spans.of(places))


def _span(cut: PassagePlaces, row: int) -> Span:
    spans = cut.spans
    start, end = int(spans.start[row]), int(spans.end[row])
    return Span(source=cut.sources[int(spans.document[row])], start=start, end=end)
