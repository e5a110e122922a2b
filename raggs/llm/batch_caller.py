"""Calls that a batch answers: the same questions, checks and budget as direct calls, at the batch's price.

Stands where `raggs.llm.caller.Caller` stands in a conversation. A line that failed goes into the next batch, up to
`rounds` times, or to direct calls if the user wants them.
"""

from __future__ import annotations

from contextlib import suppress

from raggs.errors import BudgetError
from raggs.hashing import hash_value
from raggs.llm.answers import Unusable, read_completion
from raggs.llm.batch_api import ENDPOINT, BatchAPI
from raggs.llm.batch_lines import line_of
from raggs.llm.batches import Batches, Progress
from raggs.llm.cache import AnswerCache, Entry
from raggs.llm.caller import Call, Caller
from raggs.llm.faults import Fault, Treatment
from raggs.llm.messages import Usage
from raggs.llm.outage import Outage
from raggs.llm.provider import Completion
from raggs.llm.settings import BatchSettings, LLMSettings, Price

FOLDER = "batches"


class BatchCaller:
    """Asks by batches.

    Args:
        direct: whose ledger and counts are shared, and who is asked where batches fail.
        api: the provider's endpoints.
        cache: of answers; batches are noted in a folder beside it.
        settings, llm: how to ask by batches, and at all.
        progress: hears of batches.
    """

    def __init__(
        self,
        direct: Caller,
        api: BatchAPI,
        cache: AnswerCache,
        settings: BatchSettings,
        llm: LLMSettings,
        progress: Progress,
    ) -> None:
        self.outage = Outage(llm.outage_after)
        self._direct = direct
        self._api = api
        self._cache = cache
        self._settings = settings
        folder = cache.folder / FOLDER / hash_value([api.model, api.address])[:16]
        self._batches = Batches(api, folder, settings, llm.max_attempts, progress, self._spare)
        self._answered: set[str] = set()

    def price(self, model: str) -> Price:
        """What a batch charges for `model` (see `Caller.price` for the errors)."""
        return self._direct.price(model).times(self._settings.price)

    async def call(self, call: Call) -> Completion:
        """One answer, with tokens told or estimated.

        Raises:
            Fault: no batch answered, and no direct call.
            BudgetError, ConfigError: as `Caller.call`.
        """
        direct = self._settings.fallback == "direct"
        if direct and call.key in self._answered:
            return await self._direct.call(call)
        for left in reversed(range(1 if direct else self._settings.rounds)):
            try:
                return await self._once(call)
            except Fault as fault:
                if fault.treatment is not Treatment.RETRY or (left == 0 and not direct):
                    raise
        return await self._direct.call(call)

    async def _reserve(self, usd: float) -> None:
        """A budget that is used up stops the run, but not before it has what the budget was enough for."""
        try:
            await self._direct.ledger.reserve(usd)
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
        call = Call(self._api.model, (), {}, {}, 0)
        completion = self._direct.measured(call, completion)
        sent, received = completion.prompt_tokens or 0, completion.completion_tokens or 0
        usd = self.price(call.model).usd(sent, received)
        self._direct.used += Usage(calls=1, prompt_tokens=sent, completion_tokens=received, usd=usd)
        with suppress(Unusable):
            read_completion(completion, lambda answer: answer)
            if self._cache.get(key) is None:
                self._cache.put(key, Entry(completion.content, call.model, sent, received, usd))

    async def _once(self, call: Call) -> Completion:
        """One batch. Money is set aside, unless an earlier invocation sent the question and so promised it."""
        price, direct = self.price(call.model), self._direct
        promised = await self._batches.holds(call.key)
        reserved, spent = price.usd(call.prompt_tokens(), direct.expected(call)), 0.0
        if not promised:
            await self._reserve(reserved)
        try:
            line = line_of(call, ENDPOINT, own_server=self._api.address is not None)
            completion = direct.measured(call, await self._batches.answer(call.key, line))
            self._answered.add(call.key)
            sent, received = completion.prompt_tokens or 0, completion.completion_tokens or 0
            spent = price.usd(sent, received)
            direct.used += Usage(calls=1, prompt_tokens=sent, completion_tokens=received, usd=spent)
            return completion
        except Fault:
            direct.used += Usage(calls=1)
            raise
        finally:
            if not promised:
                direct.ledger.settle(reserved, spent)
