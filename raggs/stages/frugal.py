"""How many queries are graded side by side: as many as keep the judge busy, and few where the money may end.

A query that is graded in full is of use, one in the middle of its pool is of none until somebody pays for the rest.
Whole pools ask for everything at once, and calls are made in the order in which they are asked for, so that at most one
query is in the middle. Walks ask for a little at a time, and so go on side by side: no further one begins while the
money might end before all of them do. In batches they still do: there each round of all walks is one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


class Walks:
    """The calls of the queries that are graded.

    Args:
        stop_after: low grades in a row that end a walk; None where there are no walks.
        group: passages in a call.
        samples: calls for each of them.
        members: calls of models that each of these takes at most; 0 where nobody is paid.
        affords: how many more calls there is money for.
    """

    def __init__(
        self, stop_after: int | None, group: int, samples: int, members: float, affords: Callable[[], float]
    ) -> None:
        self._stop_after, self._group, self._samples = stop_after, group, samples
        self._members = members
        self._affords = affords
        self._most = 0.0  # calls of a query, of those that were begun

    def at_once(self, item: tuple[str, Sequence[object]]) -> int:
        """How many calls a query that begins asks for at once; a walk comes down to a few."""
        self._most = max(self._most, self._calls(len(item[1])) * self._members)
        return self._calls(min(len(item[1]), self._stop_after or len(item[1])))

    def tight(self, unfinished: int) -> bool:
        """Whether the money might end in the middle of a query, were one more begun."""
        return self._stop_after is not None and (unfinished + 1) * self._most > self._affords()

    def _calls(self, passages: int) -> int:
        return -(-passages // self._group) * self._samples
