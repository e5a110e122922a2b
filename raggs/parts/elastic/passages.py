"""The passages of an index: read by id, or all at one point in time.

A passage is made from the document's fields that `IndexPlace` names, and from `SPAN` and `RAW_FIELD`, if `raggs index`
wrote them. Vectors and other fields are not fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raggs.base.artifacts import Passage, span_of
from raggs.base.errors import DataError, NotFoundError
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.jsonl import first_fault
from raggs.base.text import REPLACEMENT_CHAR, replace_surrogates, sound_value
from raggs.parts.elastic.index import PREFERENCE, TEXT_TYPES, ElasticIndex, Hits, check_complete, slices

SPAN = "span"  # field of a passage's span, which `raggs index` writes: an object of source, start and end
RAW_FIELD = "raggs_raw"  # field of the original title and text, if they differ from the searched ones
KEEP_ALIVE = "5m"  # how long the server keeps a point in time between two pages


class IndexPassages:
    """Passages that are fetched on demand; the index is not copied.

    `content_hash` represents the state of the index at first use (see `ElasticIndex.state`).

    Args:
        index: index of the passages.
        replaced: receives the ids of passages with invalid characters, which are replaced by U+FFFD.
    """

    def __init__(self, index: ElasticIndex, replaced: set[str] | None = None) -> None:
        self._index = index
        self._place = index.place
        self._replaced = set() if replaced is None else replaced

    @cached_property
    def content_hash(self) -> str:
        """Hash of the index's state; changes with any write."""
        self._check()
        return hash_value(self._index.state)

    @property
    def file(self) -> Path | None:
        """None: there is no file, and each process connects to the server."""
        return None

    @property
    def folded(self) -> bool:
        """False: raggs replaces no quotation marks, because the server analyses its passages."""
        return False

    @property
    def cleaned(self) -> int | None:
        """None: the number is unknown, because passages are not read in advance."""
        return None

    def __len__(self) -> int:
        return int(self._index.state["documents"])

    def get(self, doc_ids: Iterable[str]) -> dict[str, Passage]:
        """Return the passages with these ids, in the order of `doc_ids`.

        Raises:
            NotFoundError: the index does not contain one of the ids.
            DataError: a document is not a valid passage, or two documents have the same id.
        """
        wanted = list(dict.fromkeys(doc_ids))
        found: dict[str, Passage] = {}
        for hit in self._look_up(wanted, self._source()):
            passage = self.passage(hit)
            if passage is None:
                raise DataError(
                    f"document {hit['_id']!r} has neither title nor text",
                    where=self._place.shown,
                    remedy="delete it, or filter it with query_template",
                )
            if passage.doc_id in found:
                self._index.unlike([passage.doc_id] * 2)
            found[passage.doc_id] = passage
        for doc_id in wanted:
            if doc_id not in found:
                remedy = "check whether the index has changed, or the id belongs to another corpus"
                raise NotFoundError(f"no passage {doc_id!r}", where=self._place.shown, remedy=remedy)
        return {doc_id: found[doc_id] for doc_id in wanted}

    def known(self, doc_ids: Iterable[str]) -> set[str]:
        """Return the ids in `doc_ids` that the index contains."""
        wanted = list(dict.fromkeys(doc_ids))
        return {self._index.doc_id(hit) for hit in self._look_up(wanted, {"_source": False})}

    def sample(self, count: int) -> list[str]:
        """Return `Passage.content` of the first passages that the index returns, up to `count` and up to one batch."""
        body = {"query": {"match_all": {}}, "size": min(count, self._place.batch), **self._source()}
        (hits,) = self._index.search([body])
        return [passage.content for hit in hits if (passage := self.passage(hit)) is not None]

    def scan(self) -> Iterator[tuple[str, Passage | None]]:
        """Yield the id and passage of every document at one point in time, in index order.

        The passage is None if a document has neither title nor text.
        """
        self._check()
        opened = self._index.server.call(
            lambda client: client.open_point_in_time(
                index=self._place.index, keep_alive=KEEP_ALIVE, preference=PREFERENCE
            )
        )
        pit, after = opened.body["id"], None
        try:
            while True:
                pit, hits = self._page(pit, after)
                for hit in hits:
                    yield self._index.doc_id(hit), self.passage(hit)
                if len(hits) < self._place.batch:
                    return
                after = hits[-1]["sort"]
        finally:
            self._index.server.call(lambda client: client.options(ignore_status=404).close_point_in_time(id=pit))

    def passage(self, hit: Mapping[str, Any]) -> Passage | None:
        """Return a document as a passage, without white space at the ends; None if it has neither title nor text.

        A title without text becomes the text.

        Raises:
            DataError: the id or a field is not valid for a passage.
        """
        source, place = hit.get("_source", {}), self._place
        raw = source.get(RAW_FIELD)
        given = (pick(source, name) for name in (place.title_field, place.text_field))
        title, text = (
            self._words(hit, each)
            for each in ((raw.get("title"), raw.get("text")) if isinstance(raw, Mapping) else given)
        )
        if not title and not text:
            return None
        rest = pick(source, place.metadata_field)
        metadata = rest if isinstance(rest, Mapping) else {} if rest is None else {place.metadata_field: rest}
        try:
            passage = Passage(
                doc_id=self._index.doc_id(hit),
                title=replace_surrogates(title if text else ""),
                text=replace_surrogates(text or title),
                span=span_of(source.get(SPAN)),
                metadata={replace_surrogates(name): sound_value(value) for name, value in metadata.items()},
            )
        except ValidationError as error:
            raise self._no_passage(hit, first_fault(error)) from error
        if REPLACEMENT_CHAR in passage.content or (
            metadata and REPLACEMENT_CHAR in canonical_json(dict(passage.metadata))
        ):
            self._replaced.add(passage.doc_id)
        return passage

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._index.close()

    def _check(self) -> None:
        self._index.need("text_field", self._place.text_field, {*TEXT_TYPES, "keyword"})
        self._index.need_ids()
        self._index.need_whole()

    def _page(self, pit: str, after: Any) -> tuple[str, Hits]:
        """Return the id of the point in time, which the server may change, and the next documents."""

        def request(client: Any) -> Any:
            answer = client.search(
                pit={"id": pit, "keep_alive": KEEP_ALIVE},
                size=self._place.batch,
                sort=[{"_shard_doc": "asc"}],
                search_after=after,
                track_total_hits=False,
                source=self._source()["_source"],
                fields=self._index.id_part.get("fields"),
            )
            return check_complete(answer.body, answer.meta)

        answer = self._index.server.call(request)
        return answer.get("pit_id", pit), answer["hits"]["hits"]

    def _look_up(self, wanted: list[str], what: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self._index.need_ids()
        bodies = [
            {
                "query": {"terms": {self._place.id_field: list(part)}},
                "size": 2 * len(part),  # twice the number of ids, so that duplicate ids are detected
                **self._index.id_part,
                **what,
            }
            for part in slices(wanted, self._place.batch)
        ]
        for hits in self._index.search(bodies):
            yield from hits

    def _source(self) -> dict[str, Any]:
        names = (self._place.title_field, self._place.text_field, self._place.metadata_field, SPAN, RAW_FIELD)
        return {"_source": list(names), **self._index.id_part}

    def _words(self, hit: Mapping[str, Any], value: Any) -> str:
        if not isinstance(value, str | None):
            raise self._no_passage(hit, f"{type(value).__name__} instead of a string")
        return (value or "").strip()

    def _no_passage(self, hit: Mapping[str, Any], why: str) -> DataError:
        return DataError(
            f"document {hit['_id']!r} is not a valid passage ({why})",
            where=self._place.shown,
            remedy="check id_field, title_field and text_field",
        )


def pick(source: Mapping[str, Any], name: str) -> Any:
    """Return the value at a dotted name, which may be a nested path or one literal key; None if missing."""
    if name in source:
        return source[name]
    head, dot, rest = name.partition(".")
    inner = source.get(head)
    return pick(inner, rest) if dot and isinstance(inner, Mapping) else None
