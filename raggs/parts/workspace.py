"""Working parts from what names them: a corpus, an embedder, a retriever, a judge, each made when it is asked for.

It knows no run, no run's configuration and no stage: whoever wants a part says which, and owns what comes of it. What
the parts are is said here too, so that who uses them imports this room alone.

A corpus as it was named: its passages one by one as its source gives them, or all of them on this disk.

The copy on the disk is made once for a source's content and a corpus's settings, whoever asks for it.

Whatever a part needs of another one it is given here, so a retriever or a judge may be made of others by their
settings alone. Nothing is opened, loaded or imported before it is asked for.
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
from raggs.parts.embedders import Embedder, EmbedderConfig, EmbedderContext
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


class OpenCorpus:
    """One corpus. Nothing is read before it is needed.

    Args:
        spec: of the corpus.
        cache: where copies are kept.
        hear: is told of the reading, and of passages that were left out.
        context: what the corpus may use.
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
        """Where the corpus lies, for messages."""
        return place_of(self._spec)

    def passages(self, *, whole: bool) -> Passages:
        """The passages, from their own source where that gives single ones and the `whole` corpus is not needed.

        Raises:
            RaggsError: as `store`; or the source's server has not what is asked of it.
        """
        source = self._source
        if isinstance(source, RemoteCorpus) and not whole:
            return self._remote
        return self.store

    @cached_property
    def store(self) -> PassageStore:
        """All passages, on this disk.

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
        """Documents whole, where the source knows them; else its passages one by one.

        Raises:
            NotFoundError, DataError: the corpus is missing or malformed.
        """
        source = self._source
        yield from source.documents() if isinstance(source, DocumentCorpus) else source.passages()
        self._tell([*source.outside(), *source.notes()])

    def empty(self) -> DataError:
        """What is said of a corpus without passages."""
        return DataError("the corpus holds no passages", where=self.place, remedy="add at least one")

    @property
    def key(self) -> str:
        """A hash of all that its passages depend on, of which no copy need be made.

        Raises:
            NotFoundError, DataError: the corpus is missing.
        """
        return self._key(self._source.source_hash())

    def _key(self, content: str) -> str:
        source = self._source
        cuts = source.cuts_hash() if isinstance(source, CutCorpus) else None
        return hash_value([FORMAT, source.causes(), content, *([] if cuts is None else [cuts])])[:24]

    def close(self) -> None:
        """Let go of files and connections."""
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
            raise TypeError("this corpus does not give single passages")
        return source.remote()

    def _some(self, source: Corpus) -> Iterator[Passage]:
        """The passages of a corpus that has any."""
        number = 0
        for number, passage in enumerate(source.passages(), start=1):  # noqa: B007 - counted for the check below
            yield passage
        if not number:
            error = self.empty()
            error.message = "; ".join((error.message, *source.notes()))
            raise error

    def _tell(self, sentences: Sequence[str]) -> None:
        """Each sentence once."""
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
    """What is told of texts that came in with characters which are none."""
    shown = ", ".join(ids[:MAX_LISTED_IDS]) + (", …" if len(ids) > MAX_LISTED_IDS else "")
    return Notice(f"{plural(len(ids), what)} with U+FFFD in place of what is no character: {shown}")


def place_of(spec: AdapterConfig) -> Path | str:
    """Where the thing that a spec names lies, for messages: its path or address, else its type."""
    return getattr(spec, "path", None) or getattr(spec, "shown", None) or spec.type


Owned = TypeVar("Owned", OpenCorpus, Retriever, Reranker)


class Workspace:
    """The parts of one invocation, each made when it is asked for: models, corpora, embedders, retrievers, judges.

    What its language models spend counts together, in one ledger, within one budget. It is closed at the end of a
    ``with`` block, or by `close`, and not used again.

    Args:
        folder: below it lies the cache.
        llm: how language models are asked.
        budget: what may be spent.
        batch: how questions that can wait are asked by batches; None: directly.
        keeps_answers: whether paid answers are kept in the cache.
        hear: is told what takes its time.
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
        """Language models. Making it touches neither disk nor network."""
        answers = self.answers if self.keeps_answers else None
        return LLM(self.settings, self._budget, answers, self.ledger, self._batch, self._waiting, self.notify)

    @property
    def answers(self) -> Path:
        """The folder of paid answers."""
        return self.cache.at("llm").folder

    @property
    def has_answers(self) -> bool:
        """Whether anything was ever answered here."""
        return self.answers.is_dir() and any(self.answers.iterdir())

    @contextmanager
    def rehearsal(self, *, remembers: bool = True) -> Iterator[DryRunLLM]:
        """The same models, which ask nobody and count; closed at the end of the block.

        Args:
            remembers: whether they answer what was paid for.
        """
        from raggs.llm.rehearsal import DryRunLLM  # late: it brings the ways to providers

        llm = DryRunLLM(self.settings, self.answers if remembers else None)
        try:
            yield llm
        finally:
            self.loop.run(llm.close())

    @property
    def concurrency(self) -> int:
        """Calls that may be on their way at once."""
        return self.settings.concurrency

    @cached_property
    def loop(self) -> asyncio.Runner:
        """The event loop in which everything that waits is awaited."""
        return open_loop()

    def arrive(self) -> None:
        """Let calls on their way arrive, after which all that was paid for is booked."""
        if "llm" in self.__dict__:
            self.loop.run(self.llm.arrive())

    def affords(self) -> float:
        """How many more calls the budget is likely to pay for; inf where nobody asks a language model.

        0 where money is limited and no price is known yet.
        """
        return self.llm.budget.affords() if "llm" in self.__dict__ else float("inf")

    # --- parts that ask them, or may; `llm`: other language models than one's own ---

    def embedder(self, spec: EmbedderConfig, llm: LLM | None = None) -> Embedder:
        """An embedder, one for each of its settings; its model is loaded at first use."""

        def make() -> Embedder:
            return embedders.REGISTRY.of(spec)(spec, EmbedderContext(llm or self.llm, lambda: self.loop))

        return make() if llm else self._embedders(spec, make)

    def rewriter(self, spec: AdapterConfig, llm: LLM | None = None) -> Rewriter:
        """A rewriter of questions."""
        return rewriters.REGISTRY.of(spec)(spec, RewriterContext(llm or self.llm))

    def asker(self, spec: AdapterConfig, llm: LLM | None = None) -> Asker:
        """Who makes questions of documents."""
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
        """A judge that is asked by these prompts, where it is a model.

        Args:
            questions: gives those that are judged, where they are known.
            grades: the prompt by which several passages are graded together, where that is wanted.
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
        """A reranker; its model is loaded at first use.

        Args:
            keeps: whether what a model of this machine has read is looked up and kept, as far as the workspace keeps
                answers; without, each time is that of the work.
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
        """A corpus."""
        return self._own(OpenCorpus(spec, self.cache, self.hear, self.cutting))

    @property
    def cutting(self) -> CorpusContext:
        """What a corpus may use: chunkers that pay nobody. One that asks models gives what it cut before."""
        context = ChunkerContext(self._unpaid, self._asking(pays=False))
        return CorpusContext(lambda cuts: chunkers.REGISTRY.of(cuts)(cuts, context))

    def chunker(self, spec: ChunkerConfig) -> Chunker:
        """A chunker; what it needs is loaded at first use. It may be paid, and its embedder too."""
        return chunkers.REGISTRY.of(spec)(spec, ChunkerContext(self._lent, self._asking(pays=True)))

    def _asking(self, *, pays: bool) -> ModelAccess:
        return ModelAccess(lambda: self.llm, lambda: self.loop, self.cache.at("cuts"), pays)

    def _lent(self, spec: EmbedderConfig) -> Embedder:
        """An embedder of pieces, whose vectors are kept by text; those of a paid one are among the answers already."""
        made = self.embedder(spec)
        if made.models or not self.keeps_answers:
            return made
        return self._lending.setdefault(
            spec.model_dump_json(), KeptEmbedder(made, self.cache.at("vectors"), held=MAX_UNWRITTEN_VECTORS)
        )

    @property
    def pieces_found(self) -> int:
        """Vectors that chunkers were lent and that need not be made."""
        return sum(each.found for each in self._lending.values())

    def _unpaid(self, spec: EmbedderConfig) -> Embedder:
        """An embedder of this machine, since a corpus is read before a user agreed to any cost.

        Raises:
            ConfigError: it is paid.
        """
        found = self._lent(spec)
        if found.models:
            raise ConfigError(
                f"a corpus is cut before anything may be paid for, and {found.models[0]} is paid",
                remedy="name an embedder of this machine in corpus.chunker, such as {type: wordllama}",
            )
        return found

    def retrievers(
        self,
        specs: Iterable[RetrieverConfig],
        passages: Passages,
        queries: Collection[str],
        embedder: Embedder | None,
    ) -> Mapping[str, Retriever]:
        """Retrievers by name; see `retriever`."""
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
        """A retriever over `passages`; its index is built or opened at first search.

        Args:
            queries: the ids of all questions that it may be asked.
            embedder: by which those questions were embedded.
            by_text: whether passages' vectors are kept by text too, since other corpora share texts with this one.
        """
        context = RetrieverContext(
            passages=passages,
            queries=queries,
            embed=no_embedder if embedder is None else self._embed(embedder, by_text=by_text),
            embedder="" if embedder is None else embedder.identity,
            dims=0 if embedder is None else embedder.dims,
            cache=self.cache,
            progress=self.building,
            retriever=lambda other: self.retriever(other, passages, queries, embedder, by_text=by_text),
            reranker=self.reranker,
            loop=lambda: self.loop,
        )
        return self._own(retrievers.REGISTRY.of(spec)(spec, context))

    def _embed(self, embedder: Embedder, *, by_text: bool) -> Callable[[Sequence[str]], Vectors]:
        """What makes vectors of passages; answers that were paid are kept by text in any case."""
        if not by_text or embedder.models:
            return embedder.embed
        return KeptEmbedder(embedder, self.cache.at("vectors")).embed

    def vectors(self, store: PassageStore, embedder: Embedder) -> VectorIndex:
        """The vectors of a corpus, made once."""
        from raggs.parts.indexes.vectors import open_vectors  # late: it brings numpy

        cache = self.cache.at("vectors")
        return open_vectors(cache, embedder.identity, embedder.dims, store, embedder.embed, self.building)

    def vectors_begun(self, store: PassageStore, embedder: Embedder) -> int:
        """How many passages of a corpus, from its first one, have vectors already."""
        from raggs.parts.indexes.vectors import rows_done  # late: it brings numpy

        return rows_done(self.cache.at("vectors"), embedder.identity, embedder.dims, store)

    # --- who listens, and the end ---

    def notify(self, message: str) -> None:
        """Tell the listener what the user should know."""
        self.hear(Notice(message))

    def building(self, what: str, done: int, total: int) -> None:
        """Tell the listener how far something is that is made once."""
        self.hear(BuildProgress(what, done, total))

    def _waiting(self, what: str, done: int, total: int) -> None:
        self.hear(WaitProgress(what, done, total))

    def _own(self, part: Owned) -> Owned:
        self._made.append(part)
        return part

    def close(self) -> None:
        """Close what is open."""
        for each in self._lending.values():
            each.close()
        if "llm" in self.__dict__:
            self.loop.run(self.llm.close())
        if "loop" in self.__dict__:
            self.loop.close()
        while self._made:
            self._made.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def judge_prompts(grade: str, order: str) -> tuple[Prompt, Prompt]:
    """The prompts by which a judge grades and orders, by name or path.

    Raises:
        NotFoundError, ConfigError: there is none, or it lacks a part.
    """
    return load_prompt(grade, "grade"), load_prompt(order, "order")


def open_queries(spec: AdapterConfig, hear: ProgressListener = ignore_progress) -> Mapping[str, Query]:
    """All questions by id, sorted by id; see `open_numbered`."""
    return {qid: query for qid, (_, query) in open_numbered(spec, hear).items()}


def open_numbered(spec: AdapterConfig, hear: ProgressListener = ignore_progress) -> Mapping[str, tuple[int, Query]]:
    """All questions by id, sorted by id, each after its line.

    Args:
        hear: is told of questions that hold characters which are none.

    Raises:
        NotFoundError, DataError: the file is missing or malformed (see `load_numbered`).
    """
    try:
        found = load_numbered(queries.REGISTRY.of(spec)(spec), place_of(spec))
    except NotFoundError as error:
        error.remedy = f"{error.remedy or 'check queries.path'}; raggs questions makes some of the documents"
        raise
    if broken := [qid for qid, (_, query) in found.items() if REPLACEMENT_CHAR in query.model_dump_json()]:
        hear(replaced_characters_notice("question", broken))
    return found


def read_whole(specs: Iterable[RetrieverConfig]) -> bool:
    """Whether any of these retrievers reads the whole corpus."""
    return any(retrievers.REGISTRY.of(spec).whole_corpus(spec) for spec in specs)
