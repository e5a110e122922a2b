"""Creates parts from their settings: corpora, embedders, retrievers, judges and others.

A workspace does not depend on runs, run configurations or stages. The caller specifies each part. The types of the
parts are re-exported, so that callers only import this module.

`OpenCorpus` returns the passages of a corpus one by one from its source, or all of them from a local copy. The copy is
made once per source content and settings, and shared by all callers.

If a part needs other parts, it gets them from the workspace, so retrievers and judges can be composed by settings.
No part is opened, loaded or imported before it is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Query
from raggs.base.cache import Cache, OnceCache
from raggs.base.errors import ConfigError, DataError, NotFoundError
from raggs.base.hashing import hash_value
from raggs.base.loops import open_loop
from raggs.base.text import REPLACEMENT_CHAR, plural
from raggs.base.types import BuildProgress, Notice, ProgressListener, WaitProgress, ignore_progress
from raggs.llm import LLM, BatchSettings, BudgetSettings, CallLedger, LLMSettings
from raggs.parts import askers, chunkers, corpora, embedders, judges, queries, rerankers, retrievers, rewriters
from raggs.parts.askers import Asker, AskerContext
from raggs.parts.chunkers import Chunker, ChunkerConfig, ChunkerContext, Document, ModelAccess
from raggs.parts.corpora import Corpus, CorpusContext, CutCorpus, DocumentCorpus, RemoteCorpus
from raggs.parts.embedders import Embedder, EmbedderConfig, EmbedderContext, FittingTexts
from raggs.parts.embedders.vector_cache import MAX_UNWRITTEN_VECTORS, KeptEmbedder
from raggs.parts.indexes.passages import FILE, FORMAT, Passages, PassageStore
from raggs.parts.judges import Calls, Judge, JudgeContext, Ordering, Task, reviews_beside
from raggs.parts.queries.fields import load_numbered
from raggs.parts.rerankers import Reranker, RerankerConfig, RerankerContext
from raggs.parts.retrievers import Retriever, RetrieverConfig, RetrieverContext, name_of, no_embedder
from raggs.parts.rewriters import Rewriter, RewriterContext
from raggs.prompts import Prompt, load_prompt

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors
    from raggs.llm.rehearsal import DryRunLLM
    from raggs.parts.indexes.vectors import VectorIndex

__all__ = [
    "LLM",
    "Asker",
    "Calls",
    "Chunker",
    "Embedder",
    "Judge",
    "OpenCorpus",
    "Ordering",
    "Passages",
    "Prompt",
    "Reranker",
    "Retriever",
    "Rewriter",
    "Task",
    "Workspace",
    "judge_prompts",
    "open_numbered",
    "open_queries",
    "place_of",
    "read_whole",
]

MAX_LISTED_IDS = 3
PASSAGES_PER_BLOCK = 1000  # passages read at a time


class OpenCorpus:
    """One corpus of a workspace; it is not read before it is needed.

    Args:
        spec: settings of the corpus.
        cache: cache of local copies.
        hear: receives progress, and notices on skipped passages.
        context: resources for the corpus.
    """

    def __init__(
        self, spec: AdapterConfig, cache: Cache, hear: ProgressListener, context: CorpusContext | None = None
    ) -> None:
        self._spec = spec
        self._cache = cache
        self._hear = hear
        self._context = context or CorpusContext()
        self._told: set[str] = set()

    @property
    def place(self) -> Path | str:
        """Location of the corpus, for messages."""
        return place_of(self._spec)

    def passages(self, *, whole: bool) -> Passages:
        """Return the passages: directly from the source if it supports lookups and the `whole` corpus is not needed,
        otherwise from the local copy.

        Raises:
            RaggsError: see `store`; or the server lacks a required index or field.
        """
        source = self._source
        if isinstance(source, RemoteCorpus) and not whole:
            return self._remote
        return self.store

    @cached_property
    def store(self) -> PassageStore:
        """All passages, from the local copy.

        Raises:
            NotFoundError, DataError: the corpus is missing, malformed or empty, or changed while it was read.
            ProviderError: the workspace cannot be written.
        """
        source = self._source
        content = source.source_hash()

        def make(folder: Path) -> None:
            PassageStore.build(
                folder / FILE,
                self._some(source),
                progress=self._building,
                notes=source.notes,
                cutting_s=lambda: source.cutting_s,
                unreadable=lambda: source.unreadable,
            ).close()
            if source.source_hash() != content:
                raise DataError("the corpus changed while it was read", where=self.place, remedy="run again")

        name = f"{self._spec.type}-{self._key(content)}"
        store = PassageStore.open(self._cache.at("corpora").files(name, name, make, "the passage store").path / FILE)
        self._tell([*source.outside(), *store.notes])
        self._tell_replaced(source)
        return store

    def documents(self) -> Iterator[Document | Passage]:
        """Yield whole documents if the source has documents, otherwise its passages.

        Raises:
            NotFoundError, DataError: the corpus is missing or malformed.
        """
        source = self._source
        yield from source.documents() if isinstance(source, DocumentCorpus) else source.passages()
        self._tell([*source.outside(), *source.notes()])

    @property
    def fitting(self) -> FittingTexts:
        """The passages as texts that an embedder can be fitted on; the whole corpus is read when they are needed."""

        def texts() -> Iterator[str]:
            for start in range(0, len(self.store), PASSAGES_PER_BLOCK):
                yield from self.store.contents(start, min(start + PASSAGES_PER_BLOCK, len(self.store)))

        return FittingTexts(lambda: self.store.search_hash, texts, self._cache.at("words"))

    def empty(self) -> DataError:
        """Return the error for a corpus without passages."""
        return DataError("the corpus contains no passages", where=self.place, remedy="add at least one passage")

    @property
    def key(self) -> str:
        """Hash of everything that determines the passages; it can be computed without a local copy.

        Raises:
            NotFoundError, DataError: the corpus is missing.
        """
        return self._key(self._source.source_hash())

    def _key(self, content: str) -> str:
        source = self._source
        cuts = source.cuts_hash() if isinstance(source, CutCorpus) else None
        return hash_value([FORMAT, source.causes(), content, *([] if cuts is None else [cuts])])[:24]

    def close(self) -> None:
        """Close files and connections."""
        if "_remote" in self.__dict__:
            self._tell_replaced(self._source)
        for part in ("store", "_remote"):
            if part in self.__dict__:
                self.__dict__.pop(part).close()

    @cached_property
    def _source(self) -> Corpus:
        source = corpora.REGISTRY.of(self._spec)(self._spec)
        source.context = self._context
        return source

    @cached_property
    def _remote(self) -> Passages:
        source = self._source
        if not isinstance(source, RemoteCorpus):
            raise TypeError("this corpus does not support lookups of single passages")
        return source.remote()

    def _some(self, source: Corpus) -> Iterator[Passage]:
        """Yield the passages of a corpus; raise an error if it has no passages."""
        number = 0
        for number, passage in enumerate(source.passages(), start=1):  # noqa: B007 - counted for the check below
            yield passage
        if not number:
            error = self.empty()
            error.message = "; ".join((error.message, *source.notes()))
            raise error

    def _tell(self, sentences: Sequence[str]) -> None:
        """Send each notice once."""
        for sentence in sentences:
            if sentence not in self._told:
                self._told.add(sentence)
                self._hear(Notice(sentence))

    def _tell_replaced(self, source: Corpus) -> None:
        if source.replaced:
            self._hear(replaced_characters_notice("passage", sorted(source.replaced)))
            source.replaced.clear()

    def _building(self, what: str, done: int, total: int) -> None:
        self._hear(BuildProgress(what, done, total))


def replaced_characters_notice(what: str, ids: Sequence[str]) -> Notice:
    """Return the notice that invalid characters in texts were replaced."""
    shown = ", ".join(ids[:MAX_LISTED_IDS]) + (", …" if len(ids) > MAX_LISTED_IDS else "")
    return Notice(f"{plural(len(ids), what)} with invalid characters, replaced by U+FFFD: {shown}")


def place_of(spec: AdapterConfig) -> Path | str:
    """Return the location of a configured part for messages: its path or address, otherwise its type."""
    return getattr(spec, "path", None) or getattr(spec, "shown", None) or spec.type


Owned = TypeVar("Owned", OpenCorpus, Retriever, Reranker)


class Workspace:
    """The parts of one invocation, each created on request: models, corpora, embedders, retrievers, judges.

    All calls of its language models share one ledger and one budget. To close the workspace, use it in a ``with``
    block, or call `close`.

    Args:
        folder: parent folder of the cache.
        llm: settings of language models.
        budget: spending limits.
        batch: settings of provider batches for calls that can wait; None: direct calls only.
        keeps_answers: whether paid answers, and outputs of local models in rerankers and chunkers, are cached.
        hear: receives progress and notices.
    """

    def __init__(
        self,
        folder: Path,
        llm: LLMSettings | None = None,
        budget: BudgetSettings | None = None,
        *,
        batch: BatchSettings | None = None,
        keeps_answers: bool = True,
        hear: ProgressListener = ignore_progress,
    ) -> None:
        self.settings = llm or LLMSettings()
        self.cache = Cache.of(folder, self.notify)
        self.ledger = CallLedger(allow_mixed=self.settings.allow_mixed)
        self.keeps_answers = keeps_answers
        self.hear = hear
        self._budget, self._batch = budget or BudgetSettings(), batch
        self._embedders = OnceCache[Embedder]()
        self._lending: dict[str, KeptEmbedder] = {}
        self._made: list[OpenCorpus | Retriever | Reranker] = []

    # --- language models ---

    @cached_property
    def llm(self) -> LLM:
        """Client of the language models, created without access to disk or network."""
        answers = self.answers if self.keeps_answers else None
        return LLM(self.settings, self._budget, answers, self.ledger, self._batch, self._waiting, self.notify)

    @property
    def answers(self) -> Path:
        """Folder of cached answers."""
        return self.cache.at("llm").folder

    @property
    def has_answers(self) -> bool:
        """Whether the cache contains any answers."""
        return self.answers.is_dir() and any(self.answers.iterdir())

    @contextmanager
    def rehearsal(self, *, remembers: bool = True) -> Iterator[DryRunLLM]:
        """Yield a dry-run client, which counts calls without making any; it is closed at the end of the block.

        Args:
            remembers: whether cached answers are used.
        """
        from raggs.llm.rehearsal import DryRunLLM  # imported lazily: it imports the clients of providers

        llm = DryRunLLM(self.settings, self.answers if remembers else None)
        try:
            yield llm
        finally:
            self.loop.run(llm.close())

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent calls to language models."""
        return self.settings.concurrency

    @cached_property
    def loop(self) -> asyncio.Runner:
        """Event loop for all coroutines."""
        return open_loop()

    def arrive(self) -> None:
        """Wait for running calls, so that all paid calls are in the ledger."""
        if "llm" in self.__dict__:
            self.loop.run(self.llm.arrive())

    def affords(self) -> float:
        """Return the estimated number of further calls within the budget; inf without a limit or a language model.

        The result is 0 if a budget in USD is set but the cost of a call is not known yet.
        """
        return self.llm.budget.affords() if "llm" in self.__dict__ else float("inf")

    # --- parts that may call language models; `llm` replaces the workspace's models ---

    def embedder(self, spec: EmbedderConfig, llm: LLM | None = None, corpus: OpenCorpus | None = None) -> Embedder:
        """Return the embedder with these settings; its model is loaded at first use.

        All callers that do not set `llm` share the embedder.

        Args:
            corpus: texts for an embedder that must be fitted (see `Embedder.fitted`); others do not read it.
        """
        if corpus is not None and embedders.REGISTRY.of(spec).NEEDS_FIT:
            return self._embedders((spec, id(corpus)), lambda: self.embedder(spec, llm).fitted(corpus.fitting))

        def make() -> Embedder:
            return embedders.REGISTRY.of(spec)(spec, EmbedderContext(llm or self.llm, lambda: self.loop))

        return make() if llm else self._embedders(spec, make)

    def rewriter(self, spec: AdapterConfig, llm: LLM | None = None) -> Rewriter:
        """Return a rewriter of queries."""
        return rewriters.REGISTRY.of(spec)(spec, RewriterContext(llm or self.llm))

    def asker(self, spec: AdapterConfig, llm: LLM | None = None) -> Asker:
        """Return an asker, which writes questions about documents."""
        return askers.REGISTRY.of(spec)(spec, AskerContext(llm or self.llm))

    def judge(
        self,
        spec: AdapterConfig,
        grade: Prompt,
        order: Prompt,
        llm: LLM | None = None,
        questions: Callable[[], Iterable[Query]] | None = None,
        grades: Prompt | None = None,
    ) -> Judge:
        """Return a judge with these prompts, which are used if it calls models.

        Args:
            questions: function that returns the queries that are judged; None if they are not known.
            grades: prompt for grading several passages in one call; None to grade them one by one.
        """
        context = JudgeContext(
            llm=llm or self.llm,
            grade_prompt=grade,
            order_prompt=order,
            judge=lambda other: self.judge(other, grade, order, llm, questions, grades),
            reviews=reviews_beside(self.cache.folder.parent),
            questions=questions,
            grades_prompt=grades,
        )
        return judges.REGISTRY.of(spec)(spec, context)

    def reranker(self, spec: RerankerConfig, llm: LLM | None = None, *, keeps: bool = True) -> Reranker:
        """Return a reranker; its model is loaded at first use.

        Args:
            keeps: whether outputs of local models are cached, if the workspace caches answers. To measure latencies,
                set it to False, so that every output is computed.
        """
        context = RerankerContext(
            llm or self.llm,
            self.cache if keeps and self.keeps_answers else None,
            self.notify,
            lambda other: self.reranker(other, llm, keeps=keeps),
        )
        return self._own(rerankers.REGISTRY.of(spec)(spec, context))

    # --- corpora, and what searches them ---

    def corpus(self, spec: AdapterConfig) -> OpenCorpus:
        """Return a corpus."""
        return self._own(OpenCorpus(spec, self.cache, self.hear, self.cutting))

    @property
    def cutting(self) -> CorpusContext:
        """Resources for corpora: chunkers that make no paid calls; if a chunker calls models, it returns cached
        boundaries.
        """
        return CorpusContext(self.free_chunker)

    def free_chunker(self, spec: ChunkerConfig) -> Chunker:
        """Return a chunker that makes no paid calls; if it calls models, it returns cached boundaries."""
        context = ChunkerContext(self._unpaid, self._asking(pays=False))
        return chunkers.REGISTRY.of(spec)(spec, context)

    def chunker(self, spec: ChunkerConfig) -> Chunker:
        """Return a chunker, which may make paid calls; its resources are loaded at first use."""
        return chunkers.REGISTRY.of(spec)(spec, ChunkerContext(self._lent, self._asking(pays=True)))

    def _asking(self, *, pays: bool) -> ModelAccess:
        return ModelAccess(lambda: self.llm, lambda: self.loop, self.cache.at("cuts"), pays)

    def _lent(self, spec: EmbedderConfig) -> Embedder:
        """Return an embedder for pieces of texts. Vectors of local models are cached by text if the workspace caches
        answers.

        Vectors of paid models need no such cache, because their answers are cached. Embedders that are fitted have
        other vectors for each document.
        """
        made = self.embedder(spec)
        if made.models or made.NEEDS_FIT or not self.keeps_answers:
            return made
        return self._lending.setdefault(
            spec.model_dump_json(), KeptEmbedder(made, self.cache.at("vectors"), held=MAX_UNWRITTEN_VECTORS)
        )

    @property
    def pieces_found(self) -> int:
        """Number of vectors that chunkers found in the cache or in memory."""
        return sum(each.found for each in self._lending.values())

    def _unpaid(self, spec: EmbedderConfig) -> Embedder:
        """Return a local embedder. Paid embedders are not allowed, because a corpus is read before the user has
        accepted any cost.

        Raises:
            ConfigError: the embedder is paid.
        """
        found = self._lent(spec)
        if found.models:
            raise ConfigError(
                f"the chunker of a corpus must not make paid calls, but {found.models[0]} is paid",
                remedy="set a local embedder in corpus.chunker, such as {type: lsa}",
            )
        return found

    def retrievers(
        self,
        specs: Iterable[RetrieverConfig],
        passages: Passages,
        queries: Collection[str],
        embedder: Embedder | None,
    ) -> Mapping[str, Retriever]:
        """Return the retrievers by name (see `retriever`)."""
        return {name_of(spec): self.retriever(spec, passages, queries, embedder) for spec in specs}

    def retriever(
        self,
        spec: RetrieverConfig,
        passages: Passages,
        queries: Collection[str],
        embedder: Embedder | None,
        *,
        by_text: bool = False,
    ) -> Retriever:
        """Return a retriever over `passages`; its index is built or opened at the first search.

        Args:
            queries: ids of all queries that may be searched for.
            embedder: embedder of these queries.
            by_text: whether passage vectors are also cached by text, for other corpora that contain the same texts.
        """
        context = RetrieverContext(
            passages=passages,
            queries=queries,
            embed=no_embedder if embedder is None else self._embed(embedder, by_text=by_text),
            embedder="" if embedder is None else embedder.identity,
            dims=0 if embedder is None else embedder.dims,
            cache=self.cache,
            progress=self.building,
            retriever=lambda other, among: self.retriever(other, among, queries, embedder, by_text=by_text),
            reranker=self.reranker,
            chunker=self.free_chunker,
            loop=lambda: self.loop,
        )
        return self._own(retrievers.REGISTRY.of(spec)(spec, context))

    def _embed(self, embedder: Embedder, *, by_text: bool) -> Callable[[Sequence[str]], Vectors]:
        """Return the function that embeds passages, cached by text if requested; paid vectors are cached anyway."""
        if not by_text or embedder.models:
            return embedder.embed
        return KeptEmbedder(embedder, self.cache.at("vectors")).embed

    def vectors(self, store: PassageStore, embedder: Embedder) -> VectorIndex:
        """Return the vectors of a corpus; they are computed if they are not on disk."""
        from raggs.parts.indexes.vectors import open_vectors  # imported lazily: it imports numpy

        cache = self.cache.at("vectors")
        return open_vectors(cache, embedder.identity, embedder.dims, store, embedder.embed, self.building)

    def vectors_begun(self, store: PassageStore, embedder: Embedder) -> int:
        """Return how many passages of a corpus already have vectors; these are the first passages."""
        from raggs.parts.indexes.vectors import rows_done  # imported lazily: it imports numpy

        return rows_done(self.cache.at("vectors"), embedder.identity, embedder.dims, store)

    # --- listeners and closing ---

    def notify(self, message: str) -> None:
        """Send a notice for the user."""
        self.hear(Notice(message))

    def building(self, what: str, done: int, total: int) -> None:
        """Send the progress of a build."""
        self.hear(BuildProgress(what, done, total))

    def _waiting(self, what: str, done: int, total: int) -> None:
        self.hear(WaitProgress(what, done, total))

    def _own(self, part: Owned) -> Owned:
        self._made.append(part)
        return part

    def close(self) -> None:
        """Close all parts that are open."""
        for each in self._lending.values():
            each.close()
        while self._made:  # before the loop, in which retrievers close their connections
            self._made.pop().close()
        if "llm" in self.__dict__:
            self.loop.run(self.llm.close())
        if "loop" in self.__dict__:
            self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def judge_prompts(grade: str, order: str) -> tuple[Prompt, Prompt]:
    """Return the prompts for grading and ordering, by name or path.

    Raises:
        NotFoundError, ConfigError: a prompt does not exist, or lacks a part.
    """
    return load_prompt(grade, "grade"), load_prompt(order, "order")


def open_queries(spec: AdapterConfig, hear: ProgressListener = ignore_progress) -> Mapping[str, Query]:
    """Return all queries by id, sorted by id (see `open_numbered`)."""
    return {qid: query for qid, (_, query) in open_numbered(spec, hear).items()}


def open_numbered(spec: AdapterConfig, hear: ProgressListener = ignore_progress) -> Mapping[str, tuple[int, Query]]:
    """Return the line number and the query by id, sorted by id.

    Args:
        hear: receives a notice on queries with replaced characters.

    Raises:
        NotFoundError, DataError: the file is missing or malformed (see `load_numbered`).
    """
    try:
        found = load_numbered(queries.REGISTRY.of(spec)(spec), place_of(spec))
    except NotFoundError as error:
        error.remedy = f"{error.remedy or 'check queries.path'}; to generate queries, run raggs questions"
        raise
    if broken := [qid for qid, (_, query) in found.items() if REPLACEMENT_CHAR in query.model_dump_json()]:
        hear(replaced_characters_notice("query", broken))
    return found


def read_whole(specs: Iterable[RetrieverConfig]) -> bool:
    """Return whether any of these retrievers needs the whole corpus."""
    return any(retrievers.REGISTRY.of(spec).whole_corpus(spec) for spec in specs)
