"""Labels and orders of an earlier version of a golden set, as the stages judge and rank use them.

`raggs update` writes two files into the run directory of a new version (`raggs.golden.carrying`). The settings
`judge.carry` and `rank.carry` name them. A passage with a carried label is not judged again. A query whose ranked
passages and grades did not change gets the orders of the earlier version. For other queries, the earlier orders are
known before the judge is called. An order does not include passages that were edited or removed since.

Each line contains digests of the query and of the passages. If a text changed after the file was written, an error is
raised.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from pydantic import Field, ValidationError

from raggs.base.artifacts import (
    FIELDS_OF_QUERIES,
    Frozen,
    Grade,
    Identifier,
    JournalRecord,
    JudgeRecord,
    MergeRecord,
    Passage,
    Query,
    Record,
    Shares,
)
from raggs.base.errors import DataError
from raggs.base.files import regular_file
from raggs.base.hashing import hash_value
from raggs.base.jsonl import first_fault
from raggs.parts.judges import KnownOrder
from raggs.stages.replay import Batch, KeptPool

R = TypeVar("R", bound=Record)
UPDATE_AGAIN = "run raggs update again"


def query_digest(query: Query) -> str:
    """Return a digest of everything in a query that a judge may read."""
    content = query.model_dump(mode="json", include=set(FIELDS_OF_QUERIES))
    return hash_value([content[name] for name in FIELDS_OF_QUERIES if name in content])[:32]  # no empty history


class CarriedLabel(Record):
    """carried.labels.jsonl: a label of an earlier version for a passage of the new corpus. Sorted by qid, doc_id."""

    ORDER: ClassVar = ("qid", "doc_id")
    doc_id: Identifier = Field(description="id of the passage in the new corpus")
    query: str = Field(description="digest of the query")
    passage: str = Field(description="digest of the passage")
    label: JudgeRecord = Field(description="the label, with its origin in `carried`")


class CarriedOrder(Frozen):
    """An order of an earlier version. All ids are those of the new corpus."""

    shown: tuple[Identifier, ...] = Field(min_length=2, description="passages in the order of presentation")
    order: tuple[Identifier, ...] = Field(min_length=2, description="passages, best first")
    whole: bool = Field(description="whether no passage of the earlier order is missing")
    by: str = ""
    best: Shares | None = None
    answerers: tuple[str, ...] = ()


class CarriedOrders(Record):
    """carried.orders.jsonl: the orders of an earlier version for one query. Sorted by qid."""

    version: str = Field(description="first digits of the earlier version")
    query: str = Field(description="digest of the query")
    passages: Mapping[Identifier, str] = Field(description="digest of each passage, by id in the new corpus")
    ids: tuple[Identifier, ...] = Field(
        description="passages that the earlier version ranked, by fused rank; empty if its ranking cannot be repeated"
    )
    grades: tuple[Grade, ...] = Field(description="grades of the passages in `ids`")
    sharpness: float = Field(gt=0, description="sharpness of the judge in these orders")
    orders: tuple[CarriedOrder, ...]

    def repeats(self, ids: Sequence[str], grades: Sequence[int]) -> bool:
        """Return whether the ranking of these passages, by fused rank, is the ranking of the earlier version."""
        return bool(self.ids) and self.ids == tuple(ids) and self.grades == tuple(grades)

    def answers(self) -> dict[tuple[str, ...], CarriedOrder]:
        """Return the complete orders by the passages in the order of presentation."""
        return {each.shown: each for each in self.orders if each.whole}

    def known(self, ids: Sequence[str]) -> list[KnownOrder]:
        """Return the orders of some passages, restricted to these passages."""
        wanted, found = set(ids), []
        for each in self.orders:
            order = tuple((doc_id,) for doc_id in each.order if doc_id in wanted)
            if len(order) > 1:
                found.append(KnownOrder(order, self.sharpness, f"version {self.version}", self.version))
        return found

    def check(self, query: Query, passages: Mapping[str, Passage], place: Path) -> None:
        """Check that the texts of the query and of the passages are those of the orders.

        Raises:
            DataError: a text has changed.
        """
        from raggs.parts.reviews import passage_digest  # imported lazily: only updates compare digests

        if self.query != query_digest(query):
            raise stale(query.qid, None, place)
        for doc_id, digest in self.passages.items():
            if doc_id in passages and passage_digest(passages[doc_id]) != digest:
                raise stale(query.qid, doc_id, place)


def stale(qid: str, doc_id: str | None, place: Path) -> DataError:
    """Return the error for a text that changed after a label or an order of it was carried over."""
    changed = f"query {qid}" if doc_id is None else f"passage {doc_id} of query {qid}"
    return DataError(f"{changed} has changed since raggs update compared it", where=place, remedy=UPDATE_AGAIN)


class CarriedFile(Generic[R]):
    """Records of a file by query. Only the positions of the lines are in memory.

    Args:
        path: the file; lines are sorted by query id.
        model: type of the records.

    Raises:
        DataError: a line is invalid.
        NotFoundError: the file does not exist.
    """

    def __init__(self, path: Path, model: type[R]) -> None:
        self.path = regular_file(path)
        self._model = model
        self._places: dict[str, array[int]] = {}  # by query: first byte, first byte after the block, number of the line
        start = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                qid = self._parsed(line, number).qid
                places = self._places.setdefault(qid, array("q", (start, start, number)))
                start += len(line)
                places[1] = start

    def of(self, qid: str) -> list[R]:
        """Return the records of a query; empty if there are none.

        Raises:
            DataError: a line is invalid.
        """
        if qid not in self._places:
            return []
        begin, end, number = self._places[qid]
        with self.path.open("rb") as file:
            file.seek(begin)
            lines = file.read(end - begin).splitlines()
        found = [self._parsed(line, number + place) for place, line in enumerate(lines)]
        if any(record.qid != qid for record in found):
            raise DataError("changed while it was read", where=self.path, remedy=UPDATE_AGAIN)
        return found

    def _parsed(self, line: bytes, number: int) -> R:
        try:
            return self._model.model_validate_json(line)
        except ValidationError as error:
            raise DataError(first_fault(error), where=self.path, line=number, remedy=UPDATE_AGAIN) from error


@dataclass(frozen=True)
class EarlierOrders:
    """Orders of an earlier version for one ranking.

    Attributes:
        version: first digits of the earlier version.
        known: orders that are known before the judge is called.
        answers: complete orders by the passages in the order of presentation, if the ranking of the earlier version is
            repeated.
    """

    version: str = ""
    known: tuple[KnownOrder, ...] = ()
    answers: Mapping[tuple[str, ...], CarriedOrder] = field(default_factory=dict)

    def entry(self, blank: JournalRecord, batch: Batch) -> JournalRecord | None:
        """Return the journal entry of a batch that the earlier version has answered, or None.

        Args:
            blank: the fields that all entries of the query share.
        """
        found = self.answers.get(batch.shown)
        if found is None:
            return None
        said = {"order": found.order, "by": found.by, "best": found.best, "answerers": found.answerers}
        return blank.model_copy(update={**batch._asdict(), **said, "carried": self.version})


NO_ORDERS = EarlierOrders()
EarlierOrdersOf = Callable[[Query, KeptPool, Sequence[str], Mapping[str, Passage]], EarlierOrders]


class CarriedRankings(CarriedFile[CarriedOrders]):
    """The orders that `raggs update` carried over, by query."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, CarriedOrders)

    def for_ranking(
        self, query: Query, pool: KeptPool, ranked: Sequence[str], passages: Mapping[str, Passage]
    ) -> EarlierOrders:
        """Return the orders for the ranking of a pool.

        Args:
            ranked: ids of the passages that are ranked.
            passages: these passages by id.

        Raises:
            DataError: the text of the query or of a passage has changed.
        """
        found = next(iter(self.of(query.qid)), None)
        if found is None:
            return NO_ORDERS
        found.check(query, passages, self.path)
        if found.repeats(pool.ids, pool.grades):
            return EarlierOrders(found.version, answers=found.answers())
        return EarlierOrders(found.version, tuple(found.known(ranked)))


def earlier_orders(path: Path | None) -> EarlierOrdersOf:
    """Return a function from query, pool, ranked ids and passages to the orders of an earlier version.

    Args:
        path: file of carried orders; None if there are none.
    """
    return (lambda _query, _pool, _ranked, _passages: NO_ORDERS) if path is None else CarriedRankings(path).for_ranking


class CarriedLabels(CarriedFile[CarriedLabel]):
    """The labels that `raggs update` carried over, by query."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, CarriedLabel)

    def for_pool(self, query: Query, pool: Sequence[MergeRecord]) -> dict[str, JudgeRecord]:
        """Return the carried labels of the passages of a pool, by passage id.

        Raises:
            DataError: the text of the query or of a passage has changed.
        """
        lines = {line.doc_id: line for line in self.of(query.qid)}
        if not lines:
            return {}
        from raggs.parts.reviews import passage_digest  # imported lazily: only updates compare digests

        asked, found = query_digest(query), dict[str, JudgeRecord]()
        for record in pool:
            if (line := lines.get(record.doc_id)) is None:
                continue
            if line.query != asked or line.passage != passage_digest(record.passage):
                raise stale(query.qid, None if line.query != asked else record.doc_id, self.path)
            found[record.doc_id] = line.label
        return found
