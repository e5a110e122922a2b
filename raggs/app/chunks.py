"""Chunkers compared by the characters that answer questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from raggs.app.addresses import Approve, nobody, permit_parts
from raggs.app.beside import beside, in_loop
from raggs.app.cutting import LEDGER, STAGE
from raggs.base.artifacts import Query
from raggs.base.errors import ProviderError, UsageError
from raggs.base.progress import Building
from raggs.base.text import did_you_mean, plural
from raggs.chunking.comparing import Embedding, Study, compare_chunkers, system_names
from raggs.chunking.cutting import Cut, cut
from raggs.chunking.documents import Documents, read_documents
from raggs.chunking.making import Made, make_cuts
from raggs.chunking.models import ChunkReport, Unit
from raggs.chunking.questions import place_questions
from raggs.chunking.specs import parse_spec, split_names
from raggs.chunking.writers import write_files
from raggs.llm import BudgetSettings, LLMSettings
from raggs.llm.credentials import require_keys
from raggs.metrics.spans import MIN, Cutoff
from raggs.parts import chunkers, embedders, queries
from raggs.parts.chunkers.base import ChunkerConfig
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.embedders.base import EmbedderConfig
from raggs.parts.embedders.kept import KeptVectors
from raggs.parts.queries.base import format_of
from raggs.parts.workshop import Chunker, Embedder, Workshop, open_numbered
from raggs.runs.pipeline.events import Listener, silent

DEFAULT = "5"
CAP = 5.0  # USD


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
        max_usd: what embedders and chunkers may cost, over all comparisons that go to one folder.
        llm: how language models are asked; None: as by default.
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
    max_usd: float = CAP
    llm: LLMSettings | None = None

    def permit(self, approve: Approve = nobody) -> None:
        """See to it that no key goes to an address among `llm` that is new; those of a part are the user's own words.

        Raises:
            PrerequisiteError: one would (see `raggs.app.addresses`).
        """
        specs = [*self.chunker_specs().values(), *self.embedder_specs().values()]
        permit_parts(self.llm or LLMSettings(), specs, approve)

    def workshop(self, out: Path, listen: Listener = silent) -> Workshop:
        """That makes the parts, with its caches below `out`."""
        return Workshop(out, self.llm, BudgetSettings(max_usd=self.max_usd), hear=listen)

    def chunker_specs(self) -> dict[str, ChunkerConfig]:
        """The chunkers' settings by name.

        Raises:
            UsageError: there is none, or a name that stands for no chunker.
        """
        names = split_names(self.chunkers, "chunker", "see: raggs list chunkers")
        return {name: parse_spec(name, chunkers.REGISTRY, ChunkerConfig) for name in names}

    def embedder_specs(self) -> dict[str, EmbedderConfig]:
        """The same of the embedders."""
        names = split_names(self.embedders, "embedder", "see: raggs list embedders")
        return {name: parse_spec(name, embedders.REGISTRY, EmbedderConfig) for name in names}


@dataclass(frozen=True)
class ChunkResult:
    """The report, and the files that hold it."""

    report: ChunkReport
    files: tuple[Path, ...]


def eval_chunks(request: ChunkRequest, out: Path, listen: Listener = silent, approve: Approve = nobody) -> ChunkResult:
    """Cut, embed, search and score; the report goes to `out`, and what can be used again below it. Works in notebooks.

    Args:
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        RaggsError: a part, a file, a question or an excerpt is not what it should be; a model failed.
    """
    if in_loop():
        return beside(lambda hear: eval_chunks(request, out, hear, approve), listen)
    request.permit(approve)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, not a folder", remedy="name the report's folder by --out")
    workshop = request.workshop(out, listen)
    workshop.ledger.turn_to(out / LEDGER, STAGE)
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
    numbered = open_questions(request.questions, listen)
    lines, asked_for = {qid: line for qid, (line, _) in numbered.items()}, {qid: q for qid, (_, q) in numbered.items()}
    asked = place_questions(asked_for, documents, request.questions, lines)
    made = _make(cutters, documents, workshop, listen)
    notes = [*documents.notes, *(note for name, each in made.items() for note in each.notes(name))]
    cuts = {}
    for name, chunker in cutters.items():
        before = workshop.pieces_found
        tell = partial(_told, listen, f"documents cut by {name}", len(documents.names))
        cuts[name] = _cut(chunker, documents, made.get(name), request.compat, tell)
        if found := workshop.pieces_found - before:
            notes.append(f"{name}: vectors of {plural(found, 'piece')} were kept; its seconds leave their making out")
    return Study(
        documents=documents,
        asked=asked,
        cuts=cuts,
        notes=tuple(notes),
        embeddings=embeddings,
        cutoffs=cutoffs,
        baseline=request.baseline,
        unit=request.unit,
        compat=request.compat,
        seed=request.seed,
    )


def _chunkers(request: ChunkRequest, workshop: Workshop) -> dict[str, Chunker]:
    found = {name: workshop.chunker(spec) for name, spec in request.chunker_specs().items()}
    for each in found.values():
        each.check()
    return found


def _make(
    cutters: Mapping[str, Chunker], documents: Documents, workshop: Workshop, listen: Listener
) -> dict[str, Made]:
    """What of the documents is cut by those chunkers that are paid.

    Raises:
        ProviderError: a document could not be cut.
    """
    found = {}
    for name, chunker in cutters.items():
        if isinstance(chunker, PaidChunker):
            require_keys(chunker.models, workshop.llm.settings)
            total = len(documents.names)
            tell = partial(_told, listen, f"cuts of {name}", total)
            found[name] = make_cuts(chunker, documents.whole, workshop, tell)
            if failed := found[name].failed:
                raise ProviderError(
                    f"{name}: {len(failed)} of {plural(total, 'document')} could not be cut, first: {failed[0]}"
                )
    return found


def _told(listen: Listener, what: str, total: int, done: int) -> None:
    listen(Building(what, done, total))


def _cut(chunker: Chunker, documents: Documents, made: Made | None, compat: bool, tell: Callable[[int], None]) -> Cut:
    """The chunks; what a model took for cutting is of the chunker's time."""
    found = cut(chunker, documents, compat=compat, tell=tell)
    return found if made is None else replace(found, seconds=found.seconds + made.seconds)


def _embeddings(request: ChunkRequest, workshop: Workshop, listen: Listener) -> dict[str, Embedding]:
    specs = request.embedder_specs().items()
    return {name: _embedding(name, workshop.embedder(spec), workshop, listen) for name, spec in specs}


def _embedding(name: str, embedder: Embedder, workshop: Workshop, listen: Listener) -> Embedding:
    def tell(done: int, total: int) -> None:
        listen(Building(f"vectors of {name}", done, total))

    return Embedding(
        KeptVectors(embedder, workshop.places.vectors, tell, notify=workshop.notify).of, embedder.embed_queries
    )


def open_questions(path: Path, listen: Listener = silent) -> Mapping[str, tuple[int, Query]]:
    """The questions by id, each after its line.

    Raises:
        UsageError: the file's name has no ending that tells its format.
        RaggsError: it is missing or malformed.
    """
    return open_numbered(queries.REGISTRY.load(format_of(path)).Config.model_validate({"path": path}), listen)


def _cutoffs(given: Sequence[str]) -> tuple[Cutoff, ...]:
    """Numbers, and "min"."""
    words = split_names([each.lower() for each in given], "cutoff", "write 5, or min, or several: min,5,10")
    if wrong := next((word for word in words if word != MIN and not (word.isdecimal() and int(word) > 0)), None):
        raise UsageError(f"-k {wrong}: no number of chunks", remedy="write 5, or min, or several: min,5,10")
    return tuple(MIN if word == MIN else int(word) for word in words)
