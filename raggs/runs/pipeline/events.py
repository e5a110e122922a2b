"""What happens in a run, as values: what its stages do, beside what its parts tell (`raggs.base.progress`).

The progress display, the plain log and tests listen to the same stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raggs.base.progress import Building, Notice, Waiting
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.reasons import Reason


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
class Progress:
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


Event = Notice | StageSkipped | StageStarted | Progress | Building | Waiting | StageFinished
__all__ = [
    "Building",
    "Event",
    "Listener",
    "Notice",
    "Progress",
    "StageFinished",
    "StageSkipped",
    "StageStarted",
    "Waiting",
    "silent",
]

Listener = Callable[[Event], None]


def silent(_: Event) -> None:
    """A listener that hears nothing."""
