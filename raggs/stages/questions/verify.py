"""Stage 3: search for each excerpt, verbatim, in the windows of its question.

If an excerpt is not found, its question is rejected.

Only differences in white space are tolerated, because models write line breaks as spaces. The record always contains
the text of the window, not that of the model. Overlapping excerpts of a question are merged. If an excerpt occurs twice
in a window, the first occurrence counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raggs.base.artifacts import Reference, Span
from raggs.base.settings import Causes, Settings
from raggs.base.text import shorten
from raggs.stages.base import StageOf, StageWork
from raggs.stages.questions.records import AskRecord, QuestionServices, Reason, SampleRecord, VerifyRecord, Window

WORD_CHARACTER = re.compile(r"\w")
MAX_SHOWN_CHARS = 80


class VerifyConfig(Settings):
    """Empty: the stage has no settings, because an excerpt must occur verbatim."""


class VerifyStage(StageOf[VerifyConfig, QuestionServices]):
    NAME = "verify"
    READS = ("sample", "ask")
    Config = VerifyConfig
    RECORD = VerifyRecord

    def causes(self, config: VerifyConfig, services: QuestionServices) -> Causes:
        return {}

    def run(self, work: StageWork, config: VerifyConfig, services: QuestionServices) -> Iterator[VerifyRecord]:
        return verified_records(work)


def verified_records(work: StageWork) -> Iterator[VerifyRecord]:
    """Yield the records of the stage. No services are needed."""
    samples = work.read("sample", SampleRecord)
    for record in work.read("ask", AskRecord):
        sample = next(each for each in samples if each.qid == record.qid)
        yield verify(sample, record)


@dataclass(frozen=True)
class _ExcerptPlace:
    """Position of an excerpt: number of its window, start and end in characters."""

    window: int
    start: int
    end: int


def verify(sample: SampleRecord, record: AskRecord) -> VerifyRecord:
    """Return one question with the positions of its excerpts, or the reason for its rejection."""
    if record.question is None:
        return _rejected(record, "no answer", record.error or "")
    found = []
    for excerpt in record.excerpts:
        place = _find(excerpt.strip(), sample.windows)
        if place is None:
            return _rejected(record, "not verbatim", shorten(excerpt, MAX_SHOWN_CHARS))
        found.append(place)
    if (sample.kind == "unanswerable") == bool(found):
        reason: Reason = "not unanswerable" if found else "no excerpt"
        return _rejected(record, reason, "")
    if sample.kind == "comparison" and len({place.window for place in found}) < len(sample.windows):
        return _rejected(record, "one-sided", "all excerpts are of one text")
    places = _merge_places(found)
    references = tuple(_reference(place, sample.windows[place.window]) for place in places)
    return VerifyRecord(qid=record.qid, question=record.question, references=references)


def _find(excerpt: str, windows: Sequence[Window]) -> _ExcerptPlace | None:
    """Return the first position of an excerpt, or None if it is not found or contains no word."""
    if not WORD_CHARACTER.search(excerpt):
        return None
    words = re.compile(r"\s+".join(map(re.escape, excerpt.split())))
    for number, window in enumerate(windows):
        start = window.text.find(excerpt)
        if start >= 0:
            return _ExcerptPlace(number, start, start + len(excerpt))
        if found := words.search(window.text):
            return _ExcerptPlace(number, *found.span())
    return None


def _merge_places(places: Sequence[_ExcerptPlace]) -> list[_ExcerptPlace]:
    """Return the positions in order, with overlapping ones merged."""
    merged: list[_ExcerptPlace] = []
    for place in sorted(places, key=lambda each: (each.window, each.start, each.end)):
        last = merged[-1] if merged else None
        if last and last.window == place.window and place.start < last.end:
            merged[-1] = _ExcerptPlace(last.window, last.start, max(last.end, place.end))
        else:
            merged.append(place)
    return merged


def _reference(place: _ExcerptPlace, window: Window) -> Reference:
    start, end = window.start + place.start, window.start + place.end
    span = None if window.doc_id else Span(source=window.source, start=start, end=end)
    return Reference(text=window.text[place.start : place.end], doc_id=window.doc_id, span=span)


def _rejected(record: AskRecord, reason: Reason, detail: str) -> VerifyRecord:
    return VerifyRecord(qid=record.qid, question=record.question, rejected=reason, detail=detail)


STAGE = VerifyStage()
