"""Events of the stages of a run. Events of components, such as an index being built, are in `raggs.base.types`.

The progress display, the plain log and tests listen to the same stream of events.

If an event loop is already running, as in a notebook, `run_in_thread` does the work in a separate thread, which can
have its own loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from raggs.base.types import BuildProgress, Notice, WaitProgress
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.reasons import Reason

__all__ = [
    "BuildProgress",
    "Event",
    "Listener",
    "Notice",
    "StageFinished",
    "StageProgress",
    "StageSkipped",
    "StageStarted",
    "WaitProgress",
    "ignore_event",
]


@dataclass(frozen=True)
class StageSkipped:
    """A stage was skipped because its result is up to date. In a stage that was not selected, failures do not count."""

    stage: str
    lock: StageLock


@dataclass(frozen=True)
class StageStarted:
    stage: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class StageProgress:
    """The number of queries that the running stage has finished, and the money that this invocation has spent.

    `steps` is the number of calls that the stage has made. `expected` is their expected total, or 0 if it is unknown.
    """

    stage: str
    done: int
    total: int
    usd: float
    calls: int
    cached: int
    steps: int = 0
    expected: int = 0

    @property
    def share(self) -> tuple[int, int]:
        """Finished and total amount of work: calls if their total is known, otherwise queries."""
        return (self.steps, self.expected) if self.expected else (self.done, self.total)


@dataclass(frozen=True)
class StageFinished:
    stage: str
    lock: StageLock
    seconds: float


Event = Notice | StageSkipped | StageStarted | StageProgress | BuildProgress | WaitProgress | StageFinished

Listener = Callable[[Event], None]


def ignore_event(_: Event) -> None:
    """Do nothing: a listener for callers that need no events."""


T = TypeVar("T")


def in_loop() -> bool:
    """Return whether an event loop is running in this thread, so that no other loop can run in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_in_thread(work: Callable[[Listener], T], listen: Listener) -> T:
    """Run `work` in a thread and wait for its result. After an interrupt (Ctrl-C), the work stops at its next event.

    Args:
        work: function that takes a listener and reports its events to it.
        listen: receives the events, in that thread.
    """
    stopped = threading.Event()

    def hear(event: Event) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        listen(event)

    with ThreadPoolExecutor(1, "raggs") as threads:
        result = threads.submit(work, hear)
        try:
            return result.result()
        except KeyboardInterrupt:
            stopped.set()
            raise
