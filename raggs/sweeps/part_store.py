"""Where a sweep's parts are kept between invocations: lists by the hash of all that they were made from.

A part appears whole or not at all; a damaged one is as good as none. What was paid for is kept elsewhere too, in the
cache of answers, so that losing a part loses time alone.

Values that are made once for all who ask for the same, and work that ends as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from raggs.base.artifacts import EmbedRecord, Frozen
from raggs.base.stores import RowStore
from raggs.parts.rerankers import Reranking

Scored = tuple[str, float]
Lists = Mapping[str, Sequence[Scored]]


@dataclass(frozen=True)
class SystemOutput:
    """What a system returns. `rerankings`: by query, what its reranker did; None without one."""

    lists: Lists
    rerankings: Mapping[str, Reranking] | None = None

    @classmethod
    def of(cls, rerankings: Mapping[str, Reranking]) -> SystemOutput:
        """What a system with a reranker returns."""
        lists = {qid: [(each.doc_id, each.score) for each in one.ranked] for qid, one in rerankings.items()}
        return cls(lists, rerankings)


class _QueryRow(Frozen):
    qid: str


class ListRow(_QueryRow):
    """A query's list, best first, and how long the search took where it was timed."""

    hits: tuple[Scored, ...]


class RerankRow(_QueryRow):
    """What a reranker made of a query's candidates."""

    found: Reranking


class TimeRow(_QueryRow):
    """How long a provider took for a question when it was paid."""

    ms: float


class PartStore(RowStore):
    """Parts in one folder, which is made when one is kept."""

    def lists(self, causes: object) -> Lists | None:
        """Kept lists by query; None where there are none."""
        rows = self.rows(causes, ListRow)
        return None if rows is None else {row.qid: row.hits for row in rows}

    def keep_lists(self, causes: object, lists: Lists) -> None:
        """Keep lists."""
        self.keep(causes, (ListRow(qid=qid, hits=tuple(hits)) for qid, hits in lists.items()))

    def rerankings(self, causes: object) -> Mapping[str, Reranking] | None:
        """Kept rerankings by query; None where there are none."""
        rows = self.rows(causes, RerankRow)
        return None if rows is None else {row.qid: row.found for row in rows}

    def keep_rerankings(self, causes: object, found: Mapping[str, Reranking]) -> None:
        """Keep rerankings."""
        self.keep(causes, (RerankRow(qid=qid, found=each) for qid, each in found.items()))

    def records(self, causes: object) -> list[EmbedRecord] | None:
        """Kept questions as they are searched for; None where there are none."""
        return self.rows(causes, EmbedRecord)

    def keep_records(self, causes: object, records: Iterable[EmbedRecord]) -> None:
        """Keep questions."""
        self.keep(causes, records)

    def times(self, step: str) -> dict[str, float]:
        """By question, the milliseconds that a paid step took; empty where nobody timed it."""
        return {row.qid: row.ms for row in self.rows(["times", step], TimeRow) or ()}

    def keep_times(self, step: str, ms: Mapping[str, float]) -> None:
        """Keep milliseconds by question."""
        self.keep(["times", step], (TimeRow(qid=qid, ms=one) for qid, one in ms.items()))


V = TypeVar("V")


async def all_or_none(work: Iterable[Coroutine[object, object, V]]) -> list[V]:
    """The results, in order. After the first error nothing goes on: what is asked later would be booked elsewhere."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class OnceCache(Generic[V]):
    """Values by what they are made from, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, V] = {}

    def __call__(self, key: object, make: Callable[[], V]) -> V:
        name = repr(key)
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
