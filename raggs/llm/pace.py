"""How fast calls may follow each other by what refusals (429, or any Retry-After) have taught.

A cut is answered as TCP answers a loss: once for all calls that were on their way together, then a quick return to the
good rate, which was really achieved, and from there on slow probing. Refusals that do not depend on the rate must not
hold it down. They give themselves away: they come below the good rate, too, where a limit refuses nothing. So a refusal
below it cuts nothing, and where there were several, none beyond it either. What always cuts is a large share of
refusals: the limit has fallen, or the allowance of a whole minute is used up.

Times are handed in; nothing here reads a clock or waits.
"""

from __future__ import annotations

import math
from collections import deque

from raggs.llm.limits import MINUTE_S

CUT = 0.8  # of the rate that was achieved
DEEP_CUT = 0.5  # of the rate, where a large share was refused
HEAVY, SEVERAL = 0.15, 2  # a large share of what was sent of late since the latest cut, and at least so many
RECOVERY_S = 5.0  # from a cut back to the good rate
GROWTH = 0.05  # of the rate, gained each second beyond the good one
FAST_GROWTH = 0.25  # the same, where refusals are known not to depend on the rate
UNEXPLAINED = 2  # so many refusals below the good rate say so
FORGOTTEN_S = 600.0  # after so long without a cut nothing is held against a provider
SHORTEST_S, LONGEST_S = 0.25, 5.0  # over how long calls are counted
SLOWEST = 1 / MINUTE_S  # calls a second


class Pace:
    """The rate of one model's calls. All times are of one clock, in seconds, and never go back."""

    def __init__(self) -> None:
        self._low = self._good = math.inf  # calls a second: just after the latest cut, and when recovered
        self._since = -math.inf  # the latest cut, or the end of a pause after it
        self._cut_at = 0  # calls sent before the latest cut
        self._refusals = 0  # of calls sent after it
        self._unexplained = 0  # those below the good rate
        self._count = 0
        self._sent: deque[float] = deque()  # of late
        self._refused: deque[float] = deque()

    def rate(self, now: float) -> float:
        """Calls a second; infinite before the first refusal."""
        age = max(0.0, now - self._since)
        if self._good == math.inf or age >= FORGOTTEN_S:
            return math.inf
        if age < RECOVERY_S:
            return self._low + (self._good - self._low) * age / RECOVERY_S
        growth = FAST_GROWTH if self._unexplained >= UNEXPLAINED else GROWTH
        return float(self._good * (1 + growth) ** (age - RECOVERY_S))

    def sent(self, now: float) -> int:
        """A call goes; returns its ticket for `refused`."""
        self._sent.append(now)
        self._drop_old(now)
        self._count += 1
        return self._count

    def pause(self, until: float) -> None:
        """No call goes before `until`, so until then nothing is learned."""
        self._since = max(self._since, until)

    def refused(self, ticket: int, now: float) -> None:
        """The call with `ticket` was refused."""
        self._refused.append(now)
        self._drop_old(now)
        if ticket <= self._cut_at:
            return
        self._refusals += 1
        rate, achieved = self.rate(now), self._achieved(now)
        if self._heavy():
            self._cut(now, low=DEEP_CUT * rate, good=CUT * achieved)
        elif now - self._since < RECOVERY_S:
            self._unexplained += 1
        elif self._unexplained < UNEXPLAINED:
            # When little was asked for, little was achieved; that is no reason to fall far.
            good = max(min(rate, achieved), 0.0 if self._good == math.inf else CUT * self._good)
            self._cut(now, low=CUT * good, good=good)

    def _heavy(self) -> bool:
        sent = min(self._count - self._cut_at, len(self._sent))
        return min(self._refusals, len(self._refused)) >= max(SEVERAL, HEAVY * sent)

    def _cut(self, now: float, low: float, good: float) -> None:
        self._low = max(SLOWEST, low)
        self._good = max(self._low, good)
        self._since = now
        self._cut_at = self._count
        self._refusals = self._unexplained = 0

    def _achieved(self, now: float) -> float:
        """Calls a second that were not refused, of late; one at least, so that no rate is lost for good."""
        if not self._sent:
            return math.inf
        return max(1, len(self._sent) - len(self._refused)) / max(SHORTEST_S, now - self._sent[0])

    def _drop_old(self, now: float) -> None:
        for times in (self._sent, self._refused):
            while times and times[0] < now - LONGEST_S:
                times.popleft()
