"""What work that takes its time tells whoever watches: something is made once, someone is waited for, a word of notice.

Parts tell it without knowing who listens; runs add what their stages do (`raggs.runs.pipeline.events`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Building:
    """Something that is made once (a passage store, vectors, an index) is being made; `total` is 0 where unknown."""

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
class Notice:
    """Something that the user should know and that stops nothing."""

    message: str


News = Building | Waiting | Notice
Hear = Callable[[News], None]


def deaf(_: News) -> None:
    """Whoever does not want to know."""


Notify = Callable[[str], None]  # hears a sentence that the user should read


def unheard(_: str) -> None:
    """Drop a sentence for which no listener was named."""
