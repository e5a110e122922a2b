"""Make calls with rate limits, concurrency limits, budget and retries. One `Caller` serves all requests of an
invocation.

A call first takes one of the concurrency slots and keeps it through all its retries. A struggling provider therefore
gets fewer calls. Each attempt waits first for the rate limit and then for the budget. So no money is reserved during
the wait for the rate limit. Requests are served in their order, so every query and every stage gets its turn.

If USD are limited, a call is sent with a token limit that its reservation covers, unless the server accepts no limit.
An answer that ends at this limit is incomplete. It is requested again with a higher limit, if the budget covers this.

A call in flight is paid for, so it continues if its caller is cancelled, and `drain` waits for it for a limited time. A
call that still waits for its turn is not made.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from raggs.base.artifacts import Spending
from raggs.base.errors import ConfigError, RaggsError
from raggs.llm import rate
from raggs.llm.budget import Budget, Cost, Reservation
from raggs.llm.calls import Call, ProviderResponse
from raggs.llm.faults import UNSENT, Fault, Outage, Treatment
from raggs.llm.ledger import CallTrace
from raggs.llm.messages import unmark
from raggs.llm.prices import list_price, longest_answer, nearest_model
from raggs.llm.providers import StoppedUnsent
from raggs.llm.settings import BudgetSettings, LLMSettings, Price

A = TypeVar("A", bound=ProviderResponse)
T = TypeVar("T")

ZERO_PRICE = Price(input=0, output=0)
ANSWER_LENGTH_FACTOR = 4  # maximum answer length as a multiple of the likely length
LONGER = 4  # minimum of the new limit, as a multiple of the length at which an answer was cut off
LONGEST_ANSWER = 65_536  # tokens, for an unknown model
REFUSALS = 3  # number of rejections after which the next calls to a model start with the next name
LIMIT_NAMES = ("max_tokens", "max_completion_tokens", "")  # names of the limit at servers, the usual one first


class Caller:
    """Make calls.

    Args:
        settings: settings of language models.
        budget: the limits.
        earlier: returns what the run had spent before this invocation.
        unknown: returns the possibly billed part of this amount.
        tell: receives messages for the user.

    Attributes:
        budget: the budget, with the spent and reserved amounts.
    """

    def __init__(
        self,
        settings: LLMSettings,
        budget: BudgetSettings,
        earlier: Callable[[], Spending] = Spending,
        unknown: Callable[[], Spending] = Spending,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tell = tell
        self.budget = Budget(budget, earlier, unknown)
        self._under_way: dict[str, asyncio.Task[Any]] = {}
        self._on_their_way: set[asyncio.Task[object] | None] = set()  # tasks that wait for a provider's answer
        self._closing = False  # if true, no more calls are made, and tasks with a new call are cancelled
        self._settings = settings
        limits = {"max_usd": budget.max_usd, "max_usd_per_invocation": budget.max_usd_per_invocation}
        self._caps = [f"budget.{name}" for name, limit in limits.items() if limit is not None]
        self._capped = budget.limits_usd
        self._retries = rate.retrying(settings.max_attempts, settings.backoff_s, settings.max_wait_s)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._own_slots: dict[str, asyncio.Semaphore] = {}
        self._throttles: dict[str, rate.Throttle] = {}  # by model, because providers limit by model
        self._outages: dict[str, Outage] = {}  # by model, because another provider may still answer
        self._prices: dict[str, Price] = {}
        self._without_format: set[str] = set()  # models whose server does not support structured output
        self._longest: dict[str, int] = {}  # tokens of the longest answer so far, by model
        # By model: index in `LIMIT_NAMES` of the parameter name that its server accepts.
        self._limits: dict[str, int] = {}
        self._refusals: Counter[str] = Counter()  # number of rejected limits, by model
        self._unlimited: set[str] = set()  # models whose answers exceeded the limit

    def price(self, model: str) -> Price:
        """Return the price of `model`, or zero if it is unknown and USD are not limited.

        Raises:
            ConfigError: the price is unknown, but required to enforce a limit.
        """
        if model not in self._prices:
            known = self._settings.price_of(model) or list_price(model)
            if known is None and self._capped:
                wanted = f'llm.prices: {{"{model}": {{input: ..., output: ...}}}}'
                near = None if self._settings.base_of(model) else nearest_model(model)
                meant = "" if near is None else f"use {near} if you meant that, or "
                raise ConfigError(
                    f"the price of {model} is unknown, so raggs cannot enforce {' and '.join(self._caps)}: litellm's "
                    "price list has no price for it",
                    remedy=f"{meant}set {wanted} in USD per 1M tokens, or {': null and '.join(self._caps)}: null",
                )
            self._prices[model] = known or ZERO_PRICE
        return self._prices[model]

    def leader(self, key: str) -> asyncio.Task[Any] | None:
        """Return the task that currently works on `key`, or None."""
        return self._under_way.get(key)

    async def lead(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work of `key` in a task, which concurrent requests with this key find by `leader` and can share."""
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
        """Wait for calls in flight, for `grace_s` seconds or until cancelled, and start no others."""
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
            self._closing = False  # calls are allowed again in the next event loop

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Wrap the storing of a paid answer. If storing fails, no further calls are made."""
        try:
            yield
        except RaggsError as error:
            self.budget.close(error)
            raise

    async def call(self, call: Call[A], trace: CallTrace) -> A:
        """Return one answer, with counted or estimated tokens. The usage is recorded in `trace`.

        Raises:
            Fault: the call was rejected, all attempts failed, or so many calls in a row failed that the provider must
                be down.
            BudgetError: the calls or the money are used up.
            ConfigError: the price is required and unknown.
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
            task.exception()  # marks the exception as retrieved, even if no caller is left

    async def _ask(self, call: Call[A], trace: CallTrace) -> A:
        """Return the answer. Repeat the call without features that the server rejects: structured output, cache marks,
        a limit's name.

        Raises:
            BudgetSpent: the budget is used up, or does not cover a longer answer.
        """
        least, name = 0, self.limit_name(call.model)
        while True:
            formatted = call.model not in self._without_format
            try:
                answer, tokens = await self._persist(call, trace, formatted, least, name)
            except Fault as fault:
                if formatted and fault.about_format:
                    self._without_format.add(call.model)
                elif fault.about_marks:
                    unmark(call.model)
                elif fault.about_limit and name and self._capped and name != call.own_limit_name:
                    name = self.other_limit(call.model, name)
                else:
                    raise
                continue
            if not self.cut_short(call, answer, tokens):
                return answer
            trace.outcome, least = "unusable", LONGER * tokens

    async def _persist(self, call: Call[A], trace: CallTrace, formatted: bool, least: int, name: str) -> tuple[A, int]:
        found: tuple[A, int] = await self._retries.copy()(self._attempt, call, trace, formatted, least, name)
        return found

    async def _attempt(self, call: Call[A], trace: CallTrace, formatted: bool, least: int, name: str) -> tuple[A, int]:
        """Return the answer, and the token limit that raggs sent with the call; 0 if raggs added no limit.

        Args:
            call: the call.
            trace: records the usage.
            formatted: whether to request structured output.
            least: minimum answer length to reserve in tokens, after an answer was cut off; otherwise 0.
            name: name of the limit's parameter at the server; empty if the server accepts no limit.
        """
        throttle, tokens = self._throttle(call.model), call.prompt_tokens + self.expected(call)
        tickets = await throttle.turn(tokens)
        if self._closing:
            raise asyncio.CancelledError
        price = self.price(call.model)
        unsure = call.model if call.answer_tokens(1) else ""  # if answer tokens are free, the cost is known in advance
        call.prepare(self._settings)
        reserved = await self.budget.reserve(lambda: self.cost(call, price, least), unsure)
        limit = self.limit(call, reserved, name)
        spent, sent, task = 0.0, False, asyncio.current_task()
        self._on_their_way.add(task)
        try:
            trace.intend(reserved.usd)
            sent = True
            with trace.attempt():
                answer = await call.send(self._settings, formatted=formatted, limit=limit)
            throttle.answered(tickets, answer.headers, tokens)
            spent = self.account(call.model, answer, price, trace)
            self.learn_length(call.model, answer, reserved)
            return answer, reserved.tokens if limit else 0
        except StoppedUnsent:
            sent = False
            trace.unsent()
            raise
        except asyncio.CancelledError:
            spent = trace.perhaps(reserved.usd)
            raise
        except Fault as fault:
            throttle.refused(tickets, fault, tokens)
            spent = trace.perhaps(reserved.usd) if fault.billable else 0.0
            if fault.rule in UNSENT:
                sent = False
                trace.unsent()
            if fault.treatment is Treatment.RETRY and (wait_s := fault.retry_after_s or 0) > self._settings.max_wait_s:
                raise rate.too_long(call.model, wait_s) from None
            raise
        finally:
            self._on_their_way.discard(task)
            self.budget.settle(reserved, spent, sent=sent)

    # --- the length of answers ---

    def expected(self, call: Call[A]) -> int:
        """Return the likely number of answer tokens, or the user's limit."""
        return call.answer_tokens(self._longest.get(call.model, 0))

    def longest_allowed(self, call: Call[A]) -> int:
        """Return the maximum answer length in tokens that the user or the model allows; a default if neither is
        known.
        """
        known = call.own_limit or longest_answer(call.model)
        return known or max(LONGEST_ANSWER, self._longest.get(call.model, 0))

    def cost(self, call: Call[A], price: Price, least: int = 0, room: int = ANSWER_LENGTH_FACTOR) -> Cost:
        """Return the cost of a call in USD, and the allowed length of its answer.

        Args:
            call: the call.
            price: price of the model.
            least: minimum answer length to reserve in tokens, after an answer was cut off; otherwise 0.
            room: allowed length as a multiple of the likely length, if USD are limited.
        """
        sent = call.most_usd(price, 0)
        token = call.most_usd(price, 1) - sent
        if not token or not call.answer_tokens(1):
            return Cost(sent)
        if not self._capped:
            return Cost(sent, token, self.expected(call), self.expected(call))
        likely = max(least, call.likely_tokens(self._longest.get(call.model, 0)))
        if call.model in self._unlimited:
            return Cost(sent, token, likely, room * likely)
        most = self.longest_allowed(call)
        return Cost(sent, token, min(likely, most), call.own_limit or min(room * likely, most))

    def limit(self, call: Call[A], reserved: Reservation, name: str) -> dict[str, int]:
        """Return the parameter that limits an answer to its reservation. It is empty if the user's own limit suffices,
        if USD are not limited, if answers are free, or if the server accepts no limit.
        """
        name = call.own_limit_name or name
        ours = self._capped and reserved.tokens and reserved.tokens != call.own_limit
        return {name: reserved.tokens} if ours and name else {}

    def limit_name(self, model: str) -> str:
        """Return the name of the parameter that limits answers at the server of a model; empty if the server accepts
        none.
        """
        return LIMIT_NAMES[self._limits.get(model, 0)]

    def other_limit(self, model: str, name: str) -> str:
        """Return the parameter name to try next, after a model's server rejected a limit with name `name`."""
        following = LIMIT_NAMES.index(name) + 1
        self._refusals[model] += 1
        if self._refusals[model] >= REFUSALS:
            self._limits[model] = max(self._limits.get(model, 0), following)
        return LIMIT_NAMES[following]

    def learn_length(self, model: str, answer: ProviderResponse, reserved: Reservation) -> None:
        """Record a model whose answer exceeded the limit."""
        if self._capped and reserved.tokens and (answer.completion_tokens or 0) > reserved.tokens:
            self._unlimited.add(model)

    def cut_short(self, call: Call[A], answer: ProviderResponse, tokens: int) -> bool:
        """Return whether our limit of `tokens` cut an answer off, and a higher limit is allowed."""
        ours = 0 < tokens <= (answer.completion_tokens or 0) and tokens < self.longest_allowed(call)
        return ours and answer.cut_off

    def account(self, model: str, answer: ProviderResponse, price: Price, trace: CallTrace) -> float:
        """Record the usage of an answer and return its cost in USD."""
        sent, received, prefix = answer.prompt_tokens or 0, answer.completion_tokens or 0, answer.prefix
        less = price.discount(prefix.cached, prefix.written)
        usd = max(0.0, price.usd(sent, received, answer.searches) - less)
        trace.searches += answer.searches
        trace.answerer = answer.by
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
        """Return the concurrency slots that all models share, or the slots of this model if it has its own limit."""
        own = self._settings.of(model).concurrency
        if own is not None and model not in self._own_slots:
            self._own_slots[model] = asyncio.Semaphore(own)
        return self._slots if own is None else self._own_slots[model]

    def _be_in_this_loop(self) -> None:
        """Create new locks if the event loop has changed. Learned rates are discarded with the old loop."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._slots = loop, asyncio.Semaphore(self._settings.concurrency)
            self._own_slots.clear()
            self._throttles.clear()
