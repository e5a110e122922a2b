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
from raggs.llm.answers import Unusable, read_completion
from raggs.llm.batch_api import ENDPOINT, BatchAPI
from raggs.llm.batch_lines import line_of
from raggs.llm.batches import Batches, Progress
from raggs.llm.cache import AnswerCache, Entry
from raggs.llm.caller import Caller
from raggs.llm.calls import ChatCall
from raggs.llm.faults import Fault, Treatment
from raggs.llm.ledger import CallLedger, Trace, ask_for
from raggs.llm.messages import Usage
from raggs.llm.outage import Outage
from raggs.llm.provider import Completion
from raggs.llm.settings import BatchSettings, LLMSettings, Price

FOLDER = "batches"
TASK = "batch"


class BatchCaller:
    """Asks by batches.

    Args:
        direct: whose purse and counts are shared, and who is asked where batches fail.
        api: the provider's endpoints.
        cache: of answers; batches are noted in a folder beside it.
        ledger: where answers are booked that nobody waits for.
        settings, llm: how to ask by batches, and at all.
        progress: hears of batches.
    """

    def __init__(
        self,
        direct: Caller,
        api: BatchAPI,
        cache: AnswerCache,
        ledger: CallLedger,
        settings: BatchSettings,
        llm: LLMSettings,
        progress: Progress,
    ) -> None:
        self._outage = Outage(llm.outage_after)
        self._direct = direct
        self._api = api
        self._cache = cache
        self._ledger = ledger
        self._settings = settings
        folder = cache.folder / FOLDER / hash_value([api.model, api.address])[:16]
        self._batches = Batches(api, folder, settings, llm.max_attempts, progress, self._spare)
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
                    return await self._once(call, trace)
                except Fault as fault:
                    if fault.treatment is not Treatment.RETRY or (left == 0 and not direct):
                        raise
        return await self._direct.call(call, trace)

    async def _reserve(self, usd: float) -> None:
        """A budget that is used up stops the run, but not before it has what the budget was enough for."""
        try:
            await self._direct.purse.reserve(usd)
        except BudgetError:
            await self._batches.drained()
            raise

    def forget(self, key: str) -> None:
        """The answer to `key` is kept, or there will be none."""
        self._batches.forget(key)

    async def close(self) -> None:
        await self._batches.close()

    def _spare(self, key: str, completion: Completion) -> None:
        """Keep an answer that nobody waits for; whoever asks for it later checks it then."""
        ask_for("")  # a batch is followed by the task of whoever asked first, which may have asked on another query
        model = self._api.model
        completion = ChatCall(model, {}, (), {}, 0).measured(completion)
        with self._ledger.call(model, TASK) as trace:
            self._count(completion, trace, waited_s=0)
            trace.outcome = "unusable"
            with suppress(Unusable):
                read_completion(completion, lambda answer: answer)
                trace.outcome = "answered"
                if self._cache.get(key) is None:
                    used = trace.used
                    entry = Entry(completion.content, model, used.prompt_tokens, used.completion_tokens, used.usd)
                    self._cache.put(key, entry)

    async def _once(self, call: ChatCall, trace: Trace) -> Completion:
        """One batch. Money is set aside, unless an earlier invocation sent the question and so promised it."""
        purse, began = self._direct.purse, time.perf_counter()
        promised = await self._batches.holds(call.key)
        reserved, spent = self.price(call.model).usd(call.prompt_tokens, self._direct.expected(call)), 0.0
        if not promised:
            await self._reserve(reserved)
        try:
            line = line_of(call, ENDPOINT, own_server=self._api.address is not None)
            completion = call.measured(await self._batches.answer(call.key, line))
            self._answered.add(call.key)
            spent = self._count(completion, trace, time.perf_counter() - began)
            return completion
        except Fault as fault:
            if fault.treatment is not Treatment.STOP:
                self._count(None, trace, time.perf_counter() - began)
            raise
        finally:
            if not promised:
                purse.settle(reserved, spent)

    def _count(self, completion: Completion | None, trace: Trace, waited_s: float) -> float:
        """Note that a line was answered, if only by an error; returns its cost in USD."""
        self._direct.used += Usage(calls=1)
        trace.add(waited_s)
        model = self._api.model
        return 0.0 if completion is None else self._direct.account(model, completion, self.price(model), trace)
