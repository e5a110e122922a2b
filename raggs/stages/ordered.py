"""Process many items concurrently and return the results in the order of the items. Stages use it to call models."""

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

WINDOW = 4  # number of requested calls for each call that may run concurrently
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
    """Process many items concurrently and yield the results in the order of the items.

    When an item is done, the next one starts, even if an earlier one is still running. One slow answer therefore blocks
    other items only when a limit of `window` is reached. The first error, in the order of the items, cancels all
    running items and is raised.

    Args:
        workspace: supplies the event loop and the allowed concurrency.
        size: returns how many calls an item requests at once.
        window: number of requested calls at which no further item starts (default: four times the allowed concurrency).
            The last item may exceed it. In addition, at most `MAX_HELD_WINDOWS` times as many items may be started but
            not yet yielded. Both limits bound the memory use for streams of any length.
        holds: takes the number of unfinished items and returns whether the next item must wait. It is ignored if no
            item is unfinished.
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
    """Items that are started and not yet yielded, in order."""

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
        self._running = 0  # calls requested by the unfinished items
        self._room = asyncio.Event()

    async def next(self) -> T:
        """Return the first item's result and start further items in the meantime, as capacity allows.

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
    """All items have been yielded."""


async def _cancel(tasks: Iterable[asyncio.Future[T]]) -> None:
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
