"""Which queries workers may begin, where the money might end before all of them are graded.

A query in the middle of its pool is of no use until somebody pays for the rest; see `raggs.stages.frugal`, which says
how many may be in the middle at once. A query begins with its first question, which otherwise waits here. What is let
in decides when something is asked, and never what: results do not hang on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from raggs.base.artifacts import Passage
from raggs.stages.frugal import Walks


class Turns:
    """The queries of one stage.

    Args:
        walks: says when no further one is to begin.
    """

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._held: dict[str, asyncio.Event] = {}

    async def begin(self, qid: str, pool: Sequence[Passage]) -> None:
        """Return when the query may ask: at once where it has begun, or there is money enough."""
        if qid in self._begun:
            return
        waiting = self._held.setdefault(qid, asyncio.Event())
        self._walks.at_once((qid, pool))
        self._let_in()
        await waiting.wait()

    def end(self, qids: Iterable[str]) -> None:
        """These ask no more."""
        self._ended.update(qids)
        self._let_in()

    def let_one_in(self) -> None:
        """Somebody begins whatever that costs: those that have begun were lost with their workers."""
        if self._held:
            first = min(self._held)
            self._begun.add(first)
            self._held.pop(first).set()

    def _let_in(self) -> None:
        while self._held and not ((left := len(self._begun - self._ended)) and self._walks.tight(left)):
            self.let_one_in()
