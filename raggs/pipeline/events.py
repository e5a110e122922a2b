"""What happens in a run, as values. The progress display, the plain log and tests listen to the same stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raggs.manifests.models import StageLock
from raggs.manifests.reasons import Reason


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
    """Queries done in the running stage, and the money spent in this run so far."""

    stage: str
    done: int
    total: int
    usd: float
    calls: int
    cached: int


@dataclass(frozen=True)
class Building:
    """Something that is made once (a passage store, vectors, an index) is being made."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Waiting:
    """Answers that someone else is working on, such as a provider's batch."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class StageFinished:
    stage: str
    lock: StageLock
    seconds: float


@dataclass(frozen=True)
class Notice:
    """Something that the user should know and that stops nothing."""

    message: str


Event = Notice | StageSkipped | StageStarted | Progress | Building | Waiting | StageFinished
Listener = Callable[[Event], None]


def silent(_: Event) -> None:
    """A listener that hears nothing."""
