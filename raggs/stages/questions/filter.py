"""Stage 4: remove repeated questions (the earliest stays) and questions with an off-topic excerpt.

Thresholds are cosines and depend on the embedder and the corpus. The defaults are from Chroma's report and apply to
OpenAI's text-embedding-3-large. The embedder that is shipped with raggs has its own defaults.

Two measurements are taken of each kept question: how much it copies from its excerpts (leakage) and, if `k` is above 0,
which systems find one of the excerpts. Both help to interpret scores over the questions; no question is removed because
of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated

import numpy as np
from pydantic import Field

from raggs.base.arrays import Vectors, shortest_float, shortest_floats
from raggs.base.artifacts import EmbedRecord, Passage, Reference
from raggs.base.errors import PrerequisiteError
from raggs.base.settings import Causes, Settings
from raggs.parts.embedders import Embedder
from raggs.parts.indexes.lexical import words_of
from raggs.parts.retrievers import Retriever
from raggs.stages.base import PassageLookup, StageOf, StageWork
from raggs.stages.questions.records import FilterRecord, QuestionServices, SampleRecord, VerifyRecord
from raggs.stats.question_filters import (
    DEFAULT,
    OF_EMBEDDERS,
    Thresholds,
    WordWeights,
    duplicates,
    excerpt_cosines,
    irrelevant,
    leakage,
    part_of,
)


def leakages(records: Iterable[VerifyRecord], samples: Mapping[str, SampleRecord]) -> dict[str, float]:
    """Return for each question the share of its excerpts' rare words that it copies. Questions without excerpts are
    omitted, and so are questions whose share is not defined.

    A word is rare if it occurs in few of the sampled windows.
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
    """Return for each question with excerpts the systems that find one of them among their first `k` passages.

    Args:
        vectors: embeddings of the questions, shape (records, dims).
        embedder: identity of the embedder.
    """
    asked = [
        _searched(record, samples[record.qid].language, row, embedder)
        for record, row in zip(records, vectors, strict=True)
    ]
    found: dict[str, list[str]] = {record.qid: [] for record in records if record.references}
    for name, system in sorted(systems.items()):
        for record, hits in zip(records, system.search(asked), strict=True):
            shown = passages.get(hit.doc_id for hit in hits[:k]).values()
            if any(holds_excerpt(passage, reference) for passage in shown for reference in record.references):
                found[record.qid].append(name)
    return {qid: tuple(names) for qid, names in found.items()}


def holds_excerpt(passage: Passage, reference: Reference) -> bool:
    """Return whether a passage contains an excerpt. If the excerpt names its passage, only that passage contains it.
    Otherwise, passage and excerpt must overlap by at least half of the shorter one.
    """
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


Cosine = Annotated[float, Field(ge=-1, le=1)]


class ThresholdSettings(Settings):
    """Cosine thresholds of one part of the corpus."""

    excerpt: Cosine | None = Field(
        None, description="remove a question if its cosine with an excerpt is below this; null: general threshold"
    )
    duplicate: Cosine | None = Field(
        None, description="remove a question if its cosine with an earlier one is above this; null: general threshold"
    )


class FilterConfig(Settings):
    """Settings of the filter stage: which questions are kept."""

    excerpt: Cosine | None = Field(
        None,
        description="remove a question if its cosine with one of its excerpts is below this; null: 0.15 for "
        "wordllama, 0.35 for lsa, otherwise 0.41",
    )
    duplicate: Cosine | None = Field(
        None,
        description="remove a question if its cosine with an earlier one is above this; null: 0.85 for wordllama, "
        "0.95 for lsa, otherwise 0.7",
    )
    corpora: Mapping[str, ThresholdSettings] = Field(
        default_factory=dict,
        description="thresholds for some documents, by their path in the corpus (with or without extension) or folder",
    )
    k: int = Field(
        10,
        ge=0,
        description="number of top passages in which a system must find an excerpt, to measure "
        "difficulty; 0: do not measure",
    )
    dev: float = Field(
        0.5,
        ge=0,
        le=1,
        description="share of questions in the dev part, for choosing a configuration; the rest is "
        "the test part, for reporting",
    )
    seed: int = Field(0, description="random seed of the split into dev and test")


class FilterStage(StageOf[FilterConfig, QuestionServices]):
    NAME = "filter"
    READS = ("sample", "verify")
    Config = FilterConfig
    RECORD = FilterRecord

    def causes(self, config: FilterConfig, services: QuestionServices) -> Causes:
        found: Causes = {"embedder": services.causes("embedder")}
        if config.k:
            found |= {"corpus": services.causes("corpus"), "systems": services.causes("systems")}
        return found

    def run(self, work: StageWork, config: FilterConfig, services: QuestionServices) -> Iterator[FilterRecord]:
        samples = {sample.qid: sample for sample in work.read("sample", SampleRecord)}
        records = list(work.read("verify", VerifyRecord))
        sound = [record for record in records if record.rejected is None]
        usual = usual_thresholds(required_embedder(services).config.type, config)
        limits = [thresholds_of(samples[record.qid].windows[0].source, usual, config) for record in sound]
        vectors = required_embedder(services).embed_queries([record.question or "" for record in sound])
        measured = {record.qid: record for record in _measured(sound, vectors, limits, required_embedder(services))}
        found = self._found(sound, vectors, samples, config, services)
        copied = leakages(sound, samples)
        for record in records:
            told = measured.get(record.qid) or _already_rejected(record)
            told = told.model_copy(update={"found_by": found.get(record.qid) if told.kept else None})
            yield _with_derived_fields(told, samples[record.qid], copied, config)
        work.progress(len(records), len(records))

    @staticmethod
    def _found(
        records: Sequence[VerifyRecord],
        vectors: Vectors,
        samples: Mapping[str, SampleRecord],
        config: FilterConfig,
        services: QuestionServices,
    ) -> dict[str, tuple[str, ...]]:
        systems = services.systems if config.k and records else {}
        if not systems:
            return {}
        identity = required_embedder(services).identity
        return finders(records, vectors, samples, systems, services.passages, config.k, identity)


def rederived(work: StageWork, config: FilterConfig) -> Iterator[FilterRecord]:
    """Compute the records of the stage again, except for cosines and systems, which are taken from the existing
    records.
    """
    samples = {sample.qid: sample for sample in work.read("sample", SampleRecord)}
    verified = list(work.read("verify", VerifyRecord))
    copied = leakages([record for record in verified if record.rejected is None], samples)
    for record, told in zip(verified, work.read("filter", FilterRecord), strict=True):
        base = _already_rejected(record)
        if record.rejected is None:
            update = {"question": record.question, "references": record.references, "kept": told.rejected is None}
            base = told.model_copy(update={"qid": record.qid, **update})
        yield _with_derived_fields(base, samples[record.qid], copied, config)


def _with_derived_fields(
    record: FilterRecord, sample: SampleRecord, copied: Mapping[str, float], config: FilterConfig
) -> FilterRecord:
    """Return a record with its part and, if it is kept, its leakage."""
    window = sample.windows[0]
    part = part_of(f"{window.source}:{window.start}", config.seed, config.dev)
    return record.model_copy(update={"part": part, "leakage": copied.get(record.qid) if record.kept else None})


def usual_thresholds(embedder: str, config: FilterConfig) -> Thresholds:
    """Return the general thresholds: those in the settings, otherwise the defaults for the embedder's type."""
    return _set(OF_EMBEDDERS.get(embedder, DEFAULT), config.excerpt, config.duplicate)


def thresholds_of(source: str, usual: Thresholds, config: FilterConfig) -> Thresholds:
    """Return the thresholds of a document: those set for it, those set for a folder that contains it, or the general
    ones.
    """
    path = PurePosixPath(source)
    for name in (source, str(path.with_suffix("")), *map(str, path.parents)):
        if own := config.corpora.get(name):
            return _set(usual, own.excerpt, own.duplicate)
    return usual


def _set(usual: Thresholds, excerpt: float | None, duplicate: float | None) -> Thresholds:
    return Thresholds(
        usual.excerpt if excerpt is None else excerpt, usual.duplicate if duplicate is None else duplicate
    )


def required_embedder(services: QuestionServices) -> Embedder:
    """Return the embedder of the filter.

    Raises:
        PrerequisiteError: no embedder is configured.
    """
    if services.embedder is None:
        raise PrerequisiteError(
            "the filter of questions needs an embedder, but embed.embedder is null",
            remedy="set one, for example {type: lsa}",
        )
    return services.embedder


def _already_rejected(record: VerifyRecord) -> FilterRecord:
    return FilterRecord(
        qid=record.qid, kept=False, rejected=record.rejected, detail=record.detail, question=record.question
    )


def _measured(
    records: Sequence[VerifyRecord], questions: Vectors, limits: Sequence[Thresholds], embedder: Embedder
) -> Iterator[FilterRecord]:
    """Yield the records of verified questions. Off-topic ones are rejected first, then those that repeat an earlier
    one.
    """
    if not records:
        return
    owner = [number for number, record in enumerate(records) for _ in record.references]
    texts = [reference.text for record in records for reference in record.references]
    excerpts = embedder.embed(texts) if texts else np.zeros((0, questions.shape[1]), dtype=np.float32)
    cosines = excerpt_cosines(questions, excerpts, owner) if texts else np.zeros(0)
    lowest: dict[int, float] = {}
    for number, cosine in zip(owner, cosines.tolist(), strict=True):
        lowest[number] = min(cosine, lowest.get(number, 1.0))
    off = {
        each.row: each for each in irrelevant(questions, excerpts, owner, np.array([limit.excerpt for limit in limits]))
    }
    left = [number for number in range(len(records)) if number not in off]
    twice = {
        left[each.row]: (left[each.of], each)
        for each in duplicates(questions[left], np.array([limits[number].duplicate for number in left]))
    }
    for number, record in enumerate(records):
        relevance = None if number not in lowest else _cosine(lowest[number])
        base = FilterRecord(
            qid=record.qid,
            kept=number not in off and number not in twice,
            question=record.question,
            references=record.references,
            relevance=relevance,
        )
        if number in off:
            detail = f"cosine below {off[number].threshold:g}"
            yield base.model_copy(update={"rejected": "off the question", "detail": detail})
        elif number in twice:
            of, each = twice[number]
            update = {
                "rejected": "duplicate",
                "detail": f"cosine above {each.threshold:g} with an earlier question",
                "nearest": records[of].qid,
                "similarity": _cosine(each.cosine),
            }
            yield base.model_copy(update=update)
        else:
            yield base


def _cosine(value: float) -> float:
    """Return a cosine as stored in records: with the digits of a float32, within -1..1."""
    return max(-1.0, min(1.0, shortest_float(np.float32(value))))


STAGE = FilterStage()
