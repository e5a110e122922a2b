"""Money is reserved before a call and settled after it, so that calls in flight cannot overdraw the budget.

A call that does not fit waits while others are in flight, since they mostly cost less than was reserved for
them; when none is left and it still does not fit, the budget is used up. The cap holds as far as the reservations
do: a call may cost more than its reservation when its answer is longer than expected.
"""

from __future__ import annotations

import asyncio

from raggs.errors import BudgetError
from raggs.llm.settings import BudgetSettings
from raggs.text import plural

ROUNDING = 1e-9  # USD


class Budget:
    """What one invocation has spent and promised. `settings`: its caps."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings
        self._spent = 0.0
        self._reserved = 0.0
        self._calls = 0
        self._in_flight = 0
        self._waiting: list[asyncio.Event] = []

    async def reserve(self, usd: float) -> None:
        """Set one call and `usd` aside; `settle` must follow.

        Raises:
            BudgetError: the calls or the money are used up.
        """
        self._count_call()
        while not self._fits(usd):
            if not self._in_flight:
                raise self._broke(usd)
            change = asyncio.Event()
            self._waiting.append(change)
            await change.wait()
            self._count_call()
        self._calls += 1
        self._in_flight += 1
        self._reserved += usd

    def settle(self, reserved: float, spent: float) -> None:
        """Exchange what was reserved for what the call did cost."""
        self._in_flight -= 1
        self._reserved = max(0.0, self._reserved - reserved)
        self._spent += spent
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            change.set()

    def _fits(self, usd: float) -> bool:
        cap = self._settings.max_usd
        return cap is None or usd == 0 or self._spent + self._reserved + usd <= cap + ROUNDING

    def _count_call(self) -> None:
        cap = self._settings.max_calls
        if cap is not None and self._calls >= cap:
            raise BudgetError(
                f"the budget is used up: {self._calls:,} of {plural(cap, 'call')} made",
                remedy="raise budget.max_calls and run again: what was paid is cached",
            )

    def _broke(self, usd: float) -> BudgetError:
        spent = f"{self._spent:.4f} of {self._settings.max_usd:.4f} USD spent"
        return BudgetError(
            f"the budget is used up: {spent}, the next call may cost {usd:.4f}",
            remedy="raise budget.max_usd and run again: what was paid is cached",
        )
