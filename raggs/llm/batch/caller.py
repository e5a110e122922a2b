"""Calls that a batch answers: the same questions, checks, budget and ledger as direct calls, at the batch's price.

Stands where `raggs.llm.caller.Caller` stands in a conversation. A line that failed goes into the next batch, up to
`rounds` times, or to direct calls if the user wants them. A line is counted and booked when its batch has answered,
by whichever invocation waits for it then.
"""

from __future__ import annotations

import time
from contextlib import suppress

from raggs.errors import BudgetError
from raggs.hashing import hash_value
from raggs.llm import rate
from raggs.llm.batch.api import BatchAPI
from raggs.llm.batch.journal import BATCHES
from raggs.llm.batch.queue import BatchQueue, Progress
from raggs.llm.cache import AnswerCache, CachedAnswer
from raggs.llm.caller import Caller
from raggs.llm.calls import ChatCall, Completion
from raggs.llm.conversation import Unusable, read_completion
from raggs.llm.faults import Fault, Outage, Treatment
from raggs.llm.ledger import CallLedger, Trace
from raggs.llm.prefixes import unmark
from raggs.llm.prices import address_of
from raggs.llm.settings import BatchSettings, LLMSettings, Price

TASK = "batch"


class BatchCaller:
    """Asks by batches.

    Args:
        model: who is asked.
        direct: whose budget and prices are shared, and who is asked where batches fail.
        cache: of answers; batches are noted in a folder beside it.
        ledger: where answers are booked that nobody waits for.
        settings, llm: how to ask by batches, and at all.
        progress: hears of batches.
    """

    def __init__(
        self,
        model: str,
        direct: Caller,
        cache: AnswerCache,
        ledger: CallLedger,
        settings: BatchSettings,
        llm: LLMSettings,
        progress: Progress,
    ) -> None:
        self._outage = Outage(llm.outage_after)
        self._direct = direct
        self._api = BatchAPI(model, address_of(model, llm.base_of(model)), llm.timeout_s, llm.of(model).api_key_env)
        self._cache = cache
        self._ledger = ledger
        self._settings = settings
        folder = cache.folder / BATCHES / hash_value([model, self._api.address])[:16]
        self._queue = BatchQueue(
            self._api,
            folder,
            settings,
            rate.retrying(llm.max_attempts, llm.backoff_s, llm.max_wait_s),
            progress,
            self._spare,
        )
        self._answered: set[str] = set()

    def price(self, model: str) -> Price:
        """What a batch charges for `model` (see `Caller.price` for the errors)."""
        return self._direct.price(model).times(self._settings.price)

    async def call(self, call: ChatCall, trace: Trace) -> Completion:
        """One answer, with tokens told or estimated; `trace` learns what it took.

        Raises:
            Fault: no batch answered, and no direct call.
            BudgetError, ConfigError: as `Caller.call`.
        """
        direct = self._settings.fallback == "direct"
        if direct and call.key in self._answered:
            return await self._direct.call(call, trace)
        with self._outage.watch():
            for left in reversed(range(1 if direct else self._settings.rounds)):
                try:
                    return await self._understood(call, trace)
                except Fault as fault:
                    if fault.treatment is not Treatment.RETRY or (left == 0 and not direct):
                        raise
        return await self._direct.call(call, trace)

    async def _reserve(self, usd: float) -> None:
        """A budget that is used up stops the run, but not before it has what the budget was enough for."""
        try:
            await self._direct.budget.reserve(usd)
        except BudgetError:
            await self._queue.drained()
            raise

    def forget(self, key: str) -> None:
        """The answer to `key` is kept, or there will be none."""
        self._queue.forget(key)

    async def close(self) -> None:
        """Stop waiting; the next invocation goes on."""
        await self._queue.close()

    def _spare(self, key: str, completion: Completion) -> None:
        """Keep an answer that nobody waits for; whoever asks for it later checks it then."""
        model = self._api.model
        completion = ChatCall(model, {}, (), {}, 0).measured(completion)
        with self._ledger.call(self._ledger.account(""), model, TASK) as trace:
            self._count(completion, trace, waited_s=0)
            trace.outcome = "unusable"
            with suppress(Unusable):
                read_completion(completion, lambda answer: answer)
                trace.outcome = "answered"
                if self._cache.get(key) is None:
                    self._cache.put(key, CachedAnswer.of(completion.content, model, trace.spent))

    async def _understood(self, call: ChatCall, trace: Trace) -> Completion:
        """One batch; and another, without marks, where the provider refuses them."""
        try:
            return await self._once(call, trace)
        except Fault as fault:
            if not fault.about_marks:
                raise
            unmark(call.model)
            return await self._once(call, trace)

    async def _once(self, call: ChatCall, trace: Trace) -> Completion:
        """One batch. Money is set aside, unless an earlier invocation sent the question and so promised it."""
        budget, began = self._direct.budget, time.perf_counter()
        promised = await self._queue.holds(call.key)
        reserved, spent = call.most_usd(self.price(call.model), self._direct.expected(call)), 0.0
        if not promised:
            await self._reserve(reserved)
        try:
            completion = call.measured(await self._queue.answer(call.key, self._api.line(call)))
            self._answered.add(call.key)
            spent = self._count(completion, trace, time.perf_counter() - began)
            return completion
        except Fault as fault:
            if fault.treatment is not Treatment.STOP:
                self._count(None, trace, time.perf_counter() - began)
            raise
        finally:
            if not promised:
                budget.settle(reserved, spent)
            elif call.key in self._answered:
                budget.spend(spent)

    def _count(self, completion: Completion | None, trace: Trace, waited_s: float) -> float:
        """Note that a line was answered, if only by an error; returns its cost in USD."""
        trace.batched(waited_s)
        model = self._api.model
        return 0.0 if completion is None else self._direct.account(model, completion, self.price(model), trace)
