"""The corpus of a configuration, with its vectors, into the indexes on servers that its retrievers search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from raggs.app.services import RunServices
from raggs.base.arrays import Vectors, shortest_floats
from raggs.base.errors import ConfigError, UsageError
from raggs.config.models import RunConfig
from raggs.parts import corpora, retrievers
from raggs.parts.elastic.load import Contents, Document, Loaded, Loader, Standing
from raggs.parts.elastic.settings import VectorPlace
from raggs.parts.indexes.vectors import VectorIndex, open_vectors
from raggs.parts.retrievers.base import name_of

SAME = ("id_field", "title_field", "text_field", "metadata_field")


@dataclass(frozen=True)
class Load:
    """One index to be made, and how it stands now."""

    loader: Loader
    standing: Standing


def loads(config: RunConfig, services: RunServices) -> Iterator[Load]:
    """What there is to do; each index is asked how it stands when its job is taken.

    Raises:
        UsageError: no retriever searches Elasticsearch, or the corpus is the index itself.
        ConfigError: two retrievers want the same index otherwise, or no index can have such a name.
        RaggsError: the server cannot say (see `raggs.parts.elastic.server`).
    """
    for place in targets(config):
        contents = _contents(services, place)
        loader = Loader(place, config.index, contents)
        try:
            yield Load(loader, loader.standing())
        finally:
            loader.close()


def targets(config: RunConfig) -> list[VectorPlace]:
    """The indexes that retrievers search, each once, as the first of them that needs vectors describes it.

    Raises:
        UsageError: no retriever searches Elasticsearch, or the corpus is the index itself.
        ConfigError: two retrievers want the same index otherwise, or no index can have such a name.
    """
    places = [(name_of(spec), retrievers.REGISTRY.of(spec).index_place(spec)) for spec in config.retrieve.retrievers]
    searched = [(name, place) for name, place in places if place is not None]
    if not searched:
        raise UsageError(
            "no retriever of type elasticsearch is configured",
            remedy="add one to retrieve.retrievers: {type: elasticsearch, url: ..., index: ...}",
        )
    found: dict[tuple[str, str], tuple[str, VectorPlace]] = {}
    for who, place in sorted(searched, key=lambda pair: not pair[1].by_vectors):
        if place.index != place.index.lower():
            raise ConfigError(
                f"retriever {who}: no index can be created under the name {place.index!r}, which has upper case",
                remedy="use a name in lower case; only an alias can have upper case",
            )
        other, first = found.setdefault((place.url, place.index), (who, place))
        for field in (*SAME, "vector_field") if place.by_vectors else SAME:
            if getattr(first, field) != getattr(place, field):
                raise ConfigError(
                    f"retrievers {other} and {who} search the index {place.index} by another {field}",
                    remedy="give both the same",
                )
    corpus = corpora.REGISTRY.of(config.corpus).index_place(config.corpus)
    if corpus is not None and (corpus.url, corpus.index) in found:
        raise UsageError(f"the corpus is the index {corpus.index} itself", remedy="there is nothing to load; run it")
    return [place for _, place in found.values()]


def run_load(load: Load, services: RunServices, overwrite: bool) -> Loaded:
    """Make the index and load it.

    Raises:
        RaggsError: see `Loader.prepare` and `Loader.load`; what was sent stays, and the next call goes on from there.
    """
    load.loader.prepare(overwrite)
    return load.loader.load(_documents(services), services.workshop.building)


def _contents(services: RunServices, place: VectorPlace) -> Contents:
    store, embedder = services.corpus.store, services.embedder
    if embedder is None:
        return Contents(len(store), store.search_hash)
    return Contents(len(store), store.search_hash, embedder.identity, embedder.dims, place.vector_field)


def _documents(services: RunServices) -> Callable[[int, int], Sequence[Document]]:
    """The documents by position; vectors are made once and kept, like those of the dense retriever."""
    store, embedder, workshop = services.corpus.store, services.embedder, services.workshop
    vectors: VectorIndex | None = None
    if embedder is not None:
        folder, embed = workshop.places.vectors, embedder.embed
        vectors = open_vectors(
            folder, embedder.identity, embedder.dims, store, embed, workshop.building, workshop.notify
        )

    def part(start: int, stop: int) -> list[Document]:
        passages = store.slice(start, stop)
        if vectors is None:
            return [Document(passage, None) for passage in passages]
        rows = vectors.vectors[start:stop]
        return [Document(passage, _values(row)) for passage, row in zip(passages, rows, strict=True)]

    return part


def _values(row: Vectors) -> list[float] | None:
    """The shortest decimals that read back as the same float32; None for a vector of zeros."""
    return shortest_floats(row) if row.any() else None
