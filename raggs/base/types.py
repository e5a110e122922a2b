"""Types for unchecked JSON values, and events of long-running work.

`Json` is the result of a parser; its type must be checked before use. Values that are only written are
`Mapping[str, object]`. `as_object`, `as_list` and `as_text` return a value of the wanted type unchanged. For a value of
another type, they return an empty object, an empty list or None.

Components report progress and notices without knowing the listeners. Runs add events of their stages
(`raggs.runs.events`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
JsonObject: TypeAlias = dict[str, Json]
TreePath: TypeAlias = tuple[str | int, ...]  # keys and positions from the root of a tree
Number: TypeAlias = float | None  # None: undefined
MAX_EVIDENCE_PASSAGES = 16  # in all evidence sets of a query; bounds the exact computation over tied passages


def finite_or_none(value: float) -> Number:
    """Return a plain JSON number, or None if it is not finite."""
    return float(value) + 0.0 if math.isfinite(value) else None  # + 0.0 converts -0.0 to 0.0


def as_object(found: object) -> Mapping[str, object]:
    """Return `found` if it is a JSON object, otherwise an empty one."""
    return found if isinstance(found, dict) else {}


def as_list(found: object) -> list[object]:
    """Return `found` if it is a JSON array, otherwise an empty one."""
    return found if isinstance(found, list) else []


def as_text(found: object) -> str | None:
    """Return `found` if it is a nonempty text, otherwise None."""
    return found if isinstance(found, str) and found else None


def leaves(value: object, place: TreePath = ()) -> Iterator[tuple[TreePath, object]]:
    """Yield every plain value of a tree with its place. An empty mapping or list is a leaf."""
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
    """Progress of a part of the work, such as vectors or graded queries. `total` is 0 if unknown."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class WaitProgress:
    """Progress of external work, such as a provider's batch."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Notice:
    """A notice for the user. The work continues."""

    message: str


ProgressEvent = BuildProgress | WaitProgress | Notice
ProgressListener = Callable[[ProgressEvent], None]


def ignore_progress(_: ProgressEvent) -> None:
    """Ignore an event."""


Notify = Callable[[str], None]  # receives a sentence for the user


def ignore_notice(_: str) -> None:
    """Ignore a notice."""
