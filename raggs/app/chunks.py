"""Chunkers compared by the characters that answer questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raggs import chunkers, embedders, queries
from raggs.adapter import AdapterConfig
from raggs.app.beside import beside, in_loop
from raggs.chunkers.base import ChunkerConfig
from raggs.chunking.comparing import Embedding, Study, compare_chunkers, system_names
from raggs.chunking.cutting import cut
from raggs.chunking.documents import read_documents
from raggs.chunking.models import ChunkReport, Unit
from raggs.chunking.questions import place_questions
from raggs.chunking.specs import parse_spec, split_names
from raggs.chunking.vectors import KeptVectors
from raggs.chunking.writers import write_files
from raggs.embedders.base import EmbedderConfig
from raggs.errors import UsageError
from raggs.llm import BudgetSettings
from raggs.pipeline.events import Listener, silent
from raggs.progress import Building
from raggs.queries.base import format_of
from raggs.spans import MIN, Cutoff
from raggs.text import did_you_mean
from raggs.workshop import Chunker, Embedder, Workshop, open_queries

DEFAULT = "5"


@dataclass(frozen=True)
class ChunkRequest:
    """What to compare.

    Attributes:
        corpus: the folder of the documents.
        questions: a CSV, JSONL or YAML file of questions with the excerpts that answer them.
        chunkers, embedders: as on the command line, ``recursive:400:overlap=200``.
        cutoffs: chunks that are retrieved: numbers, or "min".
        baseline: the system that others are compared with; None for the first.
        unit: what lengths count.
        compat: whether the report's code is followed in place of its formulas.
        seed: of resamples.
        max_usd: what embedders may cost.
    """

    corpus: Path
    questions: Path
    chunkers: Sequence[str]
    embedders: Sequence[str] = ("wordllama",)
    cutoffs: Sequence[str] = (DEFAULT,)
    baseline: str | None = None
    unit: Unit = "characters"
    compat: bool = False
    seed: int = 0
    max_usd: float = 5.0


@dataclass(frozen=True)
class ChunkResult:
    """The report, and the files that hold it."""

    report: ChunkReport
    files: tuple[Path, ...]


def eval_chunks(request: ChunkRequest, out: Path, listen: Listener = silent) -> ChunkResult:
    """Cut, embed, search and score; the report goes to `out`, and what can be used again below it. Works in notebooks.

    Raises:
        RaggsError: a part, a file, a question or an excerpt is not what it should be; a model failed.
    """
    if in_loop():
        return beside(lambda hear: eval_chunks(request, out, hear), listen)
    workshop = Workshop(out, budget=BudgetSettings(max_usd=request.max_usd), hear=listen)
    try:
        report = compare_chunkers(_study(request, workshop, listen))
    finally:
        workshop.close()
    return ChunkResult(report, tuple(write_files(report, out)))


def _study(request: ChunkRequest, workshop: Workshop, listen: Listener) -> Study:
    """Everything that is compared, cut already; what is wrong with a request is told before the work."""
    cutters, embeddings = _chunkers(request, workshop), _embeddings(request, workshop, listen)
    cutoffs, names = _cutoffs(request.cutoffs), system_names(cutters, embeddings)
    if request.baseline is not None and request.baseline not in names:
        raise UsageError(f"no system is called {request.baseline!r}", remedy=did_you_mean(request.baseline, names))
    documents = read_documents(request.corpus)
    return Study(
        documents=documents,
        asked=place_questions(open_queries(_format(request.questions), listen), documents, request.questions),
        cuts={name: cut(each, documents, compat=request.compat) for name, each in cutters.items()},
        embeddings=embeddings,
        cutoffs=cutoffs,
        baseline=request.baseline,
        unit=request.unit,
        compat=request.compat,
        seed=request.seed,
    )


def _chunkers(request: ChunkRequest, workshop: Workshop) -> dict[str, Chunker]:
    names = split_names(request.chunkers, "chunker", "see: raggs list chunkers")
    found = {name: workshop.chunker(parse_spec(name, chunkers.REGISTRY, ChunkerConfig)) for name in names}
    for each in found.values():
        each.check()
    return found


def _embeddings(request: ChunkRequest, workshop: Workshop, listen: Listener) -> dict[str, Embedding]:
    names = split_names(request.embedders, "embedder", "see: raggs list embedders")
    specs = {name: parse_spec(name, embedders.REGISTRY, EmbedderConfig) for name in names}
    return {name: _embedding(name, workshop.embedder(spec), workshop, listen) for name, spec in specs.items()}


def _embedding(name: str, embedder: Embedder, workshop: Workshop, listen: Listener) -> Embedding:
    def tell(done: int, total: int) -> None:
        listen(Building(f"vectors of {name}", done, total))

    return Embedding(KeptVectors(embedder, workshop.places.vectors, tell).of, embedder.embed_queries)


def _format(path: Path) -> AdapterConfig:
    return queries.REGISTRY.load(format_of(path)).Config.model_validate({"path": path})


def _cutoffs(given: Sequence[str]) -> tuple[Cutoff, ...]:
    """Numbers, and "min"."""
    words = split_names(given, "cutoff", "write 5, or min, or several: min,5,10")
    if wrong := next((word for word in words if word != MIN and not (word.isdecimal() and int(word) > 0)), None):
        raise UsageError(f"-k {wrong}: no number of chunks", remedy="write 5, or min, or several: min,5,10")
    return tuple(MIN if word == MIN else int(word) for word in words)
