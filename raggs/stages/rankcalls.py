"""How far the ranking of all queries is, in calls: what progress and its forecast are told from."""

from __future__ import annotations

from raggs.stages.base import Told

# Calls until a ranking ends or `rank.max_calls` of 80 are used up, with the default settings: mean of three simulated
# judges on labelled queries (36 with a sharp judge, 56 with a medium, 78 with a noisy one; `benchmarks/gainloss.py`).
LIKELY_CALLS = 56


def likely_calls(most: int) -> int:
    """Return the calls that a ranking is expected to take, of at most so many, while nothing is known of its judge."""
    return min(most, LIKELY_CALLS)


class CountedCalls:
    """How many calls are made and how many are expected: at most, until queries that are done teach their mean.

    Args:
        tell: hears of it.
        total: queries.
        most: calls of one query.
        shared: calls of all queries together, where these have one budget.
    """

    def __init__(self, tell: Told, total: int, most: int, shared: float | None = None) -> None:
        self._tell = tell
        self._total = total
        self._most, self._shared = most, shared
        self._made = self._given = 0
        self._queries = self._theirs = 0  # queries that are done, and their calls

    @property
    def expected(self) -> int:
        """Over all queries."""
        if self._shared is not None and self._queries < self._total:
            return max(self._made, round(min(self._shared, self._total * self._most)))
        mean = self._theirs / self._queries if self._queries else self._most
        return max(self._made, round(self._theirs + (self._total - self._queries) * mean))

    def made(self, count: int) -> None:
        """A round is answered."""
        self._made += count
        self._tell(self._given, self._total, self._made, self.expected)

    def query_done(self, count: int) -> None:
        """A query's ranking took so many calls."""
        self._queries, self._theirs = self._queries + 1, self._theirs + count

    def given_out(self, done: int) -> None:
        """The records of so many queries are written."""
        self._given = done
        self._tell(done, self._total, self._made, self.expected)
