"""What happens in a run, as values: what its stages do, beside what its parts tell (`raggs.base.types`).

The progress display, the plain log and tests listen to the same stream.

Work that needs an event loop of its own where one runs already, as in a notebook: in a thread beside it.
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
    """Nothing that the stage depends on has changed."""

    stage: str
    lock: StageLock


@dataclass(frozen=True)
class StageStarted:
    stage: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class StageProgress:
    """Queries done in the running stage, and the money spent in this run so far.

    `steps`: calls that the stage has made; `expected`: how many it will have made in the end, 0 where nobody knows.
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
        """How much is done of how much, in calls where they are known, else in queries."""
        return (self.steps, self.expected) if self.expected else (self.done, self.total)


@dataclass(frozen=True)
class StageFinished:
    stage: str
    lock: StageLock
    seconds: float


Event = Notice | StageSkipped | StageStarted | StageProgress | BuildProgress | WaitProgress | StageFinished

Listener = Callable[[Event], None]


def ignore_event(_: Event) -> None:
    """A listener that hears nothing."""


T = TypeVar("T")


def in_loop() -> bool:
    """Whether an event loop runs in this thread, so that no other one can."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_in_thread(work: Callable[[Listener], T], listen: Listener) -> T:
    """Do work in a thread and wait for it; an interrupt stops it at the next event that it tells.

    Args:
        work: is given the listener that it must tell its events.
        listen: hears them, in that thread.
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
