"""Stage 4: of questions that are the same the earlier one stays; those with an excerpt about something else go.

Thresholds are cosines, and belong to an embedder and a corpus: those of Chroma's report, which are the defaults, are
of OpenAI's text-embedding-3-large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np
from pydantic import Field

from raggs.arrays import shortest_float
from raggs.asking import Thresholds, duplicates, irrelevant
from raggs.asking.filters import DEFAULT, excerpt_cosines
from raggs.embedders.base import Embedder
from raggs.errors import PrerequisiteError
from raggs.questions.base import QuestionServices
from raggs.questions.records import FilterRecord, SampleRecord, VerifyRecord
from raggs.settings import Causes, Settings
from raggs.stages.base import StageOf, Work


class ThresholdSettings(Settings):
    """Cosines of a corpus."""

    excerpt: float = Field(DEFAULT.excerpt, ge=-1, le=1, description="below it an excerpt is not about its question")
    duplicate: float = Field(DEFAULT.duplicate, ge=-1, le=1, description="above it two questions are the same")


class FilterConfig(Settings):
    """Which questions are kept."""

    excerpt: float = Field(
        DEFAULT.excerpt, ge=-1, le=1, description="a question goes if its cosine with one of its excerpts is lower"
    )
    duplicate: float = Field(
        DEFAULT.duplicate, ge=-1, le=1, description="a question goes if its cosine with an earlier one is higher"
    )
    corpora: Mapping[str, ThresholdSettings] = Field(
        default_factory=dict,
        description="other thresholds for some documents, by their name, their name without its ending, or a folder",
    )


class Filter(StageOf[FilterConfig, QuestionServices]):
    NAME = "filter"
    READS = ("sample", "verify")
    Config = FilterConfig
    RECORD = FilterRecord

    def causes(self, config: FilterConfig, services: QuestionServices) -> Causes:
        return {"embedder": services.causes("embedder")}

    def run(self, work: Work, config: FilterConfig, services: QuestionServices) -> Iterator[FilterRecord]:
        samples = {sample.qid: sample for sample in work.read("sample", SampleRecord)}
        records = list(work.read("verify", VerifyRecord))
        sound = [record for record in records if record.rejected is None]
        limits = [thresholds_of(samples[record.qid].windows[0].source, config) for record in sound]
        measured = {record.qid: record for record in _measured(sound, limits, _embedder(services))}
        yield from (measured.get(record.qid) or _gone(record) for record in records)
        work.progress(len(records), len(records))


def thresholds_of(source: str, config: FilterConfig) -> Thresholds:
    """The thresholds of a document: its own, those of a folder that it lies in, or the usual ones."""
    path = PurePosixPath(source)
    for name in (source, str(path.with_suffix("")), *map(str, path.parents)):
        if name in config.corpora:
            return Thresholds(config.corpora[name].excerpt, config.corpora[name].duplicate)
    return Thresholds(config.excerpt, config.duplicate)


def _embedder(services: QuestionServices) -> Embedder:
    """The embedder.

    Raises:
        PrerequisiteError: none is configured.
    """
    if services.embedder is None:
        raise PrerequisiteError(
            "the filter of questions needs embed.embedder, which is null", remedy="name one, such as {type: wordllama}"
        )
    return services.embedder


def _gone(record: VerifyRecord) -> FilterRecord:
    return FilterRecord(
        qid=record.qid, kept=False, rejected=record.rejected, detail=record.detail, question=record.question
    )


def _measured(
    records: Sequence[VerifyRecord], limits: Sequence[Thresholds], embedder: Embedder
) -> Iterator[FilterRecord]:
    """What is kept of sound questions: first those go that an excerpt does not fit, then those that repeat others."""
    if not records:
        return
    questions = embedder.embed_queries([record.question or "" for record in records])
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
    """A cosine as records have it: in the digits that a float32 has, within -1..1."""
    return max(-1.0, min(1.0, shortest_float(np.float32(value))))


STAGE = Filter()
