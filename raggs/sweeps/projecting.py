"""What systems are scored against whose corpus is cut in another way than the golden set's: grades by projection.

A system of the golden set's own cut is scored by the grades as they are, any other by what its passages' characters
earned (`raggs.golden.projecting`). What a system reads of the relevant characters is measured for all of them in the
same way. From places and grades alone, so that an audit does the same from a sweep's folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raggs.base.artifacts import Span
from raggs.base.frozen import Frozen
from raggs.golden.judgments import Judgments
from raggs.golden.origin import Origin
from raggs.golden.places import JudgedPlaces
from raggs.golden.projecting import USUAL, Cut, Projection
from raggs.metrics.spans import Spans
from raggs.sweeps.excerpts import Excerpts, References
from raggs.sweeps.labels import graded_ids
from raggs.sweeps.models import CutPart
from raggs.sweeps.once import Once


class PlaceRow(Frozen):
    """places.jsonl: where a passage of a cut stands, of those that a system shows or that a judged passage overlaps."""

    cut: str
    doc_id: str
    span: Span


@dataclass(frozen=True)
class Sheet:
    """What the systems of one cut are scored by.

    Attributes:
        part: the cut.
        places: the golden set on its passages, by place.
        excerpts: the references of the questions; None where no question says where they stand.
    """

    part: CutPart
    places: Projection
    excerpts: Excerpts | None = None

    @property
    def projection(self) -> Projection | None:
        """By which grades are carried over; None where they are those of the cut itself."""
        return None if self.part.golden else self.places


class Atlas:
    """All cuts, and the grades that their passages have.

    Args:
        judged: the golden set by place, all of its questions.
        labels: the grades that are scored by: of some of its questions, maybe of more passages of its own cut.
        cuts: of each its passages by place; for an audit at least those that lists, grades and references reach.
        references: of the questions.
    """

    def __init__(
        self, judged: JudgedPlaces, labels: Judgments, cuts: Sequence[tuple[CutPart, Cut]], references: References
    ) -> None:
        self.judged, self._labels, self._references = judged, labels, references
        self._cuts = {part.label: (part, cut) for part, cut in cuts}
        self._sheets = Once[Sheet]()

    def graded(self, labels: Judgments) -> Atlas:
        """The same cuts with other grades."""
        return Atlas(self.judged, labels, list(self._cuts.values()), self._references)

    @property
    def parts(self) -> tuple[CutPart, ...]:
        """The cuts."""
        return tuple(part for part, _ in self._cuts.values())

    def sheet(self, label: str) -> Sheet:
        """What systems of a cut are scored by."""
        return self._sheets(label, lambda: self._made(*self._cuts[label]))

    def rows(self, shown: Mapping[str, Iterable[str]]) -> Iterator[PlaceRow]:
        """What must be kept so that all can be scored again.

        Args:
            shown: by cut, the passages that systems return.
        """
        for label, (_, cut) in self._cuts.items():
            sheet = self.sheet(label)
            reached = set(np.unique(sheet.places.projected.passage).tolist())
            if sheet.excerpts is not None:
                reached |= set(np.unique(sheet.excerpts.marked.projected.passage).tolist())
            rows = reached | {cut.rows[doc] for doc in shown.get(label, ())}
            for row in sorted(rows):
                yield PlaceRow(cut=label, doc_id=cut.ids[row], span=_span(cut, row))

    def _made(self, part: CutPart, cut: Cut) -> Sheet:
        places = Projection(self._of_labels, cut, USUAL, Origin(part.content))
        marked = any(qid in self._references for qid in self._labels.qrels.qids)
        return Sheet(part, places, Excerpts(places, self._references) if marked else None)

    @property
    def _of_labels(self) -> JudgedPlaces:
        """The judged places of the questions that are asked, with those that were judged since."""
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
        """Question, grade and place of passages that got a grade after the golden set was made."""
        own = next((cut for part, cut in self._cuts.values() if part.golden), None)
        before = graded_ids(self.judged.golden)
        for qid, grades in graded_ids(self._labels).items():
            for doc in sorted(grades.keys() - before.get(qid, {}).keys()):
                if own is not None and doc in own.rows:
                    yield number[qid], grades[doc], _span(own, own.rows[doc])


def cut_of(rows: Iterable[PlaceRow], place: Path) -> Cut:
    """A cut as a sweep's folder has it."""
    found = list(rows)
    numbers: dict[str, int] = {}
    places = [(numbers.setdefault(row.span.source, len(numbers)), row.span.start, row.span.end) for row in found]
    return Cut(place, tuple(row.doc_id for row in found), tuple(numbers), Spans.of(places))


def _span(cut: Cut, row: int) -> Span:
    spans = cut.spans
    start, end = int(spans.start[row]), int(spans.end[row])
    return Span(source=cut.sources[int(spans.document[row])], start=start, end=end)
