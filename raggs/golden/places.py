"""Where the passages of a golden set stand, with the text there: what its grades are about, whatever is cut how.

Whoever carries grades over to another corpus compares its texts with these: wherever a passage and a judged one share a
place, they must share the text, or nothing is scored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.artifacts import MergeRecord, Passage, Span
from raggs.base.errors import DataError
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments

Lookup = Callable[[Iterable[str]], Mapping[str, Passage]]
SAME = "project onto a corpus of the same documents, or judge its passages anew"


class Canvas:
    """The text of documents as far as anybody judged it, in stretches that neither overlap nor touch.

    Args:
        golden: what judged it, for messages.
    """

    def __init__(self, golden: str) -> None:
        self._golden = golden
        self._passages: dict[Span, str] = {}

    @property
    def sources(self) -> set[str]:
        """The documents."""
        return {span.source for span in self._passages}

    def paint(self, passage: Passage) -> None:
        """Note the text at a passage's place.

        Raises:
            DataError: another one was noted there.
        """
        span, text = placed_text(passage, self._golden)
        if self._passages.setdefault(span, text) != text:
            raise self._differs(_named(passage.doc_id, span), self._golden)

    def check(self, passage: Passage, place: Path | str) -> Span:
        """The place of a passage, whose text is the judged one as far as they overlap.

        Raises:
            DataError: it has no place, or another text there.
        """
        span, text = placed_text(passage, place)
        starts, stretches = self._stretches.get(span.source, ([], []))
        for begin, judged in stretches[max(0, bisect_right(starts, span.start) - 1) :]:
            low, high = max(begin, span.start), min(begin + len(judged), span.end)
            if begin >= span.end:
                break
            if low < high and judged[low - begin : high - begin] != text[low - span.start : high - span.start]:
                raise self._differs(_named(passage.doc_id, span), place)
        return span

    @cached_property
    def _stretches(self) -> dict[str, tuple[list[int], list[tuple[int, str]]]]:
        """By document, where stretches begin, and the stretches.

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
        """Stretches of one document; passages that overlap or touch become one."""
        pieces: list[str] = []
        begin, far = 0, (-1, "")  # the passage that reaches furthest: whatever overlaps the stretch overlaps it
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
            f"the text of the passage {passage} is not what {self._golden} was judged on there: the document has "
            "changed, or its characters are counted in another way",
            where=place,
            remedy=SAME,
        )


def _named(doc_id: str, span: Span) -> str:
    return f"{doc_id} at {span.source}[{span.start}:{span.end}]"


def same_documents(one: Path | str, other: Path | str) -> bool:
    """Whether two run directories say that passages of both stand in the same documents."""
    return bool(_documents(Path(one)) & _documents(Path(other)))


def _documents(folder: Path) -> set[str]:
    """The documents that the pools of a run have passages of; none of what is no run."""
    from raggs.runs.manifests.opened import OpenedRun  # late: files need no manifests
    from raggs.runs.manifests.store import RunStore

    store = RunStore(folder)
    if not folder.is_dir() or not store.exists:
        return set()
    records = OpenedRun(store, store.manifest()).typed("merge", MergeRecord)
    return {record.span.source for record in records if record.span}


def placed_text(passage: Passage, place: Path | str) -> tuple[Span, str]:
    """A passage's place, and the characters of it that stand there: the last ones, for a breadcrumb may stand above.

    Raises:
        DataError: it has no place, or fewer characters than it.
    """
    if passage.span is None:
        raise DataError(
            f"passage {passage.doc_id} has no place in a document",
            where=place,
            remedy="use a corpus of type folder, or give each passage a span of source, start and end",
        )
    length = passage.span.end - passage.span.start
    if len(passage.text) < length:
        raise DataError(
            f"passage {passage.doc_id} has {len(passage.text)} characters, and its place {passage.span.source}"
            f"[{passage.span.start}:{passage.span.end}] has {length}",
            where=place,
            remedy="let the text be the slice of the document that the span names",
        )
    return passage.span, passage.text[-length:]


@dataclass(frozen=True)
class JudgedPlaces:
    """What a golden set judged, by place.

    Attributes:
        golden: whose grades they are.
        query, grade: of each judged place.
        spans: the places.
        canvas: the judged text of each document.
    """

    golden: Judgments
    query: Ints
    grade: Ints
    spans: tuple[Span, ...]
    canvas: Canvas


def judged_places(golden: GoldenSet, judgments: Judgments, lookup: Lookup | None = None) -> JudgedPlaces:
    """The places of all passages that have a grade.

    Args:
        golden: whose pools hold the passages.
        judgments: its grades.
        lookup: gives passages of the corpus that was judged by id, where the set does not hold them.

    Raises:
        NotFoundError: the corpus has no passage of an id.
        DataError: a judged passage has no place, or two of them have different texts at one.
    """
    qrels = judgments.qrels
    rows = np.flatnonzero(qrels.grade >= 0)
    ids = [name.decode() for name in qrels.docs.take(rows).tolist()]
    wanted = set(ids)
    passages = lookup(wanted) if lookup else _pooled(golden, wanted)
    canvas, places = Canvas(golden.source), dict[str, Span]()
    for row, doc_id in zip(rows.tolist(), ids, strict=True):
        passage = passages.get(doc_id)
        if passage is None or passage.span is None:
            raise _no_place(golden, qrels.qids[qrels.query[row]], doc_id)
        if doc_id not in places:
            canvas.paint(passage)
            places[doc_id] = passage.span
    return JudgedPlaces(judgments, qrels.query[rows], qrels.grade[rows], tuple(places[name] for name in ids), canvas)


def _pooled(golden: GoldenSet, wanted: Collection[str]) -> dict[str, Passage]:
    pools = (query.pool for query in golden.by_query("pool"))
    return {passage.doc_id: passage for pool in pools for passage in pool if passage.doc_id in wanted}


def _no_place(golden: GoldenSet, qid: str, doc_id: str) -> DataError:
    return DataError(
        f"query {qid}: the judged passage {doc_id} has no place in a document, so its grade cannot be carried over to "
        "passages that are cut in another way",
        where=golden.source,
        remedy="name a run directory whose corpus says where its passages stand (type folder, or a span each); for "
        "labels in a file name the configuration of their corpus by --corpus golden=CONFIG",
    )
