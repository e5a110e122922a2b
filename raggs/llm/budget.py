"""Money is reserved before a call and settled after it, so that calls in flight cannot overdraw the budget.

The caps are the run's: what its ledger held before this invocation counts, with what is possibly billed. Those of one
invocation have names of their own and count from zero. A call that does not fit waits while others are in flight,
since they mostly cost less than was reserved for them; when none is left and it still does not fit, the budget is used
up. So fewer calls are in flight as the budget shrinks.

How long a model's answers are, hidden reasoning included, is known when it has answered. So where USD are limited, a
call is sent with a limit of tokens, and what is reserved pays for all of them: the cap holds for answers of any length.
A server that ignores the limit can break the cap by the answers that are in flight at that moment. To bound these, a
model's first call goes alone, and each call that ends lets two more go.

A budget can be closed: from then on no call is made, also not one that would still fit.
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
GO_ON = "and run again: what was paid is cached"


class BudgetCap(NamedTuple):
    """A limit that was reached: the setting's name, its value, what was spent under it, in USD or calls."""

    setting: str
    limit: float
    spent: float

    @property
    def per_invocation(self) -> bool:
        """Whether the next invocation starts from zero."""
        return self.setting.endswith("_per_invocation")

    @property
    def money(self) -> bool:
        """Whether it counts USD, not calls."""
        return "usd" in self.setting

    def __str__(self) -> str:
        return f"budget.{self.setting} {self.limit:,g}"

    def binds(self, settings: BudgetSettings) -> bool:
        """Whether it would still be reached, in an invocation that spends nothing."""
        caps = {"max_usd": settings.max_usd, "max_calls": settings.max_calls}
        return self.setting in caps and _limit(caps[self.setting]) <= self.limit


class Cost(NamedTuple):
    """USD of a call: of what is sent, and of each token of the answer; and how long the answer may be, in tokens.

    Attributes:
        enough: tokens without which the call is not made.
        wanted: tokens that it is given if there is money for them.
    """

    sent: float
    token: float = 0.0
    enough: int = 0
    wanted: int = 0

    def usd(self, tokens: int) -> float:
        """With an answer of so many tokens."""
        return self.sent + tokens * self.token


class Reservation(NamedTuple):
    """What was set aside for a call: `usd` pays for an answer of `tokens`, `likely` is what it likely costs."""

    model: str
    usd: float
    likely: float
    tokens: int


class BudgetSpent(BudgetError):
    """The budget is used up. `cap`: which limit, so that whoever knows the command can say how to go on."""

    def __init__(self, cap: BudgetCap, message: str) -> None:
        super().__init__(f"the budget is used up: {message}", remedy=f"raise budget.{cap.setting} {GO_ON}")
        self.cap = cap


class Budget:
    """What a run has spent and promised.

    Args:
        settings: the caps.
        earlier: what the run had spent before this invocation.
        unknown: the part of it that is possibly billed: calls whose end a kill took.
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
        self._likely = 0.0  # the part of it that is likely to be spent
        self._calls = 0
        self._in_flight: Counter[str] = Counter()  # by model
        self._ended: Counter[str] = Counter()
        self._usd: dict[str, float] = {}  # spent, by model
        self._waiting: list[asyncio.Event] = []
        self._closed: RaggsError | None = None

    def close(self, why: RaggsError) -> None:
        """Let no call be made any more."""
        self._closed = why

    def check_open(self) -> None:
        """Find out that no call is to be made.

        Raises:
            RaggsError: why.
        """
        if self._closed is not None:
            raise self._closed

    def affords(self) -> float:
        """How many more calls there are money and calls for, all of them of the model that is the dearest so far.

        None, where the money is limited and nobody knows yet what a call costs.
        """
        calls = min(cap.limit - cap.spent for cap in self._calls_made())
        money = self._left() + self._reserved - self._likely
        if money == float("inf"):
            return calls
        dearest = max((self._usd[model] / self._ended[model] for model in self._usd if model), default=None)
        return 0.0 if dearest is None else min(calls, money / max(dearest, ROUNDING))

    async def reserve(self, cost: Cost | Callable[[], Cost], model: str = "") -> Reservation:
        """Set one call and its money aside; `settle` must follow.

        Args:
            cost: of the call; asked again after each wait.
            model: whose calls are to begin slowly; none by default.

        Raises:
            BudgetSpent: the calls or the money are used up.
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
        """Exchange what was reserved for what the call did cost. `sent`: it did leave."""
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
        """Count a call that an earlier invocation promised, and so nobody reserved."""
        self._calls += 1
        self._spent += usd

    def _may_begin(self, model: str, usd: float) -> bool:
        """Whether enough calls of a model have ended for one more of them, where that costs something."""
        slowly = bool(model) and usd > 0 and self._settings.limits_usd
        return not slowly or self._in_flight[model] < max(1, 2 * self._ended[model])

    def _affordable(self, cost: Cost) -> int | None:
        """Tokens that an answer may have by the money that is left, up to those wanted; None: not enough."""
        left, least = self._left(), cost.usd(cost.enough)
        if least > 0 and least > left + ROUNDING:
            return None
        if cost.token <= 0 or cost.usd(cost.wanted) <= left + ROUNDING:
            return cost.wanted
        return max(cost.enough, int((left - ROUNDING - cost.sent) / cost.token))

    def _spent_by(self, usd: float) -> BudgetSpent:
        """The end of a budget that a call of at least `usd` would break."""
        cap = next(cap for cap in self._money() if cap.spent + self._reserved + usd > cap.limit + ROUNDING)
        told = f"{cap.spent:.4f} of {cap.limit:.4f} USD spent{self._possibly(cap)}"
        return BudgetSpent(cap, f"{told}, the next call may cost {usd:.4f}")

    def _left(self) -> float:
        """USD that are neither spent nor reserved."""
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
        """How much of what was spent under a cap is only possibly billed, in parentheses; empty if nothing."""
        unknown = self._unknown()
        if cap.per_invocation or not unknown.calls:
            return ""
        return f" ({unknown.usd:.4f} of it possibly billed)" if cap.money else f" ({unknown.calls:,} possibly billed)"


def _limit(cap: float | None) -> float:
    return float("inf") if cap is None else cap
