"""Creates an index and loads documents; an interruption loses at most one request.

The mapping is explicit and strict, and describes the source of the index (`_meta`). Loading an index with the same
description resumes: existing documents are not sent again. Sending a document twice has no effect, because its `_id` is
the passage id. An index with another description is replaced only on request. An index without a description was not
created by raggs and is never replaced. At the end, the numbers of documents and vectors on the server are verified.
Until then the mapping is marked as `loading`, and raggs refuses to search the index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from raggs.base.artifacts import Passage
from raggs.base.errors import DataError, ProviderError
from raggs.base.text import clean_passage, plural, shorten
from raggs.parts.elastic import ElasticIndexSettings, IndexPlace
from raggs.parts.elastic.index import LOADING, META, ElasticIndex
from raggs.parts.elastic.passages import RAW_FIELD, SPAN, IndexPassages
from raggs.parts.elastic.server import ElasticServer

REPLACE = "pass --yes to delete the index and load it again, or use another one"


@dataclass(frozen=True)
class Contents:
    """Intended content of an index. `dims` is 0 for an index without vectors."""

    documents: int
    content_hash: str
    embedder: str = ""
    dims: int = 0
    vector_field: str = "vector"


class IndexDocument(NamedTuple):
    """A passage and its vector; `vector` is None if it would be zero (a text without any known word), or if the index
    has no vectors.
    """

    passage: Passage
    vector: Sequence[float] | None


class IndexState(NamedTuple):
    """Comparison of the index on the server with its intended content.

    `kind` is "absent" (no such index), "begun" (same description, perhaps complete), "other" (another description) or
    "foreign" (not created by raggs).
    """

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class LoadResult:
    """Result of a load: documents and vectors in the index, and the number of documents that this load sent."""

    documents: int
    vectors: int
    sent: int
    seconds: float


class Loader:
    """Loads `contents` into the index of `place`; without `server`, it connects to the server of `place`."""

    def __init__(
        self, place: IndexPlace, settings: ElasticIndexSettings, contents: Contents, server: ElasticServer | None = None
    ) -> None:
        self.place = place
        self.contents = contents
        self._settings = settings
        self._index = ElasticIndex(place, server)

    def notes(self) -> dict[str, Any]:
        """Return the settings and contents that identify the index."""
        place, contents = self.place, self.contents
        names = {name: getattr(place, name) for name in ("id_field", "title_field", "text_field", "metadata_field")}
        notes = {"passages": contents.content_hash, "documents": contents.documents, **names}
        notes |= self._settings.model_dump(include={"analyzer", "shards"})
        if contents.dims:
            notes |= {"embedder": contents.embedder, "dims": contents.dims, "vector_field": contents.vector_field}
            notes |= self._settings.model_dump(include={"m", "ef_construction"})
        return notes

    def body(self) -> dict[str, Any]:
        """Return the settings and mappings with which the index is created."""
        place, words = self.place, {"type": "text", "analyzer": self._settings.analyzer}
        properties: dict[str, Any] = {
            place.title_field: words,
            place.text_field: words,
            place.metadata_field: {"type": "object", "enabled": False},
            SPAN: {"type": "object", "enabled": False},
            RAW_FIELD: {"type": "object", "enabled": False},
        }
        if place.id_field != "_id":
            properties[place.id_field] = {"type": "keyword"}
        if self.contents.dims:
            graph = {"type": "hnsw", **self._settings.model_dump(include={"m", "ef_construction"})}
            properties[self.contents.vector_field] = {
                "type": "dense_vector",
                "dims": self.contents.dims,
                "index": True,
                "similarity": "cosine",
                "index_options": graph,
            }
        notes = {**self.notes(), LOADING: True}
        return {
            "settings": {"number_of_shards": self._settings.shards, "number_of_replicas": self._settings.replicas},
            "mappings": {"dynamic": "strict", "_meta": {META: notes}, "properties": properties},
        }

    def standing(self) -> IndexState:
        """Return how the index on the server compares with the intended content."""
        if not self._index.server.call(lambda client: client.indices.exists(index=self.place.index)):
            return IndexState("absent")
        notes, wanted = {**self._index.meta}, self.notes()
        partly = notes.pop(LOADING, False)
        if not notes:
            return IndexState("foreign", "it was not created by raggs")
        for name in sorted({*notes, *wanted}):
            if notes.get(name) != wanted.get(name):
                old, new = (shorten(str(found.get(name, "absent")), 24) for found in (notes, wanted))
                return IndexState("other", f"its {name} is {old}, not {new}")
        return IndexState("begun", plural(self._index.count(), "document") + (", incomplete" if partly else ""))

    def prepare(self, overwrite: bool) -> None:
        """Create the index if it does not exist; with `overwrite`, replace an index of raggs that has other contents.

        Raises:
            DataError: an index of this name has other contents and is not replaced.
        """
        standing = self.standing()
        if standing.kind == "foreign" or (standing.kind == "other" and not overwrite):
            remedy = REPLACE if standing.kind == "other" else "use another index; raggs deletes only its own indexes"
            raise DataError(f"the index already exists, and {standing.detail}", where=self.place.shown, remedy=remedy)
        if standing.kind == "other":
            self._index.server.call(lambda client: client.indices.delete(index=self.place.index))
        if standing.kind != "begun":
            # If the answer is lost, the retry finds the index that the first attempt created.
            self._index.server.call(
                lambda client: (
                    client.indices.exists(index=self.place.index).body
                    or client.indices.create(index=self.place.index, **self.body())
                )
            )

    def load(
        self, documents: Callable[[int, int], Sequence[IndexDocument]], progress: Callable[[str, int, int], None]
    ) -> LoadResult:
        """Send missing documents, then verify the counts.

        Args:
            documents: function that returns the documents at the positions start <= position < stop.
            progress: called with ("documents", done, total) after each batch, even if no document of it was missing.

        Raises:
            DataError: the server rejects a document, or the index contains more documents or vectors than expected.
            ProviderError: the server failed, or the index contains fewer documents or vectors than expected.
        """
        began, index, total = time.perf_counter(), ElasticIndex(self.place, self._index.server), self.contents.documents
        self._refresh()
        fresh = index.count() == 0
        sent = vectors = 0
        for start in range(0, total, self.place.batch):
            part = documents(start, min(start + self.place.batch, total))
            vectors += sum(document.vector is not None for document in part)
            there = set() if fresh else IndexPassages(index).known(document.passage.doc_id for document in part)
            missing = [document for document in part if document.passage.doc_id not in there]
            if missing and not index.meta.get(LOADING) and not sent:
                self._mark(loading=True)
            self._send(missing)
            sent += len(missing)
            progress("documents", start + len(part), total)
        self._refresh()
        self._compare(index, vectors)
        if sent or index.meta.get(LOADING):
            self._mark(loading=False)
        return LoadResult(total, vectors, sent, time.perf_counter() - began)

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._index.close()

    def _mark(self, *, loading: bool) -> None:
        """Mark the mapping as loading or complete; a loading index is not searched."""
        # The key is set to false instead of being removed, because not every server removes an omitted key.
        notes = {**self.notes(), LOADING: loading}
        self._index.server.call(
            lambda client: client.indices.put_mapping(index=self.place.index, meta={META: notes}, dynamic="strict")
        )

    def _refresh(self) -> None:
        self._index.server.call(lambda client: client.indices.refresh(index=self.place.index))

    def _send(self, documents: Sequence[IndexDocument]) -> None:
        if not documents:
            return
        lines = list(self._lines(documents))

        def request(client: Any) -> Any:
            from elasticsearch import ApiError

            answer = client.bulk(index=self.place.index, operations=lines)
            results = [item["index"] for item in answer.body["items"]]
            busy = next((found for found in results if found["status"] in (429, 503)), None)
            if busy is not None:
                raise ApiError("the server is busy", replace(answer.meta, status=busy["status"]), busy)
            return results

        for found in self._index.server.call(request):
            if "error" in found:
                reason = str(found["error"].get("reason", found["error"]))[:300]
                raise DataError(
                    f"the server rejected passage {found['_id']!r} ({reason})",
                    where=self.place.shown,
                    remedy="correct the passage, or change the settings of the index",
                )

    def _lines(self, documents: Sequence[IndexDocument]) -> Iterator[Mapping[str, Any]]:
        place = self.place
        for passage, vector in documents:
            title, text = clean_passage(passage.title), clean_passage(passage.text)
            source: dict[str, Any] = {place.title_field: title, place.text_field: text}
            if (title, text) != (passage.title, passage.text):
                source[RAW_FIELD] = {"title": passage.title, "text": passage.text}
            if passage.metadata:
                source[place.metadata_field] = dict(passage.metadata)
            if passage.span is not None:
                source[SPAN] = passage.span.model_dump()
            if place.id_field != "_id":
                source[place.id_field] = passage.doc_id
            if vector is not None:
                source[self.contents.vector_field] = list(vector)
            yield {"index": {"_id": passage.doc_id}}
            yield source

    def _compare(self, index: ElasticIndex, vectors: int) -> None:
        wanted = {"documents": self.contents.documents, "vectors": vectors}
        found = {"documents": index.count(), "vectors": 0}
        if self.contents.dims:
            found["vectors"] = index.count({"exists": {"field": self.contents.vector_field}})
        for what, count in wanted.items():
            if found[what] > count:
                raise DataError(
                    f"the index contains {found[what]:,} {what}, but the corpus has {count:,}",
                    where=self.place.shown,
                    remedy="another program writes to the index: delete the index, or use another one",
                )
            if found[what] < count:
                raise ProviderError(
                    f"the index contains {found[what]:,} of {count:,} {what}",
                    where=self.place.shown,
                    remedy="run the command again",
                )
