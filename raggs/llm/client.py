"""The one door to language models: a question in, a checked value out, paid for once.

Invariants: a failure is never a value and is never cached; a cached answer is checked again when it is read; the
same question asked twice at once is sent once. What is no answer of the model (a cap reached, a key refused, an
unknown model) is raised; all else is told in the reply, and the run goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from raggs.errors import ConfigError
from raggs.hashing import hash_value
from raggs.llm.ledger import CallLedger
from raggs.llm.messages import EmbedRequest, Reply, Request, Usage
from raggs.llm.prices import address_of, list_price, provider_of
from raggs.llm.settings import BatchSettings, BudgetSettings, LLMSettings, Price
from raggs.llm.tokens import estimate_tokens

# Below these lie diskcache, tenacity and at last litellm, so they wait until something is asked.
if TYPE_CHECKING:
    from raggs.arrays import Vectors
    from raggs.llm.batch_caller import BatchCaller
    from raggs.llm.cache import AnswerCache
    from raggs.llm.caller import Caller
    from raggs.llm.conversation import Outcome
    from raggs.llm.fence import Fence

T = TypeVar("T")

GRACE_S = 10.0  # how long closing waits for calls on their way


class LLM:
    """Asks language models. One object serves one invocation of raggs: its budget starts from zero.

    Building it touches neither disk nor network. It may be used in several event loops, one after the other.

    Args:
        settings: how to ask.
        budget: what this invocation may spend.
        cache_dir: where answers are kept, made if missing; None keeps none.
        ledger: where each call is booked; without one, nowhere.
        batch: how patient questions are asked by batches; None: all are asked directly.
        progress: hears of batches: which, answers there are, answers there will be.
    """

    def __init__(
        self,
        settings: LLMSettings,
        budget: BudgetSettings,
        cache_dir: Path | None,
        ledger: CallLedger | None = None,
        batch: BatchSettings | None = None,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> None:
        self.settings = settings
        self._batch = batch
        self._progress = progress
        self._batched: dict[str, BatchCaller] = {}  # by model
        self._budget = budget
        self._cache_dir = cache_dir
        self._ledger = ledger or CallLedger()
        self._used = Usage()
        self._in_flight: dict[str, asyncio.Task[Any]] = {}

    async def ask(self, request: Request[T]) -> Reply[T]:
        """The checked answer, from the cache if it was paid before.

        Raises:
            BudgetError: the next call would break a cap.
            AuthenticationError: the provider refused the key.
            ConfigError: the model, its price or one of its parameters is not known.
            ProviderError: the account has no credit, or the cache cannot be used.
        """
        parameters = {**self.settings.parameters, **request.parameters}
        key = self._key(request, parameters)
        while (leader := self._in_flight.get(key)) is not None:
            await asyncio.wait({leader})
            if not leader.cancelled():  # else its asker went away before it was sent, and another one leads
                return self._share(leader.result(), request)
        return self._recall(key, request) or await self._lead(key, request, parameters)

    async def embed(self, request: EmbedRequest) -> Vectors:
        """Vectors as the model gives them, shape (len(request.texts), request.dims), float32.

        Raises:
            ProviderError: the provider failed, or gave no finite vectors of that length, one for each text.
            RaggsError: as `ask`.
        """
        from raggs.llm.embedding import Embedding

        work = Embedding(self._caller, self._ledger, self._cache, request, self.settings)
        self._used += work.recall()
        tasks = [asyncio.ensure_future(work.obtain(batch)) for batch in work.batches()]
        for number, task in enumerate(tasks):
            key = f"{id(work)} {number}"
            self._in_flight[key] = task
            task.add_done_callback(partial(self._arrived, key))
        try:
            await asyncio.gather(*map(asyncio.shield, tasks))
        finally:
            for task in tasks:
                if task not in self._caller.on_their_way:
                    task.cancel()
        return work.vectors()

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._used + self._caller.used if "_caller" in self.__dict__ else self._used

    def fence(self, content: str) -> str:
        """`content` between marks that its author cannot guess; the same content gives the same bytes.

        Raises:
            ProviderError: the key beside the cache cannot be read or made.
        """
        return self._fence(content)

    def price(self, model: str) -> Price | None:
        """What `model` costs, by the settings or litellm's list; None where neither knows it. Imports no litellm."""
        return self.settings.prices.get(model) or list_price(model)

    def require_price(self, model: str) -> None:
        """Find a missing price before anything is asked.

        Raises:
            ConfigError: the price is unknown and `budget.max_usd` is set.
        """
        self._caller.price(model)

    def require_batches(self, model: str) -> None:
        """Find out before anything is asked that `model` cannot be asked by batches, if it is to be.

        Raises:
            ConfigError: its provider has no Batch API of OpenAI's form.
        """
        if self._batch is None:
            return
        if provider_of(model) != "openai" and address_of(model, self.settings.api_base) is None:
            raise ConfigError(
                f"judge.mode: batch needs a Batch API of OpenAI's form, which {provider_of(model)} is not known for",
                remedy="use an openai/ model, or llm.api_base for a server of that form, or judge.mode: direct",
            )

    @staticmethod
    def estimate_tokens(text: str) -> int:
        """A conservative estimate of the tokens in `text` (see `raggs.llm.tokens`)."""
        return estimate_tokens(text)

    async def close(self) -> None:
        """Wait a little for calls on their way, whose answers are paid for; then close connections and the cache."""
        if "_caller" in self.__dict__:
            from raggs.llm import provider

            await self._drain()
            for batched in self._batched.values():
                await batched.close()
            self._batched.clear()
            await provider.close()
        self._ledger.close()
        if (cache := self.__dict__.pop("_cache", None)) is not None:
            cache.close()

    # --- asking ---

    async def _lead(self, key: str, request: Request[T], parameters: Mapping[str, Any]) -> Reply[T]:
        """Ask, for all who want the same answer meanwhile.

        A call that is on its way is paid for, so it goes on when its asker is cancelled, and `close` waits for it;
        one that still waits for its turn is not made.
        """
        task = asyncio.ensure_future(self._obtain(key, request, parameters))
        self._in_flight[key] = task
        task.add_done_callback(partial(self._arrived, key))
        try:
            return (await asyncio.shield(task)).reply
        except asyncio.CancelledError:
            if task not in self._caller.on_their_way:
                task.cancel()
            raise

    async def _drain(self) -> None:
        """Let calls on their way arrive, for a while, and start no others."""
        self._caller.closing = True
        tasks = set(self._in_flight.values())
        for task in tasks - self._caller.on_their_way:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._in_flight.clear()
        self._caller.closing = False  # the next loop may ask again

    def _arrived(self, key: str, task: asyncio.Task[Any]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen: nobody may be left to be told

    async def _obtain(self, key: str, request: Request[T], parameters: Mapping[str, Any]) -> Outcome[T]:
        from raggs.llm.conversation import converse

        batched = self._batches(request)
        asked = batched or self._caller
        outcome = await converse(asked, self._ledger, request, parameters, self.settings.max_repairs, key)
        failed = outcome.reply.error is not None
        self._used += Usage(failed=failed, repaired=not failed and outcome.repairs > 0)
        if not failed:
            self._keep(key, request.model, outcome)
        if batched is not None:
            batched.forget(key)  # after its answer is kept
        return outcome

    def _share(self, outcome: Outcome[T], request: Request[T]) -> Reply[T]:
        self._ledger.hit(request.model, request.schema_name, outcome.usage.usd)
        self._used += Usage(cached=1, saved_usd=outcome.usage.usd, failed=outcome.reply.error is not None)
        return outcome.reply

    # --- remembering ---

    def _key(self, request: Request[Any], parameters: Mapping[str, Any]) -> str:
        """All that can change the answer, such as where a model is asked: its namesake elsewhere is another one.

        What limits, retries and pays for the call is left out.
        """
        return hash_value(
            {
                "provider": provider_of(request.model),
                "model": request.model,
                "address": address_of(request.model, self.settings.api_base),
                "messages": list(request.messages),
                "parameters": parameters,
                "schema": dict(request.schema),
                "sample": request.sample,
            }
        )

    def _recall(self, key: str, request: Request[T]) -> Reply[T] | None:
        from raggs.llm.answers import Unusable, read_text

        entry = None if self._cache is None else self._cache.get(key)
        if entry is None:
            return None
        try:
            reply = Reply(read_text(entry.raw, request.check), None, entry.raw)
        except Unusable:
            return None  # edited, or checked less strictly once; asked again and replaced
        self._ledger.hit(request.model, request.schema_name, entry.usd)
        self._used += Usage(cached=1, saved_usd=entry.usd)
        return reply

    def _keep(self, key: str, model: str, outcome: Outcome[Any]) -> None:
        from raggs.llm.cache import Entry

        if self._cache is not None:
            used = outcome.usage
            self._cache.put(
                key, Entry(outcome.reply.raw or "", model, used.prompt_tokens, used.completion_tokens, used.usd)
            )

    # --- parts, made when needed ---

    def _batches(self, request: Request[Any]) -> BatchCaller | None:
        """Who asks by batches, if this question may wait for one."""
        if not request.patient or self._batch is None or self._cache is None:
            return None
        if request.model not in self._batched:
            from raggs.llm.batch_api import BatchAPI
            from raggs.llm.batch_caller import BatchCaller

            address = address_of(request.model, self.settings.api_base)
            api = BatchAPI(request.model, address, self.settings.timeout_s)
            self._batched[request.model] = BatchCaller(
                self._caller, api, self._cache, self._ledger, self._batch, self.settings, self._progress
            )
        return self._batched[request.model]

    @cached_property
    def _caller(self) -> Caller:
        from raggs.llm.caller import Caller

        return Caller(self.settings, self._budget)

    @cached_property
    def _cache(self) -> AnswerCache | None:
        from raggs.llm.cache import AnswerCache

        return None if self._cache_dir is None else AnswerCache(self._cache_dir)

    @cached_property
    def _fence(self) -> Fence:
        from raggs.llm.fence import Fence, random_key, stored_key

        if self._cache is None or self._cache_dir is None:
            return Fence(random_key())
        return Fence(stored_key(self._cache_dir))  # the cache has made the folder
