"""Types of JSON, for values that come from outside and are not yet checked.

`Json` is what a parser may give: whoever reads it must ask what it is before using it. What is only written is a
`Mapping[str, object]`; `as_object`, `as_list` and `as_text` take the wanted form or nothing, and convert nothing.

What work that takes its time tells whoever watches: something is made once, someone is waited for, a word of notice.

Parts tell it without knowing who listens; runs add what their stages do (`raggs.runs.events`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
JsonObject: TypeAlias = dict[str, Json]
TreePath: TypeAlias = tuple[str | int, ...]  # in a tree: keys and positions from the root on
Number: TypeAlias = float | None  # None: not defined


def finite_or_none(value: float) -> Number:
    """A plain number that JSON has; None where it is not defined."""
    return float(value) + 0.0 if math.isfinite(value) else None  # + 0.0 makes -0.0 a plain zero


def as_object(found: object) -> Mapping[str, object]:
    """`found` if it is a JSON object, else an empty one."""
    return found if isinstance(found, dict) else {}


def as_list(found: object) -> list[object]:
    """`found` if it is a JSON array, else an empty one."""
    return found if isinstance(found, list) else []


def as_text(found: object) -> str | None:
    """`found` if it is a text and not empty."""
    return found if isinstance(found, str) and found else None


def leaves(value: object, place: TreePath = ()) -> Iterator[tuple[TreePath, object]]:
    """Every plain value of a tree with its place; an empty mapping or list is a leaf."""
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            yield from leaves(entry, (*place, str(key)))
    elif isinstance(value, list | tuple) and value:
        for position, entry in enumerate(value):
            yield from leaves(entry, (*place, position))
    else:
        yield place, value


@dataclass(frozen=True)
class BuildProgress:
    """Something that is made once (a passage store, vectors, an index) is being made; `total` is 0 where unknown."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class WaitProgress:
    """Answers that someone else is working on, such as a provider's batch."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Notice:
    """Something that the user should know and that stops nothing."""

    message: str


ProgressEvent = BuildProgress | WaitProgress | Notice
ProgressListener = Callable[[ProgressEvent], None]


def ignore_progress(_: ProgressEvent) -> None:
    """Whoever does not want to know."""


Notify = Callable[[str], None]  # hears a sentence that the user should read


def ignore_notice(_: str) -> None:
    """Drop a sentence for which no listener was named."""
