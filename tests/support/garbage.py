"""Values that nobody expects, put in the place of any value of a JSON document."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

DEEP: Any = 1
for _ in range(60):
    DEEP = [DEEP]

GARBAGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3.5, -0.0, 1e308, 2**53, 2**64, 10**400, float("nan"), float("inf"), "", " ", "x",
    "nonsense/9", "../../etc/passwd", "/dev/zero", "\x00", "\ud800", "[/red]", "é" * 300,
    [], [None], [[]], [1, "a"], {},
    {"": None}, {"type": "nonsense"}, {"type": "litellm"}, {"type": None}, {"a": {"b": {}}}, DEEP,
    "2999-13-45", "0" * 64,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a document."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in entries:
        yield (*path, key)
        yield from places(each, (*path, key))


def mutated(document: Any, seed: int, changes: int = 1) -> Any:
    """A copy with a few values replaced, taken away, or joined by a key that nobody knows."""
    chance, found = random.Random(seed), copy.deepcopy(document)
    for _ in range(changes):
        path = chance.choice(list(places(found)))
        target = found
        for key in path[:-1]:
            target = target[key]
        kind = chance.random()
        if kind < 0.8:
            target[path[-1]] = copy.deepcopy(chance.choice(GARBAGE))
        elif kind < 0.9 or not isinstance(target, dict):
            del target[path[-1]]
        else:
            target[str(chance.choice(("", "nonsense", "\x00", "[x]")))] = copy.deepcopy(chance.choice(GARBAGE))
    return found
