"""Calls that get through: rate, concurrency, budget, retries. One `Caller` serves all questions of an invocation.

Order of the gates: a slot (held through all retries of a call, so that a struggling provider is asked less), then
for each attempt the rate, then the budget, so that money is not reserved while waiting. Slots and turns are given in
the order in which they are asked for, so that no query and no stage starves.

Where USD are limited, each call is sent with a limit of tokens that its reservation pays for. An answer that ends at
that limit is asked for again with a longer one, as long as there is money for it: it is no answer of the model.

A call that is on its way is paid for, so it goes on when its asker is cancelled, and `drain` waits for it; one that
still waits for its turn is not made.
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
ANSWER_LENGTH_FACTOR = 4  # times the longest answer so far that an answer may have
LONGER = 4  # times the length at which an answer was cut off
LONGEST_ANSWER = 65_536  # tokens, of a model of which nothing is known
REFUSALS = 3  # of a limit, until a model is not sent it any more
LIMIT_NAMES = ("max_tokens", "max_completion_tokens", "")  # as servers take them, the usual name first


class Caller:
    """Makes calls.

    Args:
        earlier: what the run had spent before this invocation.
        unknown: the part of it that is possibly billed.
        tell: hears what a user should know.

    Attributes:
        budget: what was spent and promised.
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
        self._limits: dict[str, int] = {}  # by model: the place in `LIMIT_NAMES` of the name that its server takes
        self._refusals: Counter[str] = Counter()  # of limits, by model
        self._unlimited: set[str] = set()  # models whose answers were longer than the limit that was sent

    def price(self, model: str) -> Price:
        """The price of `model`; zero where it is unknown and money is not limited.

        Raises:
            ConfigError: unknown, and a limit could not be kept.
        """
        if model not in self._prices:
            known = self._settings.price_of(model) or list_price(model)
            if known is None and self._capped:
                wanted = f'llm.prices: {{"{model}": {{input: ..., output: ...}}}}'
                near = None if self._settings.base_of(model) else nearest_model(model)
                meant = "" if near is None else f"write {near} if you meant that, or "
                raise ConfigError(
                    f"the price of {model} is not known, so budget.max_usd cannot be kept: "
                    "litellm's list has no model of that name",
                    remedy=f"{meant}set {wanted} in USD per 1M tokens, or budget.max_usd: null",
                )
            self._prices[model] = known or ZERO_PRICE
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

    @contextmanager
    def storing(self) -> Iterator[None]:
        """The block stores an answer that was paid for; if that fails, no further call leaves."""
        try:
            yield
        except RaggsError as error:
            self.budget.close(error)
            raise

    async def call(self, call: Call[A], trace: CallTrace) -> A:
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

    async def _ask(self, call: Call[A], trace: CallTrace) -> A:
        """The answer, without what the server does not know: structured output, marks on prompts, a name of the limit.

        Raises:
            BudgetSpent: also where the money is not enough for an answer that was cut off for want of money.
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
        """The answer, and the limit of tokens that was sent with the call, 0 if there was none but the user's.

        Args:
            least: tokens below which an answer was cut off before.
            name: of the limit, as the server takes it; empty if it takes none.
        """
        throttle, tokens = self._throttle(call.model), call.prompt_tokens + self.expected(call)
        tickets = await throttle.turn(tokens)
        if self._closing:
            raise asyncio.CancelledError
        price = self.price(call.model)
        unsure = call.model if call.answer_tokens(1) else ""  # where no answer is charged for, the price is known
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
        """Tokens that the answer is likely to have, or the user's limit."""
        return call.answer_tokens(self._longest.get(call.model, 0))

    def longest_allowed(self, call: Call[A]) -> int:
        """Tokens of the longest answer that the user or the model allows."""
        known = call.own_limit or longest_answer(call.model)
        return known or max(LONGEST_ANSWER, self._longest.get(call.model, 0))

    def cost(self, call: Call[A], price: Price, least: int = 0, room: int = ANSWER_LENGTH_FACTOR) -> Cost:
        """USD of a call, and how long its answer may be.

        Args:
            least: tokens below which an answer was cut off before.
            room: how many times the likely length it may have.
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
        """The parameter that ends an answer where the money for it ends; empty if the user's own does that."""
        name = call.own_limit_name or name
        ours = self._capped and reserved.tokens and reserved.tokens != call.own_limit
        return {name: reserved.tokens} if ours and name else {}

    def limit_name(self, model: str) -> str:
        """How the server of a model calls the limit of an answer; empty if it takes none."""
        return LIMIT_NAMES[self._limits.get(model, 0)]

    def other_limit(self, model: str, name: str) -> str:
        """The next name to try, as the server of a model refuses a limit of this one, for its name or its size."""
        following = LIMIT_NAMES.index(name) + 1
        self._refusals[model] += 1
        if self._refusals[model] >= REFUSALS:
            self._limits[model] = max(self._limits.get(model, 0), following)
        return LIMIT_NAMES[following]

    def learn_length(self, model: str, answer: ProviderResponse, reserved: Reservation) -> None:
        """Take note of an answer that is longer than it was allowed."""
        if self._capped and reserved.tokens and (answer.completion_tokens or 0) > reserved.tokens:
            self._unlimited.add(model)

    def cut_short(self, call: Call[A], answer: ProviderResponse, tokens: int) -> bool:
        """Whether an answer ended at the limit of `tokens` that was sent for want of money, and may be longer."""
        ours = 0 < tokens <= (answer.completion_tokens or 0) and tokens < self.longest_allowed(call)
        return ours and answer.cut_off

    def account(self, model: str, answer: ProviderResponse, price: Price, trace: CallTrace) -> float:
        """Note what an answer took; returns its cost in USD."""
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
