"""Who has which item before their eyes, so that two do not grade one unknowingly. In memory, for some minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

MINUTES = 10.0


class Holder(NamedTuple):
    """A window of a reviewer."""

    who: str
    tab: str


class Leases:
    """Items that are out.

    Args:
        now: a clock in seconds that does not go back.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._held = dict[Holder, dict[int, float]]()  # until when, by item, in the order in which they went out

    def take(self, holder: Holder, item: int, *, first: bool = False) -> None:
        """Give an item out, or for longer."""
        held = self._held.setdefault(holder, {})
        if first:
            held.pop(item, None)
            self._held[holder] = held = {item: 0.0, **held}
        held[item] = self._now() + MINUTES * 60

    def release(self, who: str, item: int) -> None:
        """An item came back; from whichever window of the reviewer."""
        for holder, held in self._held.items():
            if holder.who == who:
                held.pop(item, None)

    def of(self, holder: Holder) -> list[int]:
        """What a window holds; it is held for longer by this."""
        held = self._held.get(holder, {})
        for item in held:
            held[item] = self._now() + MINUTES * 60
        return [*held]

    def others(self, holder: Holder) -> Iterator[tuple[bool, int]]:
        """Every item that another window holds, and whether it is the reviewer's own."""
        for other, held in [*self._held.items()]:
            for item, until in [*held.items()]:
                if until < self._now() and other != holder:
                    del held[item]
                elif other != holder:
                    yield other.who == holder.who, item
            if not held:
                del self._held[other]
