"""An index as it stands on the server: its fields, its state, and searches over it.

What can be known of its state without reading it whole: each index has a uuid of its own, and each shard numbers
its changes (an insertion, an update, a deletion: always a higher number). So `state` differs after any write, also
after one that changed no passage, and is equal only where nothing was written. A write shows in searches after the
index's refresh interval (a second, by default); the count of visible documents tells most of those apart as well.

Searches ask the same copies of the shards each time (`preference`), since copies may score a little differently.
A search that some shard did not answer is an error: half a result must not pass for a whole one.
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
SEARCHES = 64  # searches in one request
TEXT_TYPES = frozenset({"text", "match_only_text", "search_as_you_type"})
VECTORS = frozenset({"dense_vector"})
META = "raggs"  # where a mapping made by raggs says what it holds
LOADING = "loading"  # stands there from before the first document is sent until the counts are found right

Field = Mapping[str, Any]
Hits = list[dict[str, Any]]
T = TypeVar("T")


class ElasticIndex:
    """The index of `place`. Asks the server at first use, and reads mapping and state once."""

    def __init__(self, place: IndexPlace, server: ElasticServer | None = None) -> None:
        self.place = place
        self.server = server or ElasticServer(place)

    @cached_property
    def _mappings(self) -> dict[str, Mapping[str, Any]]:
        """By concrete index (an alias may stand for several) its mapping."""
        answer = self.server.call(lambda client: client.indices.get_mapping(index=self.place.index))
        return {name: entry["mappings"] for name, entry in sorted(answer.body.items())}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Every field by its dotted name; where several indices have it, as the first maps it."""
        found: dict[str, Field] = {}
        for mapping in self._mappings.values():
            for name, field in _flat(mapping.get("properties", {})):
                found.setdefault(name, field)
        return found

    @property
    def meta(self) -> Mapping[str, Any]:
        """What raggs noted in the mapping when it made the index; empty for the index of someone else."""
        notes: Mapping[str, Any] = next(iter(self._mappings.values())).get("_meta", {}).get(META, {})
        return notes

    def need_whole(self) -> None:
        """Refuse an index whose load has begun and not come to its end.

        Raises:
            DataError: it is one.
        """
        for name, mapping in self._mappings.items():
            notes = mapping.get("_meta", {}).get(META, {})
            if notes.get(LOADING):
                raise DataError(
                    f"index {name!r} was loaded in part: {self.count():,} of {notes.get('documents', 0):,} documents",
                    where=self.place.shown,
                    remedy="load the rest: raggs index --config FILE",
                )

    def need(self, setting: str, name: str, types: Collection[str] = ()) -> Field:
        """The field that a setting names.

        Raises:
            DataError: the index has no such field, or one of another type.
        """
        field = self.fields.get(name)
        if field is None:
            listed = f"set {setting}; known: {', '.join(sorted(self.fields)) or 'none'}"
            remedy = did_you_mean(name, self.fields, listed)
            raise DataError(f"the index has no field {name!r}", where=self.place.shown, remedy=remedy)
        kind = field.get("type", "object")
        if types and kind not in types:
            raise DataError(
                f"field {name!r} is of type {kind}, {setting} needs {' or '.join(sorted(types))}",
                where=self.place.shown,
                remedy=f"name another field in {setting}",
            )
        return field

    def need_ids(self) -> None:
        """Refuse an id field that cannot be looked up.

        Raises:
            DataError: it is no keyword.
        """
        if self.place.id_field != "_id":
            self.need("id_field", self.place.id_field, ("keyword",))

    @cached_property
    def state(self) -> dict[str, Any]:
        """By concrete index its uuid and the number of the latest change of each shard, and the documents in all.

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
        """The visible documents, or those that match `query`."""
        answer = self.server.call(
            lambda client: client.count(index=self.place.index, query=query, preference=PREFERENCE)
        )
        return int(answer.body["count"])

    def search(self, bodies: Sequence[Mapping[str, Any]]) -> Iterator[Hits]:
        """The hits of each search, in order, `SEARCHES` of them in a request.

        Raises:
            RaggsError: see `ElasticServer.call`; also where one search of a request fails, or a shard does not answer.
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
        """Refuse passages that cannot be told apart.

        Raises:
            DataError: two documents have the same id.
        """
        seen: set[str] = set()
        for doc_id in doc_ids:
            if doc_id in seen:
                several = (
                    f"; {self.place.index!r} stands for {', '.join(self._mappings)}" if len(self._mappings) > 1 else ""
                )
                raise DataError(
                    f"two documents have the id {doc_id!r}{several}",
                    where=self.place.shown,
                    remedy="name one index, or an id_field whose values are all different",
                )
            seen.add(doc_id)

    def doc_id(self, hit: Mapping[str, Any]) -> str:
        """The passage's id of a hit that was asked for with `id_part`.

        Raises:
            DataError: it has none, several, or one that files cannot carry.
        """
        doc_id = self._named(hit)
        if problem := id_problem(doc_id):
            raise DataError(
                f"document id {doc_id!a} {problem}",
                where=self.place.shown,
                remedy="name another id_field, or keep the document out of the index",
            )
        return doc_id

    def _named(self, hit: Mapping[str, Any]) -> str:
        name = self.place.id_field
        if name == "_id":
            return str(hit["_id"])
        values = hit.get("fields", {}).get(name, [])
        if len(values) != 1:
            raise DataError(
                f"document {hit['_id']!r} has {len(values)} values of {name!r}, not one",
                where=self.place.shown,
                remedy="name another id_field",
            )
        return str(values[0])

    @property
    def id_part(self) -> dict[str, Any]:
        """What a search body needs for `doc_id`."""
        return {} if self.place.id_field == "_id" else {"fields": [self.place.id_field]}

    def close(self) -> None:
        """Let go of the connections. May be called twice."""
        self.server.close()


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """`items` in parts of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def check_complete(answer: Mapping[str, Any], meta: Any) -> Mapping[str, Any]:
    """An answer to one search, if every shard gave its part.

    Raises:
        ApiError: it is a fault, or a part of a result (told as 503, since another try may help).
    """
    from elasticsearch import ApiError

    status = int(answer.get("status", 200))
    if "error" in answer:
        raise ApiError("a search failed", replace(meta, status=status), answer)
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise ApiError("a search in part", replace(meta, status=503), {"error": "some shards did not answer"})
    return answer


def _hits(answer: Mapping[str, Any], meta: Any) -> Hits:
    hits: Hits = check_complete(answer, meta)["hits"]["hits"]
    return hits


def _flat(properties: Mapping[str, Field], prefix: str = "") -> Iterable[tuple[str, Field]]:
    for name, field in properties.items():
        yield prefix + name, field
        for inner in ("properties", "fields"):
            yield from _flat(field.get(inner, {}), f"{prefix}{name}.")
