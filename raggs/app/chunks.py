"""Chunkers compared by the characters that answer questions.

What a comparison of chunkers would cost, before it costs anything.

Whoever would ask is given models that only remember: what is paid for already counts as known, the rest is counted.
Where a model has not cut yet, or a cut hangs on vectors that nobody has, texts of about that length stand in.

How a configuration's corpus is cut.

A configuration's documents cut by a chunker that is paid; or what that would cost.

Questions whose excerpts get the places at which they stand, written for whoever asks them next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from raggs.app.addresses import Approve, approve_nothing, permit, permit_parts
from raggs.base.artifacts import Query, Reference, Span
from raggs.base.errors import ProviderError, UsageError
from raggs.base.files import disk, write_atomic
from raggs.base.text import did_you_mean, plural
from raggs.base.types import BuildProgress
from raggs.chunking.comparing import (
    ChunkStudy,
    EmbeddingFunctions,
    chunks_read,
    compare_chunkers,
    questions_read,
    system_names,
)
from raggs.chunking.cuts import cut_page
from raggs.chunking.cuts import show_cuts as cuts_of
from raggs.chunking.documents import (
    ChunkedDocuments,
    ChunkingResult,
    Documents,
    chunk_documents,
    foresee,
    make_cuts,
    read_documents,
)
from raggs.chunking.layout import write_files
from raggs.chunking.models import ChunkReport, CutReport, Unit, parse_spec, split_names
from raggs.chunking.questions import place_questions
from raggs.config.models import DocumentsConfig, RunConfig
from raggs.llm import BudgetSettings, LLMSettings
from raggs.llm.prices import require_keys
from raggs.llm.rehearsal import DryRunLLM
from raggs.metrics.spans import MIN, Cutoff
from raggs.parts import chunkers, corpora, embedders, queries
from raggs.parts.chunkers import Chunker, ChunkerConfig, ChunkerContext
from raggs.parts.chunkers.paid import GUESSED_BOUNDARY_SHARE, PaidChunker
from raggs.parts.chunkers.semantic import EmbeddingChunker
from raggs.parts.corpora import CutCorpus
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.embedders.vector_cache import KeptEmbedder
from raggs.parts.queries import format_of
from raggs.parts.queries.fields import DOCUMENT
from raggs.parts.queries.writing import write_queries
from raggs.parts.workspace import Workspace, open_numbered
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate, total


def show_cuts(
    config: DocumentsConfig | RunConfig,
    file: str | None = None,
    listen: Listener = ignore_event,
    page: Path | None = None,
) -> CutReport:
    """What of the corpus is cut where; nothing is paid, and nothing kept but what the chunker itself keeps.

    Args:
        file: only this one, by its path as a shell has it, its path below the folder, or the end of it.
        page: where the same goes as a page of HTML, with the texts; None for nowhere.

    Raises:
        UsageError: the corpus has no documents.
        RaggsError: the folder, a file or a part of the chunker is not what it should be.
    """
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    if not isinstance(corpus, CutCorpus):
        raise UsageError(
            f"a corpus of type {config.corpus.type} is not cut: its passages are taken as they are",
            remedy="use a corpus of type folder",
        )
    with Workspace(config.workspace, config.llm, config.budget, hear=listen) as workspace:
        corpus.context = workspace.cutting
        shown = cuts_of(corpus, file)
    if page is not None:
        with disk(page, "choose another --html"):
            write_atomic(page, cut_page(shown, file or Path(corpus.place).name).encode())
    return shown.report


LEDGER = "chunks.ledger.jsonl"  # of a workspace, since several runs share its cuts
STAGE = "chunks"
ANSWER = 30  # tokens of an answer
CUT_EARLY = f"a window is taken to be cut at {GUESSED_BOUNDARY_SHARE:.0%} of its length, where the next one begins"


@dataclass(frozen=True)
class CutForecast:
    """What cutting would cost: documents that would be cut and those that are, and a line for each model."""

    cut: int
    before: int
    estimates: tuple[CostEstimate, ...]

    def __str__(self) -> str:
        return f"{plural(self.cut, 'document')} to be cut, {self.before:,} cut already"


def in_words(estimates: Sequence[CostEstimate], cap: float | None, why: str = CUT_EARLY) -> Iterator[str]:
    """What models would take, for people; `cap`: of the budget, in USD; `why`: why calls are not counted exactly."""
    for line in estimates:
        about, usd = "" if line.exact else "about ", line.usd
        price = "an unknown price" if usd is None else f"{about}{usd:,.4f} USD"
        yield (
            f"{line.who}, {line.stage}: {about}{plural(line.calls, 'call')}, {line.input_tokens:,} tokens in, "
            f"{line.output_tokens:,} out, {price}; {line.cached:,} answered already"
        )
        if line.hidden_tokens:
            yield f"{line.hidden_tokens:,} tokens of hidden reasoning are assumed for each answer"
    if not all(line.exact for line in estimates):
        yield f"about: {why}"
    if most := total(line.usd_at_most for line in estimates):
        limit = "no cap" if cap is None else f"cap {cap:,.2f} USD"
        yield f"at most {most:,.4f} USD were every answer corrected as often as may be ({limit})"


def make_paid_cuts(
    config: RunConfig, listen: Listener = ignore_event, approve: Approve = approve_nothing, *, again: bool = False
) -> ChunkingResult:
    """Cut what of a configuration's corpus is not cut yet. Works in notebooks too.

    The budget holds for the workspace: what its ledger has of earlier cuts counts.

    Args:
        listen: hears how far it is.
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        UsageError: the corpus has no documents, or its chunker is not paid.
        RaggsError: a key is missing, a provider refused, or the budget is used up; whatever was answered is kept.
    """
    if in_loop():
        return run_in_thread(lambda hear: make_paid_cuts(config, hear, approve, again=again), listen)
    permit(config, [STAGE], approve)
    with _opened_corpus(config, listen) as (corpus, chunker, workspace):
        require_keys(chunker.models, config.llm)
        workspace.ledger.turn_to(config.workspace / LEDGER, STAGE)
        return make_cuts(
            chunker,
            corpus.documents(),
            workspace,
            lambda done: listen(BuildProgress("cuts of documents", done, 0)),
            again=again,
        )


def forecast_cuts(config: RunConfig, *, again: bool = False) -> CutForecast:
    """What `make_paid_cuts` would cost. Nobody is asked, nothing is written.

    Raises:
        UsageError: as `make_paid_cuts`.
        RaggsError: the folder or what is kept cannot be read.
    """
    with _opened_corpus(config, ignore_event) as (corpus, chunker, workspace), workspace.rehearsal() as llm:
        llm.turn_to(STAGE)
        return CutForecast(*foresee(chunker, corpus.documents(), workspace, llm, again=again), tuple(lines_of(llm)))


@contextmanager
def _opened_corpus(config: RunConfig, listen: Listener) -> Iterator[tuple[CutCorpus, PaidChunker, Workspace]]:
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    spec = corpus.named if isinstance(corpus, CutCorpus) else None
    with Workspace(config.workspace, config.llm, config.budget, hear=listen) as workspace:
        chunker = None if spec is None else workspace.chunker(spec)
        if not isinstance(corpus, CutCorpus) or not isinstance(chunker, PaidChunker):
            raise UsageError(
                "nobody is paid for the cuts of this corpus: they are made when it is read",
                remedy="leave this step out, or name the chunker {type: llm} in corpus.chunker",
            )
        chunker.check()
        yield corpus, chunker, workspace


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

    def permit(self, approve: Approve = approve_nothing) -> None:
        """See to it that no key goes to an address among `llm` that is new; those of a part are the user's own words.

        Raises:
            PrerequisiteError: one would (see `raggs.app.addresses`).
        """
        specs = [*self.chunker_specs().values(), *self.embedder_specs().values()]
        permit_parts(self.llm or LLMSettings(), specs, approve)

    def workspace(self, out: Path, listen: Listener = ignore_event) -> Workspace:
        """That makes the parts, with its caches below `out`."""
        return Workspace(out, self.llm, BudgetSettings(max_usd=self.max_usd), hear=listen)

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


def eval_chunks(
    request: ChunkRequest, out: Path, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> ChunkResult:
    """Cut, embed, search and score; the report goes to `out`, and what can be used again below it. Works in notebooks.

    Args:
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        RaggsError: a part, a file, a question or an excerpt is not what it should be; a model failed.
    """
    if in_loop():
        return run_in_thread(lambda hear: eval_chunks(request, out, hear, approve), listen)
    request.permit(approve)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, not a folder", remedy="name the report's folder by --out")
    with request.workspace(out, listen) as workspace:
        workspace.ledger.turn_to(out / LEDGER, STAGE)
        report = compare_chunkers(_study(request, workspace, listen))
    return ChunkResult(report, tuple(write_files(report, out)))


def _study(request: ChunkRequest, workspace: Workspace, listen: Listener) -> ChunkStudy:
    """Everything that is compared, cut already; what is wrong with a request is told before the work."""
    cutters, embeddings = _chunkers(request, workspace), _embeddings(request, workspace, listen)
    cutoffs, names = _cutoffs(request.cutoffs), system_names(cutters, embeddings)
    if request.baseline is not None and request.baseline not in names:
        raise UsageError(f"no system is called {request.baseline!r}", remedy=did_you_mean(request.baseline, names))
    documents = read_documents(request.corpus)
    numbered = open_questions(request.questions, listen)
    lines, asked_for = {qid: line for qid, (line, _) in numbered.items()}, {qid: q for qid, (_, q) in numbered.items()}
    asked = place_questions(asked_for, documents, request.questions, lines)
    made = _make(cutters, documents, workspace, listen)
    notes = [*documents.notes, *(note for name, each in made.items() for note in each.notes(name))]
    cuts = {}
    for name, chunker in cutters.items():
        before = workspace.pieces_found
        tell = partial(_report_progress, listen, f"documents cut by {name}", len(documents.names))
        cuts[name] = _chunk_documents(chunker, documents, made.get(name), request.compat, tell)
        if found := workspace.pieces_found - before:
            notes.append(f"{name}: vectors of {plural(found, 'piece')} were kept; its seconds leave their making out")
    return ChunkStudy(
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


def _chunkers(request: ChunkRequest, workspace: Workspace) -> dict[str, Chunker]:
    found = {name: workspace.chunker(spec) for name, spec in request.chunker_specs().items()}
    for each in found.values():
        each.check()
    return found


def _make(
    cutters: Mapping[str, Chunker], documents: Documents, workspace: Workspace, listen: Listener
) -> dict[str, ChunkingResult]:
    """What of the documents is cut by those chunkers that are paid.

    Raises:
        ProviderError: a document could not be cut.
    """
    found = {}
    for name, chunker in cutters.items():
        if isinstance(chunker, PaidChunker):
            require_keys(chunker.models, workspace.settings)
            total = len(documents.names)
            tell = partial(_report_progress, listen, f"cuts of {name}", total)
            found[name] = make_cuts(chunker, documents.whole, workspace, tell)
            if failed := found[name].failed:
                raise ProviderError(
                    f"{name}: {len(failed)} of {plural(total, 'document')} could not be cut, first: {failed[0]}"
                )
    return found


def _report_progress(listen: Listener, what: str, total: int, done: int) -> None:
    listen(BuildProgress(what, done, total))


def _chunk_documents(
    chunker: Chunker, documents: Documents, made: ChunkingResult | None, compat: bool, tell: Callable[[int], None]
) -> ChunkedDocuments:
    """The chunks; what a model took for cutting is of the chunker's time."""
    found = chunk_documents(chunker, documents, compat=compat, tell=tell)
    return found if made is None else replace(found, seconds=found.seconds + made.seconds)


def _embeddings(request: ChunkRequest, workspace: Workspace, listen: Listener) -> dict[str, EmbeddingFunctions]:
    specs = request.embedder_specs().items()
    return {name: _embedding(name, workspace.embedder(spec), workspace, listen) for name, spec in specs}


def _embedding(name: str, embedder: Embedder, workspace: Workspace, listen: Listener) -> EmbeddingFunctions:
    def tell(done: int, total: int) -> None:
        listen(BuildProgress(f"vectors of {name}", done, total))

    kept = KeptEmbedder(embedder, workspace.cache.at("vectors"), tell)
    return EmbeddingFunctions(kept.embed, kept.embed_queries)


def open_questions(path: Path, listen: Listener = ignore_event) -> Mapping[str, tuple[int, Query]]:
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


EMBED = "embed"  # the ledger's name for it


def forecast_chunks(request: ChunkRequest, out: Path) -> tuple[CostEstimate, ...]:
    """A line for each model and task that `eval_chunks` would pay for. Nobody is asked, nothing is written.

    Raises:
        RaggsError: as `eval_chunks`, of what the request names.
    """
    with request.workspace(out) as workspace, workspace.rehearsal() as llm:
        _count(request, workspace, llm)
        return tuple(lines_of(llm))


def _count(request: ChunkRequest, workspace: Workspace, llm: DryRunLLM) -> None:
    """Cut and embed with models that count."""
    documents, asked = read_documents(request.corpus), open_questions(request.questions)
    embedders = [workspace.embedder(spec, llm) for spec in request.embedder_specs().values()]
    paid, guessed = [each for each in embedders if each.models], False
    lent = ChunkerContext(lambda spec: workspace.embedder(spec, llm))
    read: list[str] = []
    for spec in request.chunker_specs().values():
        chunker = workspace.chunker(spec)
        if isinstance(chunker, PaidChunker):
            llm.turn_to(STAGE)
            cut, _ = foresee(chunker, documents.whole, workspace, llm)
            guessed = guessed or cut > 0
            texts = _estimated_chunk_texts(chunker, documents, workspace) if paid else []
        else:
            llm.turn_to(EMBED)
            chunker = chunkers.REGISTRY.of(spec)(spec, lent)
            own = chunker.embedder.models if isinstance(chunker, EmbeddingChunker) else ()
            guessed = guessed or bool(own)
            texts = _texts(chunker, documents) if paid or own else []
        read += chunks_read(texts, request.compat)
    llm.turn_to(EMBED)
    for each in paid:
        each.embed(read)
        each.embed_queries(questions_read([query.text for _, query in asked.values()], request.compat))
    if guessed:
        llm.guess()


def _texts(chunker: Chunker, documents: Documents) -> list[str]:
    return [chunk.text for document in documents.whole for chunk in chunker.chunk(document)]


def _estimated_chunk_texts(chunker: PaidChunker, documents: Documents, workspace: Workspace) -> list[str]:
    """The chunks of documents that are cut, and of others what is taken for them."""
    texts = []
    with workspace.rehearsal() as llm:
        for document in (each.body for each in documents.whole):
            cuts = chunker.kept(document) or workspace.loop.run(chunker.ask(document.body, llm, guess=True))
            texts += [document.body.text[start:end] for start, end in cuts.places(document.body.text)]
    return texts


@dataclass(frozen=True)
class PlacedQuestions:
    """What was written.

    Attributes:
        file: that holds the questions.
        questions, excerpts: how many.
        notes: what a reader must know: excerpts that stand in several places.
    """

    file: Path
    questions: int
    excerpts: int
    notes: tuple[str, ...]


def place_excerpts(corpus: Path, questions: Path, to: Path, listen: Listener = ignore_event) -> PlacedQuestions:
    """Check each excerpt against the documents, search for those without offsets, and write all questions with places.

    Args:
        corpus: the folder of the documents.
        questions: CSV, JSONL or YAML.
        to: the file that is written, in the format of its ending; the questions stand in it in their order.

    Raises:
        UsageError: an ending says no format, or `to` is the file of the questions.
        RaggsError: a document, a question or an excerpt is not what it should be; the disk refuses.
    """
    format_of(to)  # before the work
    numbered, documents = open_questions(questions, listen), read_documents(corpus)
    if to.exists() and to.samefile(questions):
        raise UsageError(f"{to} holds the questions themselves", remedy="name another file by --to")
    ordered = dict(sorted(numbered.items(), key=lambda item: item[1][0]))
    queries = {qid: query for qid, (_, query) in ordered.items()}
    lines = {qid: line for qid, (line, _) in ordered.items()}
    asked = place_questions(
        {qid: each for qid, each in queries.items() if each.references}, documents, questions, lines
    )
    spans = asked.questions.references
    places = zip(spans.document.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True)
    written = [_with_places(query, documents, places) for query in queries.values()]
    write_queries(written, to)
    return PlacedQuestions(to, len(written), len(spans), asked.notes)


def _with_places(query: Query, documents: Documents, places: Iterator[tuple[int, int, int]]) -> Query:
    """The question, its references with the next of `places`; documents are called as its author calls them."""
    return query.model_copy(
        update={"references": tuple(_at(query, each, documents, places) for each in query.references)}
    )


def _at(query: Query, reference: Reference, documents: Documents, places: Iterator[tuple[int, int, int]]) -> Reference:
    number, start, end = next(places)
    if reference.span is not None:
        return reference
    named = query.metadata.get(DOCUMENT)
    source = named if isinstance(named, str) else documents.names[number]
    return reference.model_copy(update={"span": Span(source=source, start=start, end=end)})
