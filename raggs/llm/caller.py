"""Calls that get through: rate, concurrency, budget, retries. One `Caller` serves all questions of an invocation.

Order of the gates: a slot (held through all retries of a call, so that a struggling provider is asked less), then
for each attempt the rate, then the budget, so that money is not reserved while waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from raggs.errors import ConfigError
from raggs.llm import provider, rate
from raggs.llm.budget import Ledger
from raggs.llm.faults import Fault
from raggs.llm.messages import Message, Usage
from raggs.llm.outage import Outage
from raggs.llm.prices import list_price
from raggs.llm.provider import Completion
from raggs.llm.settings import BudgetSettings, LLMSettings, Price
from raggs.llm.tokens import estimate_tokens

LIMITS = ("max_completion_tokens", "max_tokens")  # how parameters name the longest answer
FREE = Price(input=0, output=0)


@dataclass(frozen=True)
class Call:
    """What is sent. `expected_tokens`: the likely length of the answer, for the budget; `key`: of the answer, for
    batches."""

    model: str
    messages: Sequence[Message]
    parameters: Mapping[str, Any]
    response_format: Mapping[str, Any]
    expected_tokens: int
    key: str = ""

    def prompt_tokens(self) -> int:
        """An estimate of what is sent."""
        contents = sum(estimate_tokens(message["content"]) for message in self.messages)
        return contents + estimate_tokens(str(self.response_format))


class Caller:
    """Makes calls.

    Attributes:
        used: calls, tokens and money so far.
        on_their_way: the tasks that wait for a provider's answer.
        closing: whether no more calls are to be made; a task that wants one is cancelled.
        outage: whether the provider is there at all.
        ledger: what was spent and promised.
    """

    def __init__(self, settings: LLMSettings, budget: BudgetSettings) -> None:
        self.used = Usage()
        self.on_their_way: set[asyncio.Task[Any] | None] = set()
        self.closing = False
        self.outage = Outage(settings.outage_after)
        self._settings = settings
        self._capped = budget.max_usd is not None
        self.ledger = Ledger(budget)
        self._gates: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore, AbstractAsyncContextManager[None]] | None = (
            None
        )
        self._without_format: set[str] = set()  # models whose server does not know structured output
        self._longest: dict[str, int] = {}  # tokens of the longest answer so far, by model

    def price(self, model: str) -> Price:
        """The price of `model`; zero where it is unknown and money is not limited.

        Raises:
            ConfigError: unknown, and a limit could not be kept.
        """
        known = self._settings.prices.get(model) or list_price(model)
        if known is None and self._capped:
            wanted = f'llm.prices: {{"{model}": {{input: ..., output: ...}}}}'
            raise ConfigError(
                f"the price of {model} is not known, so budget.max_usd cannot be kept",
                remedy=f"set {wanted} in USD per 1M tokens, or budget.max_usd: null",
            )
        return known or FREE

    async def call(self, call: Call) -> Completion:
        """One answer, with tokens told or estimated.

        Raises:
            Fault: the provider failed to the end.
            BudgetError: no calls or no money left.
            ConfigError: the price is needed and unknown.
        """
        self.price(call.model)
        slots, gate = self._in_this_loop()
        async with slots:
            formatted = call.model not in self._without_format
            try:
                return await self._persist(call, gate, formatted)
            except Fault as fault:
                if not (formatted and fault.about_format):
                    raise
                self._without_format.add(call.model)
                return await self._persist(call, gate, formatted=False)

    async def _persist(self, call: Call, gate: AbstractAsyncContextManager[None], formatted: bool) -> Completion:
        attempts = AsyncRetrying(
            retry=retry_if_exception(rate.worth_retrying),
            stop=stop_after_attempt(self._settings.max_attempts),
            wait=rate.pause_s,
            reraise=True,
        )
        return await attempts(self._attempt, call, gate, formatted)

    async def _attempt(self, call: Call, gate: AbstractAsyncContextManager[None], formatted: bool) -> Completion:
        async with gate:
            pass
        if self.closing:
            raise asyncio.CancelledError
        price = self.price(call.model)
        reserved = price.usd(call.prompt_tokens(), self.expected(call))
        await self.ledger.reserve(reserved)
        self.used += Usage(calls=1)
        spent, task = 0.0, asyncio.current_task()
        self.on_their_way.add(task)
        try:
            completion = self.measured(call, await self._ask(call, formatted))
            sent, received = completion.prompt_tokens or 0, completion.completion_tokens or 0
            spent = price.usd(sent, received)
            self.used += Usage(prompt_tokens=sent, completion_tokens=received, usd=spent)
            self._longest[call.model] = max(received, self._longest.get(call.model, 0))
            return completion
        finally:
            self.on_their_way.discard(task)
            self.ledger.settle(reserved, spent)

    async def _ask(self, call: Call, formatted: bool) -> Completion:
        settings = self._settings
        form = {"response_format": call.response_format} if formatted else {}
        return await provider.complete(
            call.model, call.messages, {**call.parameters, **form}, settings.api_base, settings.timeout_s
        )

    def expected(self, call: Call) -> int:
        """Tokens to reserve for the answer: the limit where one is sent, else the longest that was seen or foreseen."""
        limits = [call.parameters[name] for name in LIMITS if isinstance(call.parameters.get(name), int)]
        return int(limits[0]) if limits else max(call.expected_tokens, self._longest.get(call.model, 0))

    @staticmethod
    def measured(call: Call, completion: Completion) -> Completion:
        """With estimates where the server did not count."""
        return replace(
            completion,
            prompt_tokens=completion.prompt_tokens or call.prompt_tokens(),
            completion_tokens=completion.completion_tokens or estimate_tokens(completion.content),
        )

    def _in_this_loop(self) -> tuple[asyncio.Semaphore, AbstractAsyncContextManager[None]]:
        loop = asyncio.get_running_loop()
        if self._gates is None or self._gates[0] is not loop:
            concurrency, limit = self._settings.concurrency, self._settings.requests_per_minute
            gate = nullcontext() if limit is None else rate.limiter(limit, concurrency)
            self._gates = (loop, asyncio.Semaphore(concurrency), gate)
        return self._gates[1], self._gates[2]
