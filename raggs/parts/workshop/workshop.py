"""The workshop: from the settings of a part to the part.

Whatever a part needs of another one it is given here, so a retriever or a judge may be made of others by their
settings alone. Nothing is opened, loaded or imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import ConfigError
from raggs.base.progress import Hear, deaf
from raggs.llm import LLM, BatchSettings, BudgetSettings, LLMSettings
from raggs.parts import chunkers, rerankers, retrievers
from raggs.parts.chunkers.base import Asking, Chunker, ChunkerConfig, ChunkerContext
from raggs.parts.corpora.base import CorpusContext
from raggs.parts.embedders.base import Embedder, EmbedderConfig
from raggs.parts.embedders.kept import KeptEmbedder
from raggs.parts.indexes.passages import Passages
from raggs.parts.indexes.places import Places
from raggs.parts.rerankers.base import Reranker, RerankerConfig, RerankerContext
from raggs.parts.retrievers.base import Retriever, RetrieverConfig, RetrieverContext, name_of, no_embedder
from raggs.parts.workshop.corpus import OpenCorpus
from raggs.parts.workshop.models import Models

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors

Owned = TypeVar("Owned", OpenCorpus, Retriever, Reranker)


class Workshop(Models):
    """Makes parts. One workshop serves one invocation: what its language models spend counts together.

    Args:
        workspace: below it lie the caches.
        llm: how language models are asked.
        budget: what may be spent.
        batch: how questions that can wait are asked by batches; None: directly.
        keeps_answers: whether paid answers are kept in the workspace.
        hear: is told what takes its time.
    """

    def __init__(
        self,
        workspace: Path,
        llm: LLMSettings | None = None,
        budget: BudgetSettings | None = None,
        *,
        batch: BatchSettings | None = None,
        keeps_answers: bool = True,
        hear: Hear = deaf,
    ) -> None:
        super().__init__(
            Places.of(workspace),
            llm or LLMSettings(),
            budget or BudgetSettings(),
            batch=batch,
            keeps_answers=keeps_answers,
            hear=hear,
        )
        self._lending: dict[str, KeptEmbedder] = {}
        self._made: list[OpenCorpus | Retriever | Reranker] = []

    def corpus(self, spec: AdapterConfig) -> OpenCorpus:
        """A corpus; closed with the workshop."""
        return self._own(OpenCorpus(spec, self.places, self._hear, self.cutting))

    @property
    def cutting(self) -> CorpusContext:
        """What a corpus may use: chunkers that pay nobody. One that asks models gives what it cut before."""
        context = ChunkerContext(self._unpaid, self._asking(pays=False))
        return CorpusContext(lambda cuts: chunkers.REGISTRY.of(cuts)(cuts, context))

    def chunker(self, spec: ChunkerConfig) -> Chunker:
        """A chunker; what it needs is loaded at first use. It may be paid, and its embedder too."""
        return chunkers.REGISTRY.of(spec)(spec, ChunkerContext(self._lent, self._asking(pays=True)))

    def _asking(self, *, pays: bool) -> Asking:
        return Asking(lambda: self.llm, lambda: self.loop, self.places.cuts, pays, self.notify)

    def _lent(self, spec: EmbedderConfig) -> Embedder:
        """An embedder of pieces, whose vectors are kept by text; those of a paid one are among the answers already."""
        made = self.embedder(spec)
        if made.models or not self.keeps_answers:
            return made
        return self._lending.setdefault(spec.model_dump_json(), KeptEmbedder(made, self.places.vectors, self.notify))

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

    def reranker(self, spec: RerankerConfig, llm: LLM | None = None, *, keeps: bool = True) -> Reranker:
        """A reranker; its model is loaded at first use. Closed with the workshop.

        Args:
            llm: other language models than one's own.
            keeps: whether what a model of this machine has read is looked up and kept, as far as the workshop keeps
                answers; without, each time is that of the work.
        """
        context = RerankerContext(
            llm or self.llm,
            self.places,
            keeps and self.keeps_answers,
            self.notify,
            lambda other: self.reranker(other, llm, keeps=keeps),
        )
        return self._own(rerankers.REGISTRY.of(spec)(spec, context))

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
        """A retriever over `passages`; its index is built or opened at first search. Closed with the workshop.

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
            places=self.places,
            progress=self.building,
            retriever=lambda other: self.retriever(other, passages, queries, embedder, by_text=by_text),
            reranker=self.reranker,
            loop=lambda: self.loop,
            notify=self.notify,
        )
        return self._own(retrievers.REGISTRY.of(spec)(spec, context))

    def _embed(self, embedder: Embedder, *, by_text: bool) -> Callable[[Sequence[str]], Vectors]:
        """What makes vectors of passages; answers that were paid are kept by text in any case."""
        if not by_text or embedder.models:
            return embedder.embed
        from raggs.parts.embedders.kept import KeptVectors  # late: it brings numpy

        return KeptVectors(embedder, self.places.vectors, notify=self.notify).of

    def close(self) -> None:
        """Close what is open; a closed workshop is not used again."""
        for each in self._lending.values():
            each.close()
        super().close()
        while self._made:
            self._made.pop().close()

    def _own(self, part: Owned) -> Owned:
        self._made.append(part)
        return part


def read_whole(specs: Iterable[RetrieverConfig]) -> bool:
    """Whether any of these retrievers reads the whole corpus."""
    return any(retrievers.REGISTRY.of(spec).whole_corpus(spec) for spec in specs)
