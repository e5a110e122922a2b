"""Passages found by their parts: another retriever searches smaller units, and the passages of the best units are
returned.

The units of a passage are its sentences, windows of sentences, or the chunks of a chunker. Each unit has the title of
its passage. A passage without any unit, for example one that consists of a title, is one unit. The units are stored
like the passages of a corpus, so the indexes over them are cached.

The score of a passage is that of its best unit. The other retriever is called with increasing numbers of units until
every list is the same as that of a search for all units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from raggs.base.adapter import OneOf
from raggs.base.artifacts import Passage
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.parts import chunkers, retrievers
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document, TextRange
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.chunkers.sentence import sentences
from raggs.parts.chunkers.sizes import trim_range
from raggs.parts.indexes.passages import FILE, FORMAT, PassageStore
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord
    from raggs.base.cache import Cache
    from raggs.parts.indexes import IndexFacts
    from raggs.parts.indexes.passages import Passages
    from raggs.parts.retrievers import Faults
    from raggs.parts.retrievers.depth import ScoreSource

Sentence = Literal["sentence"]
SENTENCE: Sentence = "sentence"
UNITS_PER_PASSAGE = 4  # units per requested passage in the first search
ID_SEPARATOR = "/"  # between the id of a passage and the number of its unit


def _reads_corpus(retriever: type[Retriever]) -> bool:
    return retriever.WHOLE_CORPUS


def _calls_no_model(chunker: type[Chunker]) -> bool:
    return not issubclass(chunker, PaidChunker)


class ParentConfig(RetrieverConfig):
    type: Literal["parent"] = "parent"
    of: Annotated[RetrieverConfig, OneOf(retrievers.REGISTRY, _reads_corpus)] = Field(
        description=f"retriever of the units; the first search is for its k units, at least {UNITS_PER_PASSAGE} per hit"
    )
    unit: Sentence | Annotated[ChunkerConfig, OneOf(chunkers.REGISTRY, _calls_no_model)] = Field(
        SENTENCE, description='units of a passage: "sentence", or the settings of a chunker that calls no paid model'
    )
    window: int = Field(
        0, ge=0, description="sentences before and after each sentence that belong to its unit; only for unit: sentence"
    )

    @model_validator(mode="after")
    def _windows_of_sentences(self) -> Self:
        if self.window and self.unit != SENTENCE:
            raise ValueError("window applies only to unit: sentence; remove it, or set the overlap of the chunker")
        return self


class ParentRetriever(Retriever):
    """Passages whose sentences or chunks match best: small units are searched, passages are returned."""

    Config = ParentConfig
    config: ParentConfig

    @classmethod
    def whole_corpus(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003
        return True

    @classmethod
    def needs_vectors(cls, config: RetrieverConfig) -> bool:
        of = _unit_search(config)
        return retrievers.REGISTRY.of(of).needs_vectors(of)

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource | None:
        of = _unit_search(config)
        return retrievers.REGISTRY.of(of).reads(of)

    @classmethod
    def index_faults(cls, config: RetrieverConfig, store: PassageStore, cache: Cache) -> Faults:
        """Yield the altered files among the stored units of the corpus, and in the indexes over them."""
        of, corpora = _unit_search(config), cache.at("corpora")
        for path in sorted(corpora.folder.glob(f"{_folder_prefix(store)}*/{FILE}")):
            faults = list(corpora.faults(path.parent.name))
            yield from faults
            if not faults:
                units = PassageStore.open(path)
                try:
                    yield from retrievers.REGISTRY.of(of).index_faults(of, units, cache)
                finally:
                    units.close()

    def causes(self) -> Causes:
        # The other retriever is created without units: only a search needs them.
        of = self.context.retriever(self.config.of, self.context.passages)
        return {**self.own_causes(), "of": of.causes(), "units": self._unit_causes()}

    def check(self) -> None:
        self._of.check()

    @property
    def facts(self) -> IndexFacts | None:
        return self._of.facts

    def embedded(self) -> Iterator[Passages]:
        yield from self._of.embedded()

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        found: list[list[Hit]] = [[] for _ in queries]
        waiting = list(range(len(queries)))
        depth = max(self.config.of.k, UNITS_PER_PASSAGE * self.config.k)
        while waiting:
            of, config, depth = self._of, self.config.of, min(depth, len(self._units))
            of.config = type(of).at(config, depth)  # the index stays open, only the number of hits changes
            lists = list(of.search([queries[place] for place in waiting]))
            for place, hits in zip(waiting, lists, strict=True):
                found[place] = _best_per_passage(hits)
            if depth == len(self._units):
                break
            waiting = [
                place
                for place, hits in zip(waiting, lists, strict=True)
                if len(hits) == depth and not self._is_final(found[place], hits[-1])
            ]
            depth *= 2
        yield from (hits[: self.config.k] for hits in found)

    def close(self) -> None:
        """Close the store of the units. May be called twice."""
        if "_units" in self.__dict__:
            self.__dict__.pop("_units").close()

    def _is_final(self, hits: Sequence[Hit], last: Hit) -> bool:
        """Return whether further units cannot change the first k hits, because the k-th hit is better than `last`."""
        return len(hits) >= self.config.k and hits[self.config.k - 1].score > last.score

    @cached_property
    def _of(self) -> Retriever:
        return self.context.retriever(self.config.of, self._units)

    @cached_property
    def _chunker(self) -> Chunker | None:
        """The chunker of the units; None for sentences."""
        unit = self.config.unit
        return self.context.chunker(unit) if isinstance(unit, ChunkerConfig) else None

    def _unit_causes(self) -> Causes:
        """Return everything that affects the units, apart from the passages."""
        chunker = None if self._chunker is None else self._chunker.causes()
        return {"chunker": chunker, "window": self.config.window, "version": self.VERSION}

    @cached_property
    def _units(self) -> PassageStore:
        """The units of all passages; their ids are those of the passages with the number of the unit."""
        store, corpora = self.context.store, self.context.cache.at("corpora")

        def make(folder: Path) -> None:
            PassageStore.build(folder / FILE, self._split(store), self.context.progress).close()

        causes = [FORMAT, store.content_hash, self._unit_causes()]
        name = f"{_folder_prefix(store)}{hash_value(causes)[:16]}"
        return PassageStore.open(corpora.files(name, causes, make, "the store of the units").path / FILE)

    def _split(self, passages: Iterable[Passage]) -> Iterator[Passage]:
        for passage in passages:
            texts = [passage.text[start:end] for start, end in self._places(passage)] or [passage.text]
            for number, text in enumerate(texts):
                yield Passage(doc_id=f"{passage.doc_id}{ID_SEPARATOR}{number}", title=passage.title, text=text)

    def _places(self, passage: Passage) -> Iterator[TextRange]:
        """Yield the ranges of the units in the text of a passage."""
        if self._chunker is not None:
            document = Document(passage.text, passage.doc_id)
            yield from ((chunk.start, chunk.end) for chunk in self._chunker.chunk(document))
            return
        ranges = [trim_range(passage.text, each) for each in sentences(passage.text)]
        found, around = [each for each in ranges if each[0] < each[1]], self.config.window
        for number in range(len(found)):
            window = found[max(0, number - around) : number + around + 1]
            yield window[0][0], window[-1][1]


def _best_per_passage(units: Sequence[Hit]) -> list[Hit]:
    """Return the passages of some units with the score of their best unit, best first, ties by id."""
    best: dict[str, float] = {}
    for unit in units:
        doc_id = unit.doc_id.rpartition(ID_SEPARATOR)[0]
        best[doc_id] = max(unit.score, best.get(doc_id, unit.score))
    return sorted((Hit(*each) for each in best.items()), key=lambda hit: (-hit.score, hit.doc_id))


def _folder_prefix(store: PassageStore) -> str:
    """Return the beginning of the names of all folders with units of a corpus."""
    return f"units-{store.content_hash[:16]}-"


def _unit_search(config: RetrieverConfig) -> RetrieverConfig:
    """Return the settings of the retriever of the units."""
    if not isinstance(config, ParentConfig):
        raise TypeError(f"expected settings of type parent, got {config.type}")
    return config.of
