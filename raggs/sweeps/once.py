"""Values that are made once for all who ask for the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class Once(Generic[V]):
    """Values by what they are made from, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, V] = {}

    def __call__(self, key: object, make: Callable[[], V]) -> V:
        name = repr(key)
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
