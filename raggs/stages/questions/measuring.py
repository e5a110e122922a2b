"""What is measured of questions that are kept: how far they copy their excerpts, and which systems find these.

Both are for whoever reads scores over the questions; nobody goes for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from raggs.base.arrays import Vectors, shortest_floats
from raggs.base.artifacts import EmbedRecord, Passage, Reference
from raggs.parts.indexes.analysis import words_of
from raggs.parts.retrievers.base import Retriever
from raggs.stages.base import PassageLookup
from raggs.stages.questions.records import SampleRecord, VerifyRecord
from raggs.stats.asking import WordWeights, leakage


def leakages(records: Iterable[VerifyRecord], samples: Mapping[str, SampleRecord]) -> dict[str, float]:
    """By question, how far it copies the rare words of its excerpts; none of questions without any.

    Rare is what stands in few of the windows that were asked about.
    """
    windows = {window: sample.language for sample in samples.values() for window in sample.windows}
    weights = WordWeights.of(words_of(window.text, language) for window, language in windows.items())
    found = {}
    for record in records:
        language = samples[record.qid].language
        excerpts = [words_of(reference.text, language) for reference in record.references]
        value = leakage(words_of(record.question or "", language), excerpts, weights)
        if excerpts and not math.isnan(value):
            found[record.qid] = round(value, 6)
    return found


def finders(
    records: Sequence[VerifyRecord],
    vectors: Vectors,
    samples: Mapping[str, SampleRecord],
    systems: Mapping[str, Retriever],
    passages: PassageLookup,
    k: int,
    embedder: str,
) -> dict[str, tuple[str, ...]]:
    """By question, the names of the systems that find one of its excerpts among their first `k` passages.

    Args:
        vectors: shape (records, dims), of the questions.
        embedder: identity of what made them.
    """
    asked = [
        _searched(record, samples[record.qid].language, row, embedder)
        for record, row in zip(records, vectors, strict=True)
    ]
    found: dict[str, list[str]] = {record.qid: [] for record in records if record.references}
    for name, system in sorted(systems.items()):
        for record, hits in zip(records, system.search(asked), strict=True):
            shown = passages.get(hit.doc_id for hit in hits[:k]).values()
            if any(holds(passage, reference) for passage in shown for reference in record.references):
                found[record.qid].append(name)
    return {qid: tuple(names) for qid, names in found.items()}


def holds(passage: Passage, reference: Reference) -> bool:
    """Whether a passage holds at least half of an excerpt, or lies in it by at least half."""
    span, place = passage.span, reference.span
    if reference.doc_id is not None:
        return passage.doc_id == reference.doc_id
    if span is None or place is None or span.source != place.source:
        return False
    shared = min(span.end, place.end) - max(span.start, place.start)
    return 2 * shared >= min(span.end - span.start, place.end - place.start)


def _searched(record: VerifyRecord, language: str, vector: Vectors, embedder: str) -> EmbedRecord:
    text = record.question or ""
    return EmbedRecord(
        qid=record.qid,
        text=text,
        rewrite=text,
        bm25_text=text,
        language=language,
        embedding=tuple(shortest_floats(vector)),
        embedder=embedder,
    )
