"""Money is reserved before a call and settled after it, so that calls in flight cannot overdraw the budget.

The caps are the run's: what its ledger held before this invocation counts. Those of one invocation have names of
their own and count from zero. A call that does not fit waits while others are in flight, since they mostly cost less
than was reserved for them; when none is left and it still does not fit, the budget is used up.

The cap holds as far as the reservations do. How long a model's answers are, hidden reasoning included, is known when
it has answered; so under a cap its first call goes alone, with all the money that its longest answer could cost, or
that is left, and each call that ends lets two more go.

A budget can be closed: from then on no call is made, also not one that would still fit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from raggs.errors import BudgetError
from raggs.llm.settings import BudgetSettings
from raggs.spending import Spending
from raggs.text import plural

ROUNDING = 1e-9  # USD
GO_ON = "and run again: what was paid is cached"


class Cap(NamedTuple):
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


class BudgetSpent(BudgetError):
    """The budget is used up. `cap`: which limit, so that whoever knows the command can say how to go on."""

    def __init__(self, cap: Cap, message: str) -> None:
        super().__init__(f"the budget is used up: {message}", remedy=f"raise budget.{cap.setting} {GO_ON}")
        self.cap = cap


class Budget:
    """What a run has spent and promised.

    Args:
        settings: the caps.
        earlier: what the run had spent before this invocation.
    """

    def __init__(self, settings: BudgetSettings, earlier: Callable[[], Spending] = Spending) -> None:
        self._settings = settings
        self._earlier = earlier
        self._spent = 0.0
        self._reserved = 0.0
        self._calls = 0
        self._in_flight: Counter[str] = Counter()  # by model
        self._ended: Counter[str] = Counter()
        self._usd: dict[str, float] = {}  # spent, by model
        self._answered: set[str] = set()
        self._waiting: list[asyncio.Event] = []
        self._closed: BudgetError | None = None

    def close(self, why: BudgetError) -> None:
        """Let no call be made any more."""
        self._closed = why

    def check_open(self) -> None:
        """Find out that no call is to be made.

        Raises:
            BudgetError: why.
        """
        if self._closed is not None:
            raise self._closed

    def affords(self) -> float:
        """How many more calls there are money and calls for, all of them of the model that is the dearest so far.

        None, where the money is limited and nobody knows yet what a call costs.
        """
        calls = min(cap.limit - cap.spent for cap in self._calls_made())
        money = self._left()
        if money == float("inf"):
            return calls
        dearest = max((self._usd[model] / self._ended[model] for model in self._usd if model), default=None)
        return 0.0 if dearest is None else min(calls, money / max(dearest, ROUNDING))

    async def reserve(self, cost: float | Callable[[], float], most: float = 0.0, model: str = "") -> float:
        """Set one call and its money aside; `settle` must follow.

        Args:
            cost: USD that the call may cost, as far as is known; asked again after each wait.
            most: what it could cost, of a model that has not answered yet.
            model: whose calls are to begin slowly; none by default.

        Returns:
            What was set aside: `cost`, or for a first call up to `most`, as far as there is money.

        Raises:
            BudgetSpent: the calls or the money are used up.
        """
        self._count_call()
        while True:
            usd = cost if isinstance(cost, float | int) else cost()
            wanted = usd if model in self._answered else max(usd, most)
            alone = not self._in_flight.total()
            if self._too_dear(wanted) is None and self._may_begin(model, usd):
                break
            if alone and (cap := self._too_dear(usd)) is not None:
                told = f"{cap.spent:.4f} of {cap.limit:.4f} USD spent, the next call may cost {usd:.4f}"
                raise BudgetSpent(cap, told)
            if alone:
                wanted = max(usd, self._left())
                break
            change = asyncio.Event()
            self._waiting.append(change)
            await change.wait()
            self._count_call()
        self._calls += 1
        self._in_flight[model] += 1
        self._reserved += wanted
        return wanted

    def settle(self, reserved: float, spent: float, model: str = "", *, answered: bool = False) -> None:
        """Exchange what was reserved for what the call did cost."""
        self._in_flight[model] -= 1
        self._ended[model] += 1
        if answered:
            self._answered.add(model)
        self._reserved = max(0.0, self._reserved - reserved)
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

    def _too_dear(self, usd: float) -> Cap | None:
        """The cap that `usd` more would break, if any."""
        if usd == 0:
            return None
        broken = (cap for cap in self._money() if cap.spent + self._reserved + usd > cap.limit + ROUNDING)
        return next(broken, None)

    def _left(self) -> float:
        """USD that are neither spent nor reserved."""
        return min(cap.limit - cap.spent for cap in self._money()) - self._reserved

    def _money(self) -> tuple[Cap, Cap]:
        return (
            Cap("max_usd", _limit(self._settings.max_usd), self._earlier().usd + self._spent),
            Cap("max_usd_per_invocation", _limit(self._settings.max_usd_per_invocation), self._spent),
        )

    def _calls_made(self) -> tuple[Cap, Cap]:
        return (
            Cap("max_calls", _limit(self._settings.max_calls), self._earlier().calls + self._calls),
            Cap("max_calls_per_invocation", _limit(self._settings.max_calls_per_invocation), self._calls),
        )

    def _count_call(self) -> None:
        self.check_open()
        for cap in self._calls_made():
            if cap.spent >= cap.limit:
                raise BudgetSpent(cap, f"{cap.spent:,} of {plural(int(cap.limit), 'call')} made")


def _limit(cap: float | None) -> float:
    return float("inf") if cap is None else cap
