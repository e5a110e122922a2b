"""Makes an index and fills it, so that a kill at any moment costs one request.

The mapping is explicit and strict, and notes what the index is made from (`_meta`). An index with the same notes is
gone on with: documents that are there are not sent again, and sending one twice changes nothing, since its `_id` is
the passage's id. An index with other notes is only replaced when that is asked for, and one without notes (somebody
else's) never. At the end the server is asked how many documents and vectors it has; until both are right the notes say
`loading`, and nobody searches the index.
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

REPLACE = "pass --yes to delete it and load it anew, or name another index"


@dataclass(frozen=True)
class Contents:
    """What an index is to hold. `dims` is 0 where it holds no vectors."""

    documents: int
    content_hash: str
    embedder: str = ""
    dims: int = 0
    vector_field: str = "vector"


class IndexDocument(NamedTuple):
    """A passage and its vector; none where it has no direction (a text without any known word)."""

    passage: Passage
    vector: Sequence[float] | None


class IndexState(NamedTuple):
    """How an index stands to what it is to hold: absent, begun (perhaps complete), or other, and in what."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class LoadResult:
    """A finished load: what the index holds, and what of it was sent now."""

    documents: int
    vectors: int
    sent: int
    seconds: float


class Loader:
    """Loads `contents` into the index of `place`, by `server` where one is given."""

    def __init__(
        self, place: IndexPlace, settings: ElasticIndexSettings, contents: Contents, server: ElasticServer | None = None
    ) -> None:
        self.place = place
        self.contents = contents
        self._settings = settings
        self._index = ElasticIndex(place, server)

    def notes(self) -> dict[str, Any]:
        """What of settings and contents makes another index."""
        place, contents = self.place, self.contents
        names = {name: getattr(place, name) for name in ("id_field", "title_field", "text_field", "metadata_field")}
        notes = {"passages": contents.content_hash, "documents": contents.documents, **names}
        notes |= self._settings.model_dump(include={"analyzer", "shards"})
        if contents.dims:
            notes |= {"embedder": contents.embedder, "dims": contents.dims, "vector_field": contents.vector_field}
            notes |= self._settings.model_dump(include={"m", "ef_construction"})
        return notes

    def body(self) -> dict[str, Any]:
        """Settings and mappings of the index."""
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
            "mappings": {
                "dynamic": "strict",
                "_meta": {META: notes},
                "properties": properties,
            },
        }

    def standing(self) -> IndexState:
        """How the index on the server stands to what is wanted."""
        if not self._index.server.call(lambda client: client.indices.exists(index=self.place.index)):
            return IndexState("absent")
        notes, wanted = {**self._index.meta}, self.notes()
        partly = notes.pop(LOADING, False)
        if not notes:
            return IndexState("foreign", "it was not made by raggs")
        for name in sorted({*notes, *wanted}):
            if notes.get(name) != wanted.get(name):
                old, new = (shorten(str(found.get(name, "absent")), 24) for found in (notes, wanted))
                return IndexState("other", f"its {name} is {old}, not {new}")
        return IndexState("begun", plural(self._index.count(), "document") + (" of a load in part" if partly else ""))

    def prepare(self, overwrite: bool) -> None:
        """Make the index unless it is there; with `overwrite`, replace one that raggs made otherwise.

        Raises:
            DataError: an index of this name holds something else.
        """
        standing = self.standing()
        if standing.kind == "foreign" or (standing.kind == "other" and not overwrite):
            remedy = REPLACE if standing.kind == "other" else "name another index; raggs deletes only what it made"
            raise DataError(f"the index is there already, and {standing.detail}", where=self.place.shown, remedy=remedy)
        if standing.kind == "other":
            self._index.server.call(lambda client: client.indices.delete(index=self.place.index))
        if standing.kind != "begun":
            # Should the answer get lost, the second try finds the index that the first one made.
            self._index.server.call(
                lambda client: (
                    client.indices.exists(index=self.place.index).body
                    or client.indices.create(index=self.place.index, **self.body())
                )
            )

    def load(
        self, documents: Callable[[int, int], Sequence[IndexDocument]], progress: Callable[[str, int, int], None]
    ) -> LoadResult:
        """Send what is missing, then compare counts.

        Args:
            documents: gives those at positions start <= position < stop.
            progress: called with ("documents", done, of) after each request.

        Raises:
            DataError: the server refuses a document, or the index holds others besides.
            ProviderError: it failed, or holds less than was sent.
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
        """Let go of the connections. May be called twice."""
        self._index.close()

    def _mark(self, *, loading: bool) -> None:
        """Note in the mapping whether the index lacks something; nobody searches it as long as it does."""
        notes = {**self.notes(), LOADING: loading}  # said outright, since not every server drops what is left out
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
                    f"the server refuses passage {found['_id']!r} ({reason})",
                    where=self.place.shown,
                    remedy="correct it, or change the index's settings",
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
                    f"the index holds {found[what]:,} {what}, {count:,} are the corpus's",
                    where=self.place.shown,
                    remedy="somebody else writes to it: delete it, or name another index",
                )
            if found[what] < count:
                raise ProviderError(
                    f"the index holds {found[what]:,} of {count:,} {what}", where=self.place.shown, remedy="run again"
                )
