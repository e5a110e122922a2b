"""Notices that a provider is gone, so that a run stops instead of failing question after question.

One call that fails after all its attempts is a failure of that call. Many in a row, with no answer between them, are
an outage: nothing more can be had, and what was paid is cached. An error that only a working provider can give (a
rejected request) counts as an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raggs.errors import ProviderError
from raggs.llm.faults import AGAIN, Fault, Rule, Treatment
from raggs.text import plural

MESSAGE = "the provider does not answer"
REMEDY = f"{AGAIN} when it does"


class Outage:
    """Counts failures in a row. `limit`: how many make an outage; None: none ever do."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._in_a_row = 0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """One call, with all its attempts.

        Raises:
            Fault: that of the call; one that stops the run, once there are too many.
        """
        try:
            yield
        except Fault as fault:
            self._in_a_row = self._in_a_row + 1 if fault.treatment is Treatment.RETRY else 0
            if self._limit is None or self._in_a_row < self._limit:
                raise
            told = f"{MESSAGE}: {plural(self._in_a_row, 'call')} in a row failed after all attempts ({fault.error})"
            rule = Rule(Treatment.STOP, ProviderError, MESSAGE, REMEDY)
            raise Fault(rule, ProviderError(told, remedy=REMEDY)) from None
        self._in_a_row = 0
