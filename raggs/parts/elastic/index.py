"""An index on the server: its fields, its state, and searches over it.

The state can be determined without reading the whole index: each index has a uuid, and each shard numbers its changes
(insertions, updates, deletions) in ascending order. `state` therefore differs after any write, even one that changes no
passage, and is equal only if nothing was written. However, searches see a write only after the index's refresh interval
(one second by default). The state therefore also contains the number of visible documents, which changes with most
refreshes that follow a write.

Searches request the same copies of the shards (`preference`), because scores may differ slightly between copies. If
a shard does not answer, the search is an error, so that partial results are never used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from raggs.base.errors import DataError
from raggs.base.text import did_you_mean, id_problem
from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.server import ElasticServer

PREFERENCE = "raggs"
SEARCHES = 64  # searches per request
TEXT_TYPES = frozenset({"text", "match_only_text", "search_as_you_type"})
VECTORS = frozenset({"dense_vector"})
META = "raggs"  # key of the mapping that contains raggs' description of the index
LOADING = "loading"  # set before the first document is sent, and cleared after the counts are verified

Field = Mapping[str, Any]
Hits = list[dict[str, Any]]
T = TypeVar("T")


class ElasticIndex:
    """The index of `place`. Connects at first use, and reads the mapping and the state once."""

    def __init__(self, place: IndexPlace, server: ElasticServer | None = None) -> None:
        self.place = place
        self.server = server or ElasticServer(place)

    @cached_property
    def _mappings(self) -> dict[str, Mapping[str, Any]]:
        """Mapping of each concrete index by its name; an alias may refer to several indexes."""
        answer = self.server.call(lambda client: client.indices.get_mapping(index=self.place.index))
        return {name: entry["mappings"] for name, entry in sorted(answer.body.items())}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Every field by its dotted name; if several indexes have a field, the mapping in the first index."""
        found: dict[str, Field] = {}
        for mapping in self._mappings.values():
            for name, field in _flat(mapping.get("properties", {})):
                found.setdefault(name, field)
        return found

    @property
    def meta(self) -> Mapping[str, Any]:
        """Description that raggs stored in the mapping when it created the index; empty for other indexes."""
        notes: Mapping[str, Any] = next(iter(self._mappings.values())).get("_meta", {}).get(META, {})
        return notes

    def need_whole(self) -> None:
        """Raise an error if raggs has started to load the index, but not finished.

        Raises:
            DataError: the load is incomplete.
        """
        for name, mapping in self._mappings.items():
            notes = mapping.get("_meta", {}).get(META, {})
            if notes.get(LOADING):
                raise DataError(
                    f"index {name!r} is incomplete: {self.count():,} of {notes.get('documents', 0):,} documents",
                    where=self.place.shown,
                    remedy="load the remaining documents: raggs index --config FILE",
                )

    def need(self, setting: str, name: str, types: Collection[str] = ()) -> Field:
        """Return the mapping of the field that a setting names.

        Raises:
            DataError: the index does not have the field, or it has another type.
        """
        field = self.fields.get(name)
        if field is None:
            listed = f"set {setting}; known: {', '.join(sorted(self.fields)) or 'none'}"
            remedy = did_you_mean(name, self.fields, listed)
            raise DataError(f"the index has no field {name!r}", where=self.place.shown, remedy=remedy)
        kind = field.get("type", "object")
        if types and kind not in types:
            raise DataError(
                f"field {name!r} has type {kind}, but {setting} needs {' or '.join(sorted(types))}",
                where=self.place.shown,
                remedy=f"set {setting} to another field",
            )
        return field

    def need_ids(self) -> None:
        """Raise an error if the id field does not support lookups.

        Raises:
            DataError: the field is missing, or not of type keyword.
        """
        if self.place.id_field != "_id":
            self.need("id_field", self.place.id_field, ("keyword",))

    @cached_property
    def state(self) -> dict[str, Any]:
        """Uuid of each concrete index, the latest change number of each of its shards, and the total number of
        documents.

        Raises:
            RaggsError: see `ElasticServer.call`.
        """
        answer = self.server.call(
            lambda client: client.indices.stats(index=self.place.index, metric="docs", level="shards")
        )
        found: dict[str, Any] = {
            name: {
                "uuid": stats["uuid"],
                "changes": {
                    number: max(copy["seq_no"]["max_seq_no"] for copy in copies)
                    for number, copies in sorted(stats["shards"].items())
                },
            }
            for name, stats in sorted(answer.body["indices"].items())
        }
        return {**found, "documents": self.count()}

    def count(self, query: Mapping[str, Any] | None = None) -> int:
        """Return the number of visible documents; if `query` is given, only of the documents that match it."""
        answer = self.server.call(
            lambda client: client.count(index=self.place.index, query=query, preference=PREFERENCE)
        )
        return int(answer.body["count"])

    def search(self, bodies: Sequence[Mapping[str, Any]]) -> Iterator[Hits]:
        """Yield the hits of each search, in order; each request contains at most `SEARCHES` searches.

        Raises:
            RaggsError: see `ElasticServer.call`; also if a single search fails, or a shard does not answer.
        """
        for part in slices(bodies, SEARCHES):
            lines: list[Mapping[str, Any]] = []
            for body in part:
                lines += [{"preference": PREFERENCE}, body]
            yield from self._multi_search(lines)

    def _multi_search(self, lines: list[Mapping[str, Any]]) -> list[Hits]:
        def request(client: Any) -> list[Hits]:
            answer = client.msearch(index=self.place.index, searches=lines)
            return [_hits(found, answer.meta) for found in answer.body["responses"]]

        return self.server.call(request)

    def unlike(self, doc_ids: Iterable[str]) -> None:
        """Raise an error if two of these passage ids are equal.

        Raises:
            DataError: two documents have the same id.
        """
        seen: set[str] = set()
        for doc_id in doc_ids:
            if doc_id in seen:
                several = (
                    f"; {self.place.index!r} is an alias of {', '.join(self._mappings)}"
                    if len(self._mappings) > 1
                    else ""
                )
                raise DataError(
                    f"two documents have the id {doc_id!r}{several}",
                    where=self.place.shown,
                    remedy="use a single index, or an id_field with unique values",
                )
            seen.add(doc_id)

    def doc_id(self, hit: Mapping[str, Any]) -> str:
        """Return the passage id of a hit; the search request must contain `id_part`.

        Raises:
            DataError: the id is missing, ambiguous, or not representable in file formats.
        """
        doc_id = self._named(hit)
        if problem := id_problem(doc_id):
            raise DataError(
                f"document id {doc_id!a} {problem}",
                where=self.place.shown,
                remedy="set another id_field, or remove the document from the index",
            )
        return doc_id

    def _named(self, hit: Mapping[str, Any]) -> str:
        name = self.place.id_field
        if name == "_id":
            return str(hit["_id"])
        values = hit.get("fields", {}).get(name, [])
        if len(values) != 1:
            raise DataError(
                f"document {hit['_id']!r} has {len(values)} values of {name!r} instead of one",
                where=self.place.shown,
                remedy="set another id_field",
            )
        return str(values[0])

    @property
    def id_part(self) -> dict[str, Any]:
        """Part of a search request that makes the server return what `doc_id` reads."""
        return {} if self.place.id_field == "_id" else {"fields": [self.place.id_field]}

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self.server.close()


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield `items` in parts of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def check_complete(answer: Mapping[str, Any], meta: Any) -> Mapping[str, Any]:
    """Return the answer to one search after checking that every shard has contributed.

    Raises:
        ApiError: the search failed or is partial (with status 503, so that it is retried).
    """
    from elasticsearch import ApiError

    status = int(answer.get("status", 200))
    if "error" in answer:
        raise ApiError("a search failed", replace(meta, status=status), answer)
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise ApiError("partial search result", replace(meta, status=503), {"error": "some shards did not answer"})
    return answer


def _hits(answer: Mapping[str, Any], meta: Any) -> Hits:
    hits: Hits = check_complete(answer, meta)["hits"]["hits"]
    return hits


def _flat(properties: Mapping[str, Field], prefix: str = "") -> Iterable[tuple[str, Field]]:
    for name, field in properties.items():
        yield prefix + name, field
        for inner in ("properties", "fields"):
            yield from _flat(field.get(inner, {}), f"{prefix}{name}.")
