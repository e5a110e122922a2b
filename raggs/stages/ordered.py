"""Work on many items at once, whose results come in the items' order: how stages ask language models."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from raggs.parts.workspace import Workspace

S = TypeVar("S")
T = TypeVar("T")

WINDOW = 4  # calls that are asked for, for each that may be on its way
MAX_HELD_WINDOWS = 4


def run_ordered(
    workspace: Workspace,
    items: Iterable[S],
    work: Callable[[S], Awaitable[T]],
    *,
    size: Callable[[S], int] = lambda _item: 1,
    window: int | None = None,
    holds: Callable[[int], bool] = lambda _unfinished: False,
) -> Iterator[T]:
    """Work on many items at once and give the results in the items' order.

    As soon as an item is done the next one begins, also while an earlier one still runs, so that one slow answer
    keeps nobody waiting. The first error, in the items' order, cancels what is still running and is raised.

    Args:
        workspace: has the loop in which answers are waited for, and says how many calls may be on their way.
        size: how many calls an item asks for at once.
        window: items are begun until they ask for so many calls together (default: four times the allowed
            concurrency); and at most `MAX_HELD_WINDOWS` windows of items are done and not yet given out. Both keep
            memory flat however long the stream is.
        holds: whether no item is to begin while so many are unfinished; not asked about the only one.
    """
    queue = _Queue(iter(items), work, size, window or WINDOW * workspace.concurrency, holds)
    try:
        while True:
            try:
                result = workspace.loop.run(queue.next())
            except _Exhausted:
                return
            yield result
    finally:
        if queue.begun:
            workspace.loop.run(_cancel(queue.begun))


class _Queue(Generic[S, T]):
    """Items that are begun and not yet given out, in their order."""

    def __init__(
        self,
        source: Iterator[S],
        work: Callable[[S], Awaitable[T]],
        size: Callable[[S], int],
        window: int,
        holds: Callable[[int], bool],
    ) -> None:
        self.begun: deque[asyncio.Future[T]] = deque()
        self._source = source
        self._work = work
        self._size = size
        self._window = window
        self._holds = holds
        self._unfinished = 0
        self._running = 0  # calls that the unfinished items ask for
        self._room = asyncio.Event()

    async def next(self) -> T:
        """The first item's result; meanwhile others are begun wherever there is room.

        Raises:
            _Exhausted: there are no more items.
        """
        self._fill()
        if not self.begun:
            raise _Exhausted
        while not self.begun[0].done():
            self._fill()
            self._room.clear()
            await self._room.wait()
        return self.begun.popleft().result()

    def _fill(self) -> None:
        while self._running < self._window and len(self.begun) < MAX_HELD_WINDOWS * self._window:
            if self._unfinished and self._holds(self._unfinished):
                return
            try:
                item = next(self._source)
            except StopIteration:
                return
            size = max(1, self._size(item))
            task = asyncio.ensure_future(self._work(item))
            self._running += size
            self._unfinished += 1
            task.add_done_callback(partial(self._done, size))
            self.begun.append(task)

    def _done(self, size: int, task: asyncio.Future[T]) -> None:
        self._running -= size
        self._unfinished -= 1
        self._room.set()


class _Exhausted(Exception):
    """All items are given out."""


async def _cancel(tasks: Iterable[asyncio.Future[T]]) -> None:
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
