"""Comparison of chunkers: each chunker, embedder and cutoff is scored and compared with the baseline.

The chunks of all documents are searched together by exact cosine. Chunks with equal scores are in document order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.text import clean_passage, clean_unicode, one_line, token_borders
from raggs.base.types import finite_or_none
from raggs.chunking.documents import ChunkedDocuments, Documents
from raggs.chunking.models import ChunkComparisonPart, ChunkerPart, ChunkMeanPart, ChunkReport, ChunkSystemPart, Unit
from raggs.chunking.questions import ReferencedQuestions
from raggs.metrics.spans import (
    MEASURES,
    MIN,
    ChunkTargets,
    Cutoff,
    DocumentOffsets,
    LengthScale,
    Scores,
    score,
    summary,
)
from raggs.parts.indexes.exact import search
from raggs.stats.comparison import compare_many
from raggs.stats.intervals import Interval, bootstrap_means

TEST = "randomisation"
MEGA = 1e6

Embed = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True)
class EmbeddingFunctions:
    """One embedder as two functions: the first returns vectors of chunks, the second vectors of questions."""

    chunks: Embed
    questions: Embed


@dataclass(frozen=True)
class ChunkStudy:
    """Input of a comparison of chunkers.

    Attributes:
        documents, asked: the documents, and the questions about them.
        cuts: chunks by chunker.
        embeddings: embedding functions by embedder.
        cutoffs: numbers of chunks to retrieve; `MIN` for as many as overlap a reference excerpt.
        baseline: name of the system that the other systems are compared with; None for the first system.
        unit: unit in which lengths are measured.
        compat: whether to follow the code of Chroma's report instead of its formulas.
        seed: random seed for resampling.
        notes: notes on the chunks for readers of the report.
    """

    documents: Documents
    asked: ReferencedQuestions
    cuts: Mapping[str, ChunkedDocuments]
    embeddings: Mapping[str, EmbeddingFunctions]
    cutoffs: Sequence[Cutoff]
    baseline: str | None = None
    unit: Unit = "characters"
    compat: bool = False
    seed: int = 0
    notes: Sequence[str] = ()

    @property
    def systems(self) -> dict[str, tuple[str, str]]:
        """Chunker and embedder by system name."""
        return system_names(self.cuts, self.embeddings)


def system_names(chunkers: Iterable[str], embedders: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return chunker and embedder by system name. If there is only one embedder, a system is named for its chunker."""
    return {
        chunker if len(embedders) == 1 else f"{chunker} {embedder}": (chunker, embedder)
        for chunker in chunkers
        for embedder in embedders
    }


def compare_chunkers(study: ChunkStudy) -> ChunkReport:
    """Search with all systems, score them, and compare them with the baseline.

    Raises:
        ProviderError: an embedder failed.
    """
    line = DocumentOffsets.of(study.documents.lengths)
    ruler = ruler_of(study.documents, line, study.unit)
    questions, asked = study.asked.questions, study.asked
    targets = {name: ChunkTargets(questions, cut.spans, line, ruler, study.compat) for name, cut in study.cuts.items()}
    scores = {name: _searched(study, targets[pair[0]], *pair) for name, pair in study.systems.items()}
    baseline = study.baseline or next(iter(scores))
    comparisons = tuple(_comparisons(scores, baseline, study)) if len(scores) > 1 else ()
    return ChunkReport(
        unit=study.unit,
        compat=study.compat,
        seed=study.seed,
        baseline=baseline if comparisons else None,
        documents=dict(zip(study.documents.names, study.documents.lengths, strict=True)),
        questions=asked.ids,
        corpora=tuple(study.documents.names[place] for place in asked.documents),
        chunkers=tuple(_chunker(name, cut, targets[name], study.documents) for name, cut in study.cuts.items()),
        systems=tuple(
            _system(name, cutoff, found, study) for name, every in scores.items() for cutoff, found in every.items()
        ),
        comparisons=comparisons,
        notes=(*study.notes, *asked.notes),
    )


def ruler_of(documents: Documents, line: DocumentOffsets, unit: Unit) -> LengthScale:
    """Return the scale that converts character ranges to lengths.

    If the token vocabulary cannot be read, a token counts as three characters.
    """
    if unit == "characters":
        return LengthScale.characters()
    starts = [_borders(text) for text in documents.texts]
    return LengthScale.tokens(line, starts, documents.lengths)


def _borders(text: str) -> list[int]:
    found = token_borders(text)
    return list(range(0, len(text), 3)) if found is None else found


def _searched(study: ChunkStudy, target: ChunkTargets, chunker: str, embedder: str) -> dict[Cutoff, Scores]:
    """Return the scores of one system by cutoff."""
    embedding = study.embeddings[embedder]
    vectors = embedding.chunks(chunks_read(study.cuts[chunker].texts, study.compat))
    questions = questions_read(study.asked.texts, study.compat)
    deepest = max(int(target.least.max()) if cutoff == MIN else cutoff for cutoff in study.cutoffs)
    ranks = np.arange(len(vectors), dtype=np.int32)
    found: Ints = search(vectors, ranks, embedding.questions(questions), max(1, deepest)).positions
    return {cutoff: score(target, found, cutoff) for cutoff in study.cutoffs}


def chunks_read(texts: Sequence[str], compat: bool) -> Sequence[str]:
    """Return the chunks as embedders read them: cleaned like passages. With `compat`, they are not cleaned."""
    return texts if compat else [clean_passage(text) for text in texts]


def questions_read(texts: Sequence[str], compat: bool) -> Sequence[str]:
    """Return the questions as embedders read them: cleaned. With `compat`, they are not cleaned."""
    return texts if compat else [one_line(clean_unicode(text)) for text in texts]


def _chunker(name: str, cut: ChunkedDocuments, target: ChunkTargets, documents: Documents) -> ChunkerPart:
    lengths = target.lengths
    return ChunkerPart(
        chunker=name,
        chunks=len(lengths),
        mean_length=float(lengths.mean()),
        median_length=float(np.median(lengths)),
        longest=float(lengths.max()),
        seconds=cut.seconds,
        megabytes=sum(len(text.encode("utf-8", "surrogatepass")) for text in documents.texts) / MEGA,
    )


def _system(name: str, cutoff: Cutoff, found: Scores, study: ChunkStudy) -> ChunkSystemPart:
    chunker, embedder = study.systems[name]
    owner = np.array(study.asked.documents)
    matrix = np.stack([found.values[measure] for measure in MEASURES])
    intervals = bootstrap_means(matrix, seed=study.seed)
    return ChunkSystemPart(
        system=name,
        chunker=chunker,
        embedder=embedder,
        cutoff=str(cutoff),
        retrieved=float(found.retrieved.mean()),
        retrieved_length=float(found.lengths.mean()),
        scores={
            measure: _mean(values, interval)
            for measure, values, interval in zip(MEASURES, matrix, intervals, strict=True)
        },
        by_corpus={
            study.documents.names[place]: {
                measure: _mean(found.values[measure][owner == place]) for measure in MEASURES
            }
            for place in sorted(set(study.asked.documents))
        },
        per_question={measure: tuple(map(finite_or_none, found.values[measure].tolist())) for measure in MEASURES},
    )


def _mean(values: Floats, interval: Interval | None = None) -> ChunkMeanPart:
    found = summary(values)
    low, high = (None, None) if interval is None else map(finite_or_none, interval)
    return ChunkMeanPart(mean=finite_or_none(found.mean), sd=finite_or_none(found.sd), low=low, high=high)


def _comparisons(
    scores: Mapping[str, Mapping[Cutoff, Scores]], baseline: str, study: ChunkStudy
) -> Iterator[ChunkComparisonPart]:
    others = [name for name in scores if name != baseline]
    for cutoff in study.cutoffs:
        for measure in MEASURES:
            against = {name: scores[name][cutoff].values[measure] for name in others}
            every = compare_many(scores[baseline][cutoff].values[measure], against, seed=study.seed, tests=[TEST])
            for name, found in every.items():
                yield ChunkComparisonPart(
                    system=name,
                    cutoff=str(cutoff),
                    measure=measure,
                    difference=finite_or_none(found.difference.mean),
                    low=finite_or_none(found.difference.low),
                    high=finite_or_none(found.difference.high),
                    p=finite_or_none(found.corrected[TEST]),
                    verdict=found.verdict,
                    wins=found.wins,
                    ties=found.ties,
                    losses=found.losses,
                )
