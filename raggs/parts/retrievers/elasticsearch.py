"""Retrieval from an Elasticsearch index: its BM25, its kNN, or both fused by raggs.

The two lists of `hybrid` are fused by reciprocal rank in raggs, because not every licence of the server includes
fusion. raggs requests `TIES` hits more than k and truncates the lists, so that ties are ordered by id. The content of
the index at the start of a run is part of the fingerprint (see `raggs.parts.elastic.index`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator, model_validator

from raggs.base.arrays import shortest_float
from raggs.base.errors import DataError
from raggs.base.settings import Causes
from raggs.parts.elastic import MAX_RESULTS, VectorPlace
from raggs.parts.elastic.index import TEXT_TYPES, VECTORS, ElasticIndex
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig
from raggs.ranking.fusion import fuse, make_fusion

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord
    from raggs.parts.retrievers.depth import ScoreSource

TIES = 100  # additional hits requested, so that hits that tie with rank k are selected by id and not by chance
QUERY = "{query}"
ANALYSIS = ("type", "analyzer", "search_analyzer")


class ElasticsearchRetriever(Retriever):
    """An Elasticsearch index: bm25, knn, or hybrid (both, fused by reciprocal rank)."""

    class Config(VectorPlace, RetrieverConfig):
        type: Literal["elasticsearch"] = "elasticsearch"
        k: int = Field(50, ge=1, le=MAX_RESULTS - TIES, description="hits per query")
        mode: Literal["bm25", "knn", "hybrid"] = Field(
            "bm25", description="search method; hybrid: bm25 and knn, fused by reciprocal rank"
        )
        num_candidates: int | None = Field(
            None,
            ge=1,
            le=MAX_RESULTS,
            description="kNN candidates per shard, raised to at least k + 100; null: 4 times k, and at least 200",
        )
        query_template: Mapping[str, Any] | None = Field(
            None,
            description='Elasticsearch query to use for words, with "{query}" as placeholder; null: the words of the '
            "query in title and text",
        )

        @property
        def by_vectors(self) -> bool:
            return self.mode != "bm25"

        @field_validator("query_template")
        @classmethod
        def _asks_something(cls, template: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
            if template is not None and fill(template, "") == fill(template, "?"):
                raise ValueError(f"the template does not contain {QUERY!r}, so all queries would have the same hits")
            return template

        @model_validator(mode="after")
        def _template_is_used(self) -> ElasticsearchRetriever.Config:
            if self.query_template is not None and self.mode == "knn":
                raise ValueError("query_template is a lexical query, which mode knn does not use; remove one of them")
            return self

    config: Config

    @cached_property
    def _index(self) -> ElasticIndex:
        """The index, after checking that it has the fields that the mode needs."""
        config, index = self.config, ElasticIndex(self.config)
        index.need_ids()
        index.need_whole()
        if config.mode != "knn" and config.query_template is None:
            index.need("text_field", config.text_field, TEXT_TYPES)
        if config.mode != "bm25":
            self._check_vectors(index)
        return index

    @classmethod
    def needs_vectors(cls, config: RetrieverConfig) -> bool:
        return isinstance(config, cls.Config) and config.by_vectors

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource | None:
        modes: dict[str, ScoreSource] = {"bm25": "words", "knn": "vectors"}
        return modes.get(config.mode) if isinstance(config, cls.Config) else None

    @classmethod
    def index_place(cls, config: RetrieverConfig) -> VectorPlace | None:
        return config if isinstance(config, cls.Config) else None

    def causes(self) -> Causes:
        return {**self.own_causes(), "index": self._index.state}

    def check(self) -> None:
        """Check that the index is completely loaded and has the fields that the mode needs."""
        self._index  # noqa: B018 - opening it checks it

    def close(self) -> None:
        if "_index" in self.__dict__:
            self._index.close()

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        index = self._index
        for query in queries:
            self._check(query)
        bodies = [list(self._bodies(query)) for query in queries]
        found = index.search([body for both in bodies for body in both if body is not None])
        for query, both in zip(queries, bodies, strict=True):
            lists = [[] if body is None else self._ranked(next(found)) for body in both]
            hits = lists[0][: self.config.k] if len(lists) == 1 else self._fused(lists)
            self._check_known(query, hits)
            yield hits

    def _bodies(self, query: EmbedRecord) -> Iterator[dict[str, Any] | None]:
        """Yield the search requests of a query; None for a request that cannot find anything."""
        config, size = self.config, self.config.k + TIES
        common = {"size": size, "_source": False, **self._index.id_part}
        if config.mode != "knn":
            yield {"query": self._words(query.bm25_text), **common} if query.bm25_text.strip() else None
        if config.mode != "bm25":
            candidates = max(size, config.num_candidates or max(4 * config.k, 200))
            knn = {
                "field": config.vector_field,
                "query_vector": list(query.embedding),
                "k": size,
                "num_candidates": min(candidates, MAX_RESULTS),
            }
            # A text without any known word has a zero vector, for which cosine is undefined.
            yield {"knn": knn, **common} if any(query.embedding) else None

    def _words(self, text: str) -> Mapping[str, Any]:
        """Return the lexical query: the filled `query_template` if it is set.

        Without a template, title and text are searched as one field if they use the same analyzers, as in indexes that
        raggs creates. Otherwise only the text is searched.
        """
        if self.config.query_template is not None:
            return dict(fill(self.config.query_template, text))
        names = [self.config.title_field, self.config.text_field]
        title, body = (self._index.fields.get(name, {}) for name in names)
        if title.get("type") == "text" and all(title.get(part) == body.get(part) for part in ANALYSIS):
            return {"combined_fields": {"query": text, "fields": names}}
        return {"match": {self.config.text_field: {"query": text}}}

    def _ranked(self, hits: Iterable[Mapping[str, Any]]) -> list[Hit]:
        found = _sorted((self._index.doc_id(hit), hit["_score"]) for hit in hits)
        self._index.unlike(hit.doc_id for hit in found)
        return found

    def _fused(self, lists: Sequence[Sequence[Hit]]) -> list[Hit]:
        """Return the reciprocal rank fusion of both lists, each truncated to k."""
        cut = {
            str(place): [(hit.doc_id, hit.score) for hit in hits[: self.config.k]] for place, hits in enumerate(lists)
        }
        fused = fuse(cut, make_fusion("rrf"), depth=self.config.k)
        return _sorted((item.doc_id, item.score) for item in fused)

    def _check_vectors(self, index: ElasticIndex) -> None:
        config, context = self.config, self.context
        if not context.embedder:
            raise DataError(f"mode {config.mode} needs an embedder", remedy="set embed.embedder, or mode: bm25")
        field = index.need("vector_field", config.vector_field, VECTORS)
        dims, made = field.get("dims", context.dims), index.meta.get("embedder", context.embedder)
        remedy = "set embed.embedder to the index's embedder, or recreate the index: raggs index --config FILE"
        if dims != context.dims:
            raise DataError(
                f"wrong dimensions: {config.vector_field} has {dims}, embedder {context.embedder} has {context.dims}",
                where=config.shown,
                remedy=remedy,
            )
        if made != context.embedder:
            raise DataError(
                f"the index was created with {made}, not {context.embedder}", where=config.shown, remedy=remedy
            )

    def _check(self, query: EmbedRecord) -> None:
        if self.config.mode == "bm25" or (
            query.embedder == self.context.embedder and len(query.embedding) == self.context.dims
        ):
            return
        made = query.embedder or "no embedder"
        raise DataError(
            f"query {query.qid} was embedded by {made} in {len(query.embedding)} dimensions, "
            f"not by {self.context.embedder} in {self.context.dims}",
            remedy="run the embed stage again with an embedder: --from embed",
        )

    def _check_known(self, query: EmbedRecord, hits: Sequence[Hit]) -> None:
        """Raise an error if hits are not passages of the corpus."""
        strange = {hit.doc_id for hit in hits} - self.context.passages.known(hit.doc_id for hit in hits)
        if strange:
            shown = ", ".join(islice(sorted(strange), 3))
            raise DataError(
                f"the hits of query {query.qid} include {shown}, which the corpus does not contain",
                where=self.config.shown,
                remedy="use this index as corpus (type: elasticsearch), or load the corpus into it: raggs index",
            )


def fill(template: Any, text: str) -> Any:
    """Return the template with every `{query}` in its string values replaced by `text`; keys stay unchanged."""
    if isinstance(template, str):
        return template.replace(QUERY, text)
    if isinstance(template, Mapping):
        return {key: fill(value, text) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, text) for value in template]
    return template


def _sorted(pairs: Iterable[tuple[str, float]]) -> list[Hit]:
    """Return the hits by descending score, then by doc_id; scores are the shortest decimals of their float32."""
    hits = [Hit(doc_id, shortest_float(score)) for doc_id, score in pairs]
    return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))
