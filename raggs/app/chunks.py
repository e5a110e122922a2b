"""Chunks of documents: display, comparison of chunkers, paid chunking, cost forecasts, and offsets of excerpts.

Forecasts call no paid model. Cached answers are counted as free and all other calls are estimated. For documents
whose chunks are not known yet, texts of about the same length are used instead.
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
from raggs.base.hashing import hash_value
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
from raggs.parts.embedders import Embedder, EmbedderConfig, FittingTexts, default_embedder
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
    """Return the chunks of a corpus. No paid model is called; only the chunker's own caches and the page are written.

    Args:
        config: the configuration; only its corpus, workspace, budget and model settings are used.
        file: path of the only file to chunk: absolute, relative to the folder, or only the last parts of the path. None
            to chunk all files.
        listen: progress callback.
        page: file to write the chunks to as an HTML page with all texts; None for no page.

    Raises:
        UsageError: the corpus has no documents.
        RaggsError: the folder, a file or a part of the chunker is missing or invalid.
    """
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    if not isinstance(corpus, CutCorpus):
        raise UsageError(
            f"a corpus of type {config.corpus.type} has no documents to chunk: its passages are used unchanged",
            remedy="use a corpus of type folder",
        )
    with Workspace(config.workspace, config.llm, config.budget, hear=listen) as workspace:
        corpus.context = workspace.cutting
        shown = cuts_of(corpus, file)
    if page is not None:
        with disk(page, "choose another --html"):
            write_atomic(page, cut_page(shown, file or Path(corpus.place).name, _in_one_line(corpus.named)).encode())
    return shown.report


def _in_one_line(spec: ChunkerConfig | None) -> str:
    """Return name, size and changed settings of a chunker; of the default one, the name."""
    if spec is None:
        return "paragraphs"
    settings, changed = spec.model_dump(mode="json"), spec.model_dump(exclude_defaults=True)
    shown = [name for name in settings if name != "type" and (name == "size" or name in changed)]
    return ", ".join((settings["type"], *(f"{name} {settings[name]}" for name in shown)))


LEDGER = "chunks.ledger.jsonl"  # in the workspace, because several runs share its chunks
STAGE = "chunks"
ANSWER = 30  # assumed tokens per answer
CUT_EARLY = f"assumed: each chunk ends at {GUESSED_BOUNDARY_SHARE:.0%} of its window, where the next window starts"


@dataclass(frozen=True)
class CutForecast:
    """Forecast of paid chunking.

    Attributes:
        cut: number of documents to chunk.
        before: number of documents that are already chunked.
        estimates: one estimate per model and task.
    """

    cut: int
    before: int
    estimates: tuple[CostEstimate, ...]

    def __str__(self) -> str:
        return f"{plural(self.cut, 'document')} to chunk, {self.before:,} already chunked"


def in_words(estimates: Sequence[CostEstimate], cap: float | None, why: str = CUT_EARLY) -> Iterator[str]:
    """Yield one sentence per estimate, then the assumptions and the maximum cost.

    Args:
        estimates: one estimate per model and task.
        cap: budget in USD; None for no cap.
        why: reason why calls are not counted exactly.
    """
    for line in estimates:
        about, usd = "" if line.exact else "about ", line.usd
        price = "price unknown" if usd is None else f"{about}{usd:,.4f} USD"
        yield (
            f"{line.who}, {line.stage}: {about}{plural(line.calls, 'call')}, {line.input_tokens:,} tokens in, "
            f"{line.output_tokens:,} out, {price}; {line.cached:,} cached"
        )
        if line.hidden_tokens:
            yield f"{line.hidden_tokens:,} tokens of hidden reasoning are assumed per answer"
    if not all(line.exact for line in estimates):
        yield f"about: {why}"
    if most := total(line.usd_at_most for line in estimates):
        limit = "no cap" if cap is None else f"cap {cap:,.2f} USD"
        yield f"at most {most:,.4f} USD if every answer needs all allowed corrections ({limit})"


def make_paid_cuts(
    config: DocumentsConfig | RunConfig,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
    *,
    again: bool = False,
) -> ChunkingResult:
    """Chunk the documents of a corpus that are not chunked yet. This also works in notebooks.

    The budget covers all chunking in the workspace, including the cost of earlier invocations.

    Args:
        config: the configuration.
        listen: progress callback.
        approve: decides whether an API key may be sent to a new address (see `raggs.app.addresses`).
        again: retry windows whose answers were unusable and that were split by rule.

    Raises:
        UsageError: the corpus has no documents, or its chunker is not paid.
        RaggsError: a key is missing, a provider failed, or the budget is used up; all answers received are stored.
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
            lambda done: listen(BuildProgress("chunked documents", done, 0)),
            again=again,
        )


def forecast_cuts(config: DocumentsConfig | RunConfig, *, again: bool = False) -> CutForecast:
    """Return the expected cost of `make_paid_cuts`. No model is called and nothing is written.

    Raises:
        UsageError: see `make_paid_cuts`.
        RaggsError: the folder or the stored chunks cannot be read.
    """
    with _opened_corpus(config, ignore_event) as (corpus, chunker, workspace), workspace.rehearsal() as llm:
        llm.turn_to(STAGE)
        return CutForecast(*foresee(chunker, corpus.documents(), workspace, llm, again=again), tuple(lines_of(llm)))


@contextmanager
def _opened_corpus(
    config: DocumentsConfig | RunConfig, listen: Listener
) -> Iterator[tuple[CutCorpus, PaidChunker, Workspace]]:
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    spec = corpus.named if isinstance(corpus, CutCorpus) else None
    with Workspace(config.workspace, config.llm, config.budget, hear=listen) as workspace:
        chunker = None if spec is None else workspace.chunker(spec)
        if not isinstance(corpus, CutCorpus) or not isinstance(chunker, PaidChunker):
            raise UsageError(
                "the chunker of this corpus is not paid: raggs chunks the documents when it reads them",
                remedy="skip this step, or set corpus.chunker to {type: llm}",
            )
        chunker.check()
        yield corpus, chunker, workspace


DEFAULT = "5"
CAP = 5.0  # USD


@dataclass(frozen=True)
class ChunkRequest:
    """Comparison of chunkers as requested.

    Attributes:
        corpus: folder of the documents.
        questions: CSV, JSONL or YAML file of questions with the excerpts that answer them.
        chunkers, embedders: in the syntax of the command line, e.g. ``recursive:400:overlap=200``.
        cutoffs: chunks to retrieve per question: numbers, or "min" for as many as overlap an excerpt.
        baseline: system that the others are compared with; None for the first.
        unit: unit of lengths and measures.
        compat: whether to follow the code of Chroma's report instead of its formulas.
        seed: random seed of the bootstrap.
        max_usd: budget in USD for embedders and chunkers, over all comparisons written to one folder.
        llm: settings of model calls; None for the defaults.
    """

    corpus: Path
    questions: Path
    chunkers: Sequence[str]
    embedders: Sequence[str] = ()
    cutoffs: Sequence[str] = (DEFAULT,)
    baseline: str | None = None
    unit: Unit = "characters"
    compat: bool = False
    seed: int = 0
    max_usd: float = CAP
    llm: LLMSettings | None = None

    def permit(self, approve: Approve = approve_nothing) -> None:
        """Check that no API key is sent to a new address named in `llm`. Addresses in chunkers and embedders are not
        checked, because the user typed them.

        Raises:
            PrerequisiteError: a key would be sent to a new address (see `raggs.app.addresses`).
        """
        specs = [*self.chunker_specs().values(), *self.embedder_specs().values()]
        permit_parts(self.llm or LLMSettings(), specs, approve)

    def workspace(self, out: Path, listen: Listener = ignore_event) -> Workspace:
        """Return a workspace that creates the parts and stores its caches below `out`."""
        return Workspace(out, self.llm, BudgetSettings(max_usd=self.max_usd), hear=listen)

    def chunker_specs(self) -> dict[str, ChunkerConfig]:
        """Return the settings of the chunkers by name.

        Raises:
            UsageError: no chunker is given, or a name is unknown.
        """
        names = split_names(self.chunkers, "chunker", "see: raggs list chunkers")
        return {name: parse_spec(name, chunkers.REGISTRY, ChunkerConfig) for name in names}

    def embedder_specs(self) -> dict[str, EmbedderConfig]:
        """Return the settings of the embedders by name, by default that of `default_embedder`.

        Raises:
            UsageError: a name is unknown.
        """
        names = split_names(self.embedders or (default_embedder()["type"],), "embedder", "see: raggs list embedders")
        return {name: parse_spec(name, embedders.REGISTRY, EmbedderConfig) for name in names}


@dataclass(frozen=True)
class ChunkResult:
    """Report of a comparison, and its files."""

    report: ChunkReport
    files: tuple[Path, ...]


def eval_chunks(
    request: ChunkRequest, out: Path, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> ChunkResult:
    """Compare chunkers, and write the report and the caches to `out`. This also works in notebooks.

    Args:
        request: the comparison.
        out: folder for the report and the caches.
        listen: progress callback.
        approve: decides whether an API key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: a part, a file, a question or an excerpt is invalid, or a model failed.
    """
    if in_loop():
        return run_in_thread(lambda hear: eval_chunks(request, out, hear, approve), listen)
    request.permit(approve)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, not a folder", remedy="name another folder with --out")
    with request.workspace(out, listen) as workspace:
        workspace.ledger.turn_to(out / LEDGER, STAGE)
        report = compare_chunkers(_study(request, workspace, listen))
    return ChunkResult(report, tuple(write_files(report, out)))


def _study(request: ChunkRequest, workspace: Workspace, listen: Listener) -> ChunkStudy:
    """Return the input of the comparison with all documents chunked. Errors in the request are raised before any
    work.
    """
    cutters, specs = _chunkers(request, workspace), request.embedder_specs()
    cutoffs, names = _cutoffs(request.cutoffs), system_names(cutters, specs)
    if request.baseline is not None and request.baseline not in names:
        raise UsageError(f"no system has the name {request.baseline!r}", remedy=did_you_mean(request.baseline, names))
    documents = read_documents(request.corpus)
    numbered = open_questions(request.questions, listen)
    lines, asked_for = {qid: line for qid, (line, _) in numbered.items()}, {qid: q for qid, (_, q) in numbered.items()}
    asked = place_questions(asked_for, documents, request.questions, lines)
    made = _make(cutters, documents, workspace, listen)
    notes = [*documents.notes, *(note for name, each in made.items() for note in each.notes(name))]
    cuts = {}
    for name, chunker in cutters.items():
        before = workspace.pieces_found
        tell = partial(_report_progress, listen, f"documents chunked by {name}", len(documents.names))
        cuts[name] = _chunk_documents(chunker, documents, made.get(name), request.compat, tell)
        if found := workspace.pieces_found - before:
            said = f"{name}: vectors of {plural(found, 'piece')} were cached"
            notes.append(f"{said}; its time does not include the computation of these vectors")
    return ChunkStudy(
        documents=documents,
        asked=asked,
        cuts=cuts,
        notes=tuple(notes),
        embeddings=_embeddings(request, documents, workspace, listen),
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
    """Chunk the documents with each paid chunker, and return the results by chunker name.

    Raises:
        ProviderError: a document could not be chunked.
    """
    found = {}
    for name, chunker in cutters.items():
        if isinstance(chunker, PaidChunker):
            require_keys(chunker.models, workspace.settings)
            total = len(documents.names)
            tell = partial(_report_progress, listen, f"chunks of {name}", total)
            found[name] = make_cuts(chunker, documents.whole, workspace, tell)
            if failed := found[name].failed:
                raise ProviderError(
                    f"{name}: {len(failed)} of {plural(total, 'document')} could not be chunked, first: {failed[0]}"
                )
    return found


def _report_progress(listen: Listener, what: str, total: int, done: int) -> None:
    listen(BuildProgress(what, done, total))


def _chunk_documents(
    chunker: Chunker, documents: Documents, made: ChunkingResult | None, compat: bool, tell: Callable[[int], None]
) -> ChunkedDocuments:
    """Chunk the documents. For a paid chunker, the reported time includes the model's time for its earlier calls."""
    found = chunk_documents(chunker, documents, compat=compat, tell=tell)
    return found if made is None else replace(found, seconds=found.seconds + made.seconds)


def _embeddings(
    request: ChunkRequest, documents: Documents, workspace: Workspace, listen: Listener
) -> dict[str, EmbeddingFunctions]:
    """Return the embedders by name; those that must be fitted are fitted on the documents, for all chunkers alike."""
    specs = request.embedder_specs().items()
    texts = FittingTexts(
        lambda: hash_value(list(documents.texts)), lambda: documents.texts, workspace.cache.at("words")
    )
    return {name: _embedding(name, workspace.embedder(spec).fitted(texts), workspace, listen) for name, spec in specs}


def _embedding(name: str, embedder: Embedder, workspace: Workspace, listen: Listener) -> EmbeddingFunctions:
    def tell(done: int, total: int) -> None:
        listen(BuildProgress(f"vectors of {name}", done, total))

    kept = KeptEmbedder(embedder, workspace.cache.at("vectors"), tell)
    return EmbeddingFunctions(kept.embed, kept.embed_queries)


def open_questions(path: Path, listen: Listener = ignore_event) -> Mapping[str, tuple[int, Query]]:
    """Return each question with its line number, by question id.

    Raises:
        UsageError: the file name has no extension that identifies the format.
        RaggsError: the file is missing or malformed.
    """
    return open_numbered(queries.REGISTRY.load(format_of(path)).Config.model_validate({"path": path}), listen)


def _cutoffs(given: Sequence[str]) -> tuple[Cutoff, ...]:
    """Parse cutoffs: each is a positive integer or "min"."""
    words = split_names([each.lower() for each in given], "cutoff", "write a number, min, or several: min,5,10")
    if wrong := next((word for word in words if word != MIN and not (word.isdecimal() and int(word) > 0)), None):
        raise UsageError(f"-k {wrong}: neither a number nor min", remedy="write a number, min, or several: min,5,10")
    return tuple(MIN if word == MIN else int(word) for word in words)


EMBED = "embed"  # stage name in the ledger


def forecast_chunks(request: ChunkRequest, out: Path) -> tuple[CostEstimate, ...]:
    """Return one estimate per model and task of `eval_chunks`. No paid model is called and nothing is written.

    Raises:
        RaggsError: a part, a file, a question or an excerpt is invalid, as in `eval_chunks`.
    """
    with request.workspace(out) as workspace, workspace.rehearsal() as llm:
        _count(request, workspace, llm)
        return tuple(lines_of(llm))


def _count(request: ChunkRequest, workspace: Workspace, llm: DryRunLLM) -> None:
    """Chunk and embed with models that send no requests and only count calls and tokens."""
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
    """Return the texts of the stored chunks. For documents that are not chunked yet, use chunks of assumed length."""
    texts = []
    with workspace.rehearsal() as llm:
        for document in (each.body for each in documents.whole):
            cuts = chunker.kept(document) or workspace.loop.run(chunker.ask(document.body, llm, guess=True))
            texts += [document.body.text[start:end] for start, end in cuts.places(document.body.text)]
    return texts


@dataclass(frozen=True)
class PlacedQuestions:
    """Result of `place_excerpts`.

    Attributes:
        file: file with the questions.
        questions, excerpts: numbers of questions and excerpts.
        notes: notes for the reader, such as excerpts that occur at several places.
    """

    file: Path
    questions: int
    excerpts: int
    notes: tuple[str, ...]


def place_excerpts(corpus: Path, questions: Path, to: Path, listen: Listener = ignore_event) -> PlacedQuestions:
    """Locate the excerpts of all questions, and write the questions with the offsets.

    Excerpts with offsets are compared with the documents. Excerpts without offsets are searched for.

    Args:
        corpus: folder of the documents.
        questions: CSV, JSONL or YAML file.
        to: output file; its extension sets the format. Questions keep their order.
        listen: progress callback.

    Raises:
        UsageError: a file name has no known extension, or `to` is the file of the questions.
        RaggsError: a document, a question or an excerpt is invalid, or `to` cannot be written.
    """
    format_of(to)  # reports an unknown extension before any document is read
    numbered, documents = open_questions(questions, listen), read_documents(corpus)
    if to.exists() and to.samefile(questions):
        raise UsageError(f"{to} is the file of the questions", remedy="name another file with --to")
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
    """Return the question with the located offsets of its references.

    Args:
        places: document number, start and end of each reference; the next ones belong to this question.
    """
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
