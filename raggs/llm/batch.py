"""Calls through batches, with the same requests, checks, budget and ledger as direct calls, but batch prices.

`BatchCaller` replaces `raggs.llm.caller.Caller` in a conversation. A line is one request in a batch. A line whose
failure may be temporary goes into the next batch, for at most `rounds` batches, or to a direct call if `fallback` is
`direct`. Other failures are final. The invocation that receives the batch's answers counts and books the line. Until
then, the line counts as possibly billed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from raggs.base.errors import BudgetError
from raggs.base.hashing import hash_value
from raggs.llm import rate
from raggs.llm.batch_api import BATCHES, BatchAPI, BatchQueue, Progress
from raggs.llm.budget import Reservation
from raggs.llm.cache import AnswerCache, CachedAnswer
from raggs.llm.caller import ANSWER_LENGTH_FACTOR, LONGER, Caller
from raggs.llm.calls import Call, ChatCall, Completion
from raggs.llm.conversation import Unusable, read_completion
from raggs.llm.faults import Fault, Outage, Treatment
from raggs.llm.ledger import CallLedger, CallTrace
from raggs.llm.messages import unmark
from raggs.llm.prices import address_of, reasons
from raggs.llm.settings import BatchSettings, LLMSettings, Price

TASK = "batch"


class BatchCaller:
    """Send calls in batches.

    Args:
        model: the model to call.
        direct: caller whose budget and prices are shared, and that makes direct calls if batches fail.
        cache: cache of answers; batch journals are stored inside its folder.
        ledger: books answers that no caller waits for.
        settings: settings of batches.
        llm: settings of language models.
        progress: progress callback for batches.
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
            self._intend,
            self._never_sent,
        )
        self._answered: set[str] = set()
        self._asked: dict[str, tuple[CallTrace, float]] = {}  # by answer key: trace of the call, reserved USD
        self._intents: dict[str, int] = {}  # by answer key: ledger numbers of lines that were sent and not answered

    def price(self, model: str) -> Price:
        """Return the batch price of `model` (see `Caller.price` for the errors)."""
        return self._direct.price(model).times(self._settings.price)

    async def call(self, call: Call[Completion], trace: CallTrace) -> Completion:
        """Return one answer, with counted or estimated tokens. The usage is recorded in `trace`. Batches contain only
        chat calls; other calls are made directly.

        Raises:
            Fault: all attempts failed, or one failed with an error that is not worth another attempt.
            BudgetError, ConfigError: see `Caller.call`.
            BusyError, ProviderError: the journal of batches cannot be used.
        """
        if not isinstance(call, ChatCall):
            return await self._direct.call(call, trace)
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

    async def _reserve(self, call: ChatCall, least: int) -> Reservation:
        """Reserve the cost of a line.

        Raises:
            BudgetError: the budget is used up. It is raised only after the batches in flight have ended.
        """
        direct, price = self._direct, self.price(call.model)
        room = (
            ANSWER_LENGTH_FACTOR if least or reasons(call.model, call.parameters) else 1
        )  # all lines are in flight together
        try:
            return await direct.budget.reserve(lambda: direct.cost(call, price, least, room))
        except BudgetError:
            await self._queue.drained()
            raise

    def forget(self, key: str) -> None:
        """Remove `key` from its batch: its answer is cached, or there will be none."""
        self._queue.forget(key)

    async def close(self) -> None:
        """Stop polling. The next invocation continues."""
        await self._queue.close()

    def _intend(self, keys: Sequence[str]) -> None:
        """Record on disk which lines are about to be sent."""
        traces, usd = zip(*(self._asked[key] for key in keys), strict=True)
        self._intents.update(zip(keys, self._ledger.intend(traces, usd, keys), strict=False))

    def _never_sent(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._ledger.never_sent(key)

    def _spare(self, key: str, completion: Completion) -> None:
        """Book an answer that no caller waits for. If it is a JSON object or has log-probabilities, and no answer is
        cached, cache it. Its content is checked when a later request needs it.
        """
        model, payer = self._api.model, self._ledger.payer
        completion, ours = ChatCall(model, {}, (), {}, 0).measured(completion), key in self._intents
        with self._ledger.call(self._ledger.account(""), model, TASK) as trace:
            usd = self._count(key, completion, trace, waited_s=0)
            if not ours:  # lines of this invocation were counted when their callers left
                self._direct.budget.spend(usd)
            trace.outcome = "unusable"
            with suppress(Unusable):
                # The text of an answer to a request with log-probabilities is not a JSON object.
                free = bool(completion.alternatives) and not completion.content.lstrip().startswith(("{", "`"))
                content = completion.content_with_alternatives if free else completion.content
                read_completion(completion, lambda answer: answer, logprobs=free)
                trace.outcome = "answered"
                if self._cache.get(key) is None:
                    answer = CachedAnswer.of(content, model, trace.spent, None, completion.by, payer)
                    self._cache.put(key, answer)

    async def _understood(self, call: ChatCall, trace: CallTrace) -> Completion:
        """Return the answer. The request goes into another batch in two cases: the provider rejected cache marks or the
        name of the token limit, or our token limit cut the answer off.

        Raises:
            BudgetSpent: the budget is used up, or does not cover a longer answer.
        """
        least, name = 0, self._direct.limit_name(call.model)
        while True:
            try:
                completion, tokens = await self._once(call, trace, least, name)
            except Fault as fault:
                if fault.about_marks:
                    unmark(call.model)
                elif fault.about_limit and name and name != call.own_limit_name:
                    name = self._direct.other_limit(call.model, name)
                else:
                    raise
                continue
            if not self._direct.cut_short(call, completion, tokens):
                return completion
            trace.outcome, least = "unusable", LONGER * tokens

    async def _once(self, call: ChatCall, trace: CallTrace, least: int, name: str) -> tuple[Completion, int]:
        """Return the answer of one batch. Reserve the cost first, unless a sent batch already contains the request.

        Returns:
            The answer, and the token limit that raggs sent with the request; 0 if raggs added no limit.
        """
        began, reserved, limit = time.perf_counter(), None, {}
        spent, counted = 0.0, False
        if not await self._queue.holds(call.key):
            reserved = await self._reserve(call, least)
            limit = self._direct.limit(call, reserved, name)
            self._asked[call.key] = trace, reserved.usd
        line = self._api.line(replace(call, parameters={**call.parameters, **limit}))
        try:
            completion = call.measured(await self._queue.answer(call.key, line))
            self._answered.add(call.key)
            counted = True
            spent = self._count(call.key, completion, trace, time.perf_counter() - began)
            if reserved is not None:
                self._direct.learn_length(call.model, completion, reserved)
            return completion, reserved.tokens if reserved and limit else 0
        except Fault as fault:
            if fault.treatment is not Treatment.STOP:
                counted = True
                self._count(call.key, None, trace, time.perf_counter() - began)
            raise
        finally:
            if reserved is not None:
                sent = call.key in self._intents  # the line was sent and may still be answered
                self._direct.budget.settle(reserved, reserved.usd if sent else spent)
            elif counted:
                self._direct.budget.spend(spent)

    def _count(self, key: str, completion: Completion | None, trace: CallTrace, waited_s: float) -> float:
        """Record that a line was answered, possibly by an error, and return its cost in USD."""
        if (number := self._intents.pop(key, None)) is not None:
            trace.intents.append(number)
        else:
            trace.fetched(key)
        trace.batched(waited_s)
        model = self._api.model
        return 0.0 if completion is None else self._direct.account(model, completion, self.price(model), trace)
