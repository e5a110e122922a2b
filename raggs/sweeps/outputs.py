"""Output of the systems of a sweep, and the format in which it is cached. Also: run tasks that succeed or fail
together.

Paid answers are also in the answer cache, so that a lost row costs only time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from raggs.base.artifacts import Frozen
from raggs.parts.rerankers import Reranking

DocWithScore = tuple[str, float]
Lists = Mapping[str, Sequence[DocWithScore]]


@dataclass(frozen=True)
class SystemOutput:
    """Output of a system; `rerankings` holds its reranker's results by query, or None without one."""

    lists: Lists
    rerankings: Mapping[str, Reranking] | None = None

    @classmethod
    def of(cls, rerankings: Mapping[str, Reranking]) -> SystemOutput:
        """Return the output of a system with a reranker."""
        lists = {qid: [(each.doc_id, each.score) for each in one.ranked] for qid, one in rerankings.items()}
        return cls(lists, rerankings)


class ListRow(Frozen):
    """Stored list of a query, best first."""

    qid: str
    hits: tuple[DocWithScore, ...]


class RerankRow(Frozen):
    """Stored result of a reranker for the candidates of a query."""

    qid: str
    found: Reranking


class TimeRow(Frozen):
    """Stored latency of a paid call for a query."""

    qid: str
    ms: float


V = TypeVar("V")


async def all_or_none(work: Iterable[Coroutine[object, object, V]]) -> list[V]:
    """Return the results in order. The first error cancels all other tasks, because their calls would be recorded under
    the wrong stage.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
