"""Values that are made once for all who ask for the same, and work that ends as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Generic, TypeVar

V = TypeVar("V")


async def all_or_none(work: Iterable[Coroutine[object, object, V]]) -> list[V]:
    """The results, in order. After the first error nothing goes on: what is asked later would be booked elsewhere."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Once(Generic[V]):
    """Values by what they are made from, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, V] = {}

    def __call__(self, key: object, make: Callable[[], V]) -> V:
        name = repr(key)
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
