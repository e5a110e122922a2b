"""The budget: money is reserved before a call and settled after it, so that concurrent calls do not exceed the budget.

`max_usd` and `max_calls` apply to the whole run: everything in its ledger counts, including possibly billed calls.
Limits per invocation are separate settings, and their count starts at zero with each invocation. If the remaining
budget does not cover a call, the call waits for the calls in flight, because they usually cost less than reserved. If
no call is in flight and the budget still does not cover it, the budget is used up. The smaller the remaining budget,
the fewer calls are in flight.

The length of an answer, including hidden reasoning, is unknown until the answer is complete. If USD are limited, each
call is therefore sent with a token limit, and the reservation covers all of these tokens. If a server ignores or
rejects token limits, the calls in flight can exceed the budget. To bound their number, only one call to a model is in
flight at first. After that, at most twice as many calls are in flight as have finished.

A closed budget allows no further calls, even if the remaining amount would cover one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from raggs.base.artifacts import Spending
from raggs.base.errors import BudgetError, RaggsError
from raggs.base.text import plural
from raggs.llm.settings import BudgetSettings

ROUNDING = 1e-9  # USD
GO_ON = "and run again: paid answers are cached"


class BudgetCap(NamedTuple):
    """A limit that was reached: name of the setting, its value, and the amount spent, in USD or calls."""

    setting: str
    limit: float
    spent: float

    @property
    def per_invocation(self) -> bool:
        """Whether the amount starts at zero in the next invocation."""
        return self.setting.endswith("_per_invocation")

    @property
    def money(self) -> bool:
        """Whether the limit is in USD and not in calls."""
        return "usd" in self.setting

    def __str__(self) -> str:
        return f"budget.{self.setting} {self.limit:,g}"

    def binds(self, settings: BudgetSettings) -> bool:
        """Return whether the limit is still reached under other settings, because they do not raise it; False for a
        limit per invocation.
        """
        caps = {"max_usd": settings.max_usd, "max_calls": settings.max_calls}
        return self.setting in caps and _limit(caps[self.setting]) <= self.limit


class Cost(NamedTuple):
    """Cost of a call in USD, split into request and answer tokens, with the allowed length of the answer.

    Attributes:
        sent: USD of the request.
        token: USD of an answer token.
        enough: if the budget covers fewer answer tokens, the call is not made.
        wanted: answer tokens that the call gets if the budget covers them.
    """

    sent: float
    token: float = 0.0
    enough: int = 0
    wanted: int = 0

    def usd(self, tokens: int) -> float:
        """Return the cost in USD with an answer of `tokens` tokens."""
        return self.sent + tokens * self.token


class Reservation(NamedTuple):
    """Reservation for a call: `usd` covers an answer of `tokens` tokens, `likely` is the expected cost."""

    model: str
    usd: float
    likely: float
    tokens: int


class BudgetSpent(BudgetError):
    """The budget is used up. `cap` is the limit that was reached, so that the command can suggest how to continue."""

    def __init__(self, cap: BudgetCap, message: str) -> None:
        super().__init__(f"the budget is used up: {message}", remedy=f"raise budget.{cap.setting} {GO_ON}")
        self.cap = cap


class Budget:
    """The spent and reserved amounts of a run.

    Args:
        settings: the limits.
        earlier: returns what the run had spent before this invocation.
        unknown: returns the possibly billed part of this amount: calls that a kill interrupted.
    """

    def __init__(
        self,
        settings: BudgetSettings,
        earlier: Callable[[], Spending] = Spending,
        unknown: Callable[[], Spending] = Spending,
    ) -> None:
        self._settings = settings
        self._earlier = earlier
        self._unknown = unknown
        self._spent = 0.0
        self._reserved = 0.0
        self._likely = 0.0  # the part of the reserved amount that will likely be spent
        self._calls = 0
        self._in_flight: Counter[str] = Counter()  # by model
        self._ended: Counter[str] = Counter()
        self._usd: dict[str, float] = {}  # spent, by model
        self._waiting: list[asyncio.Event] = []
        self._closed: RaggsError | None = None

    def close(self, why: RaggsError) -> None:
        """Reject all further calls."""
        self._closed = why

    def check_open(self) -> None:
        """Raise an error if the budget is closed.

        Raises:
            RaggsError: the reason.
        """
        if self._closed is not None:
            raise self._closed

    def affords(self) -> float:
        """Return how many more calls the budget covers, assuming the mean cost of the most expensive model so far.

        Return 0 if USD are limited and the cost of a call is still unknown.
        """
        calls = min(cap.limit - cap.spent for cap in self._calls_made())
        money = self._left() + self._reserved - self._likely
        if money == float("inf"):
            return calls
        dearest = max((self._usd[model] / self._ended[model] for model in self._usd if model), default=None)
        return 0.0 if dearest is None else min(calls, money / max(dearest, ROUNDING))

    async def reserve(self, cost: Cost | Callable[[], Cost], model: str = "") -> Reservation:
        """Reserve one call and its cost. For each reservation, `settle` must be called.

        Args:
            cost: cost of the call, or a function that returns it and is called again after each wait.
            model: model whose calls start slowly (default: no slow start).

        Raises:
            BudgetSpent: the calls or the money are used up.
            RaggsError: the budget is closed.
        """
        self._count_call()
        while True:
            now = cost if isinstance(cost, Cost) else cost()
            tokens = self._affordable(now)
            if tokens is not None and self._may_begin(model, now.usd(now.enough)):
                break
            if tokens is None and not self._in_flight.total():
                raise self._spent_by(now.usd(now.enough))
            change = asyncio.Event()
            self._waiting.append(change)
            await change.wait()
            self._count_call()
        found = Reservation(model, now.usd(tokens), now.usd(now.enough), tokens)
        self._calls += 1
        self._in_flight[model] += 1
        self._reserved += found.usd
        self._likely += found.likely
        return found

    def settle(self, reserved: Reservation, spent: float, *, sent: bool = True) -> None:
        """Replace a reservation by the actual cost. `sent` states whether the call was sent."""
        model = reserved.model
        self._in_flight[model] -= 1
        self._ended[model] += 1
        self._calls -= not sent
        self._reserved = max(0.0, self._reserved - reserved.usd)
        self._likely = max(0.0, self._likely - reserved.likely)
        self._spent += spent
        self._usd[model] = self._usd.get(model, 0.0) + spent
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            change.set()

    def spend(self, usd: float) -> None:
        """Count a call that an earlier invocation had reserved."""
        self._calls += 1
        self._spent += usd

    def _may_begin(self, model: str, usd: float) -> bool:
        """Return whether enough calls of a model have ended to start another one. Calls to free models may always
        start, and so may all calls if USD are not limited.
        """
        slowly = bool(model) and usd > 0 and self._settings.limits_usd
        return not slowly or self._in_flight[model] < max(1, 2 * self._ended[model])

    def _affordable(self, cost: Cost) -> int | None:
        """Return how many answer tokens the remaining money covers, up to the wanted number, or None if it does not
        cover the minimum.
        """
        left, least = self._left(), cost.usd(cost.enough)
        if least > 0 and least > left + ROUNDING:
            return None
        if cost.token <= 0 or cost.usd(cost.wanted) <= left + ROUNDING:
            return cost.wanted
        return max(cost.enough, int((left - ROUNDING - cost.sent) / cost.token))

    def _spent_by(self, usd: float) -> BudgetSpent:
        """Return the error for a budget that a call of at least `usd` would exceed."""
        cap = next(cap for cap in self._money() if cap.spent + self._reserved + usd > cap.limit + ROUNDING)
        told = f"{cap.spent:.4f} of {cap.limit:.4f} USD spent{self._possibly(cap)}"
        return BudgetSpent(cap, f"{told}, the next call may cost {usd:.4f}")

    def _left(self) -> float:
        """Return the USD that are neither spent nor reserved."""
        return min(cap.limit - cap.spent for cap in self._money()) - self._reserved

    def _money(self) -> tuple[BudgetCap, BudgetCap]:
        return (
            BudgetCap("max_usd", _limit(self._settings.max_usd), self._earlier().usd + self._spent),
            BudgetCap("max_usd_per_invocation", _limit(self._settings.max_usd_per_invocation), self._spent),
        )

    def _calls_made(self) -> tuple[BudgetCap, BudgetCap]:
        return (
            BudgetCap("max_calls", _limit(self._settings.max_calls), self._earlier().calls + self._calls),
            BudgetCap("max_calls_per_invocation", _limit(self._settings.max_calls_per_invocation), self._calls),
        )

    def _count_call(self) -> None:
        self.check_open()
        for cap in self._calls_made():
            if cap.spent >= cap.limit:
                told = f"{cap.spent:,} of {plural(int(cap.limit), 'call')} made{self._possibly(cap)}"
                raise BudgetSpent(cap, told)

    def _possibly(self, cap: BudgetCap) -> str:
        """Return the possibly billed part of the spent amount, in parentheses; empty if there is none."""
        unknown = self._unknown()
        if cap.per_invocation or not unknown.calls:
            return ""
        return f" ({unknown.usd:.4f} of it possibly billed)" if cap.money else f" ({unknown.calls:,} possibly billed)"


def _limit(cap: float | None) -> float:
    return float("inf") if cap is None else cap
