"""Events of the stages of a run. The events of its components are in `raggs.base.types`.

The progress display, the plain log and tests listen to the same stream of events.

`run_in_thread` runs work that needs an event loop in a separate thread if a loop is already running, as in a notebook.
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
    """A stage was skipped because nothing that it depends on has changed."""

    stage: str
    lock: StageLock


@dataclass(frozen=True)
class StageStarted:
    stage: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class StageProgress:
    """Queries finished in the running stage, and the money spent in this run so far.

    `steps` is the number of calls the stage has made; `expected` is the expected total, 0 if unknown.
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
        """Finished and total amount of work, in calls if they are known, otherwise in queries."""
        return (self.steps, self.expected) if self.expected else (self.done, self.total)


@dataclass(frozen=True)
class StageFinished:
    stage: str
    lock: StageLock
    seconds: float


Event = Notice | StageSkipped | StageStarted | StageProgress | BuildProgress | WaitProgress | StageFinished

Listener = Callable[[Event], None]


def ignore_event(_: Event) -> None:
    """Ignore an event."""


T = TypeVar("T")


def in_loop() -> bool:
    """Return whether an event loop is running in this thread, so that no other loop can run in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_in_thread(work: Callable[[Listener], T], listen: Listener) -> T:
    """Run work in a thread and wait for the result. An interrupt stops the work at its next event.

    Args:
        work: function that reports its events to the listener that it gets.
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
