"""Calls that get through: rate, concurrency, budget, retries. One `Caller` serves all questions of an invocation.

Order of the gates: a slot (held through all retries of a call, so that a struggling provider is asked less), then
for each attempt the rate, then the budget, so that money is not reserved while waiting. Slots and turns are given in
the order in which they are asked for, so that no query and no stage starves.

A call that is on its way is paid for, so it goes on when its asker is cancelled, and `drain` waits for it; one that
still waits for its turn is not made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from raggs.errors import ConfigError
from raggs.llm import rate
from raggs.llm.budget import Budget
from raggs.llm.calls import Answer, Call
from raggs.llm.faults import SLOW, UNSENT, Fault, Outage, Treatment
from raggs.llm.http import StoppedUnsent
from raggs.llm.ledger import Trace
from raggs.llm.prices import list_price, longest_answer
from raggs.llm.settings import BudgetSettings, LLMSettings, Price
from raggs.spending import Spending

A = TypeVar("A", bound=Answer)
T = TypeVar("T")

FREE = Price(input=0, output=0)


class Caller:
    """Makes calls.

    Args:
        earlier: what the run had spent before this invocation.
        tell: hears what a user should know.

    Attributes:
        budget: what was spent and promised.
    """

    def __init__(
        self,
        settings: LLMSettings,
        budget: BudgetSettings,
        earlier: Callable[[], Spending] = Spending,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tell = tell
        self.budget = Budget(budget, earlier)
        self._under_way: dict[str, asyncio.Task[Any]] = {}
        self._on_their_way: set[asyncio.Task[object] | None] = set()  # those that wait for a provider's answer
        self._closing = False  # no more calls are to be made; a task that wants one is cancelled
        self._settings = settings
        self._capped = budget.limits_usd
        self._retries = rate.retrying(settings.max_attempts, settings.backoff_s, settings.max_wait_s)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._own_slots: dict[str, asyncio.Semaphore] = {}
        self._throttles: dict[str, rate.Throttle] = {}  # by model: so do providers limit
        self._outages: dict[str, Outage] = {}  # by model: those of another provider may well answer
        self._prices: dict[str, Price] = {}
        self._without_format: set[str] = set()  # models whose server does not know structured output
        self._longest: dict[str, int] = {}  # tokens of the longest answer so far, by model

    def price(self, model: str) -> Price:
        """The price of `model`; zero where it is unknown and money is not limited.

        Raises:
            ConfigError: unknown, and a limit could not be kept.
        """
        if model not in self._prices:
            known = self._settings.price_of(model) or list_price(model)
            if known is None and self._capped:
                wanted = f'llm.prices: {{"{model}": {{input: ..., output: ...}}}}'
                raise ConfigError(
                    f"the price of {model} is not known, so budget.max_usd cannot be kept",
                    remedy=f"set {wanted} in USD per 1M tokens, or budget.max_usd: null",
                )
            self._prices[model] = known or FREE
        return self._prices[model]

    def leader(self, key: str) -> asyncio.Task[Any] | None:
        """The task that does the work of `key` just now."""
        return self._under_way.get(key)

    async def lead(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work of `key`, for all who want the same meanwhile."""
        task = asyncio.ensure_future(work())
        self._under_way[key] = task
        task.add_done_callback(partial(self._arrived, key))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task not in self._on_their_way:
                task.cancel()
            raise

    async def drain(self, grace_s: float) -> None:
        """Let calls on their way arrive, for `grace_s` seconds or until this is cancelled, and start no others."""
        self._closing = True
        late = tasks = set(self._under_way.values())
        for task in tasks - self._on_their_way:
            task.cancel()
        try:
            if tasks:
                _, late = await asyncio.wait(tasks, timeout=grace_s)
        finally:
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
            self._under_way.clear()
            self._closing = False  # the next loop may ask again

    async def call(self, call: Call[A], trace: Trace) -> A:
        """One answer, with tokens told or estimated; `trace` learns what it took.

        Raises:
            Fault: the provider failed to the end, or has for so many calls that it must be gone.
            BudgetError: no calls or no money left.
            ConfigError: the price is needed and unknown.
        """
        self.price(call.model)
        self._be_in_this_loop()
        outage = self._outages.setdefault(call.model, Outage(self._settings.outage_after))
        async with self._slots_of(call.model):
            with outage.watch():
                return await self._ask(call, trace)

    def _arrived(self, key: str, task: asyncio.Task[Any]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen: nobody may be left to be told

    async def _ask(self, call: Call[A], trace: Trace) -> A:
        formatted = call.model not in self._without_format
        try:
            return await self._persist(call, trace, formatted)
        except Fault as fault:
            if not (formatted and fault.about_format):
                raise
            self._without_format.add(call.model)
            return await self._persist(call, trace, formatted=False)

    async def _persist(self, call: Call[A], trace: Trace, formatted: bool) -> A:
        answer: A = await self._retries.copy()(self._attempt, call, trace, formatted)
        return answer

    async def _attempt(self, call: Call[A], trace: Trace, formatted: bool) -> A:
        answer_tokens = self.expected(call)
        throttle, tokens = self._throttle(call.model), call.prompt_tokens + answer_tokens
        tickets = await throttle.turn(tokens)
        if self._closing:
            raise asyncio.CancelledError
        price = self.price(call.model)

        def likely() -> float:
            return call.most_usd(price, self.expected(call))

        most = call.most_usd(price, call.answer_tokens(longest_answer(call.model)))
        unsure = call.model if call.answer_tokens(1) else ""  # where no answer is charged for, the price is known
        call.prepare(self._settings)
        reserved = await self.budget.reserve(likely, most, unsure)
        spent, answered, task = 0.0, False, asyncio.current_task()
        self._on_their_way.add(task)
        try:
            with trace.attempt():
                answer = await call.send(self._settings, formatted=formatted)
            throttle.answered(tickets, answer.headers, tokens)
            spent, answered = self.account(call.model, answer, price, trace), True
            return answer
        except StoppedUnsent:
            trace.unsent()
            raise
        except asyncio.CancelledError:
            spent = trace.perhaps(likely())
            raise
        except Fault as fault:
            throttle.refused(tickets, fault, tokens)
            spent = trace.perhaps(likely()) if fault.rule is SLOW else 0.0
            if fault.rule in UNSENT:
                trace.unsent()
            if fault.treatment is Treatment.RETRY and (wait_s := fault.retry_after_s or 0) > self._settings.max_wait_s:
                raise rate.too_long(call.model, wait_s) from None
            raise
        finally:
            self._on_their_way.discard(task)
            self.budget.settle(reserved, spent, unsure, answered=answered)

    def expected(self, call: Call[A]) -> int:
        """Tokens to reserve for the answer."""
        return call.answer_tokens(self._longest.get(call.model, 0))

    def account(self, model: str, answer: Answer, price: Price, trace: Trace) -> float:
        """Note what an answer took; returns its cost in USD."""
        sent, received, prefix = answer.prompt_tokens or 0, answer.completion_tokens or 0, answer.prefix
        less = price.discount(prefix.cached, prefix.written)
        usd = max(0.0, price.usd(sent, received, answer.searches) - less)
        trace.searches += answer.searches
        trace.spent += Spending(
            prompt_tokens=sent, cached_tokens=prefix.cached, completion_tokens=received, usd=usd, discount_usd=less
        )
        self._longest[model] = max(received, self._longest.get(model, 0))
        return usd

    def _throttle(self, model: str) -> rate.Throttle:
        if model not in self._throttles:
            settings, own = self._settings, self._settings.of(model)
            self._throttles[model] = rate.Throttle(
                own.requests_per_minute or settings.requests_per_minute,
                own.tokens_per_minute or settings.tokens_per_minute,
                own.concurrency or settings.concurrency,
                model,
                settings.max_wait_s,
                self._tell,
            )
        return self._throttles[model]

    def _slots_of(self, model: str) -> asyncio.Semaphore:
        """Those of all models, or the model's own, where it has a concurrency of its own."""
        own = self._settings.of(model).concurrency
        if own is not None and model not in self._own_slots:
            self._own_slots[model] = asyncio.Semaphore(own)
        return self._slots if own is None else self._own_slots[model]

    def _be_in_this_loop(self) -> None:
        """Locks belong to the loop in which someone waits for them; what was learned does not outlive it."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._slots = loop, asyncio.Semaphore(self._settings.concurrency)
            self._own_slots.clear()
            self._throttles.clear()
