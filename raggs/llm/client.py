"""The entry point to language models: a request in, a validated value out, paid for once.

Invariants: a failure is never a value and is never cached. A cached answer is validated again when it is read. Two
identical requests at the same time are sent once. Problems that concern more than one request are raised, such as a
used-up budget, a rejected key or an unknown model. Other problems of a chat or decision request are reported in the
reply, and the work continues. Embedding and rerank requests raise every problem.

`LLM` needs settings, a budget and a folder or None, and optionally a ledger. It knows no run, stage or configuration
file.

`InjectionGuard` protects against prompt injection: it puts each text between marks that the text's author cannot guess.
A query or passage may contain anything, such as a fake end mark followed by instructions to the judge. Each text is
therefore placed between marks made from a keyed hash (HMAC-SHA256) of the text. Without the key, the marks cannot be
forged. With the same key, the same text gives the same bytes, so the same call finds its answer in the cache. The key
is stored next to the cache; without a cache, it is random and not stored. If the key is lost, cached answers to
requests with such texts are no longer found. Nothing else is lost.

`MeteredLLM` measures the chat and decision requests of one part of the work. Cached answers count with their original
usage, so the sum does not depend on the state of the cache.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raggs.base.artifacts import Spending
from raggs.base.errors import ConfigError, ProviderError
from raggs.base.files import regular_file
from raggs.base.secrets import mask
from raggs.base.text import plural
from raggs.llm.calls import LIMITS, answer_key
from raggs.llm.ledger import CallLedger, LedgerAccount
from raggs.llm.messages import (
    Answerer,
    CallUsage,
    ChatRequest,
    DecisionRequest,
    EmbedRequest,
    Reply,
    RerankRequest,
    RerankScores,
)
from raggs.llm.prices import address_of, list_price, provider_of
from raggs.llm.settings import BatchSettings, BudgetSettings, LLMSettings, Price

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors
    from raggs.llm.batch import BatchCaller
    from raggs.llm.budget import Budget
    from raggs.llm.cache import AnswerCache, AnswerClaims, CachedAnswer
    from raggs.llm.caller import Caller
    from raggs.llm.conversation import Exchange

KEY_FILE = "fence.key"
KEY_BYTES = 32
MARK_DIGITS = 20  # 80 bits, of which an attacker must guess all in one attempt


class InjectionGuard:
    """Put texts between marks. `key`: 32 secret bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, content: str) -> str:
        """Return ``<data-MARK>``, the unchanged text and ``</data-MARK>``, each on its own line."""
        digest = hmac.digest(self._key, content.encode("utf-8", "surrogatepass"), "sha256")
        mark = digest.hex()[:MARK_DIGITS]
        return f"<data-{mark}>\n{content}\n</data-{mark}>"


def random_key() -> bytes:
    """Return a random key that is not stored; it is valid as long as the object that uses it."""
    return secrets.token_bytes(KEY_BYTES)


def stored_key(folder: Path) -> bytes:
    """Return the key in `folder`. Create it with mode 0600 if missing; concurrent processes agree on one key.

    Raises:
        ProviderError: the file is damaged, or cannot be read or written.
        DataError: the file is a pipe, a device or a socket.
    """
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _plant(path, random_key())
        key = regular_file(path).read_bytes()
    except OSError as error:
        raise ProviderError(
            f"cannot be used: {error.strerror}", where=path, remedy="check the folder's permissions"
        ) from None
    if len(key) != KEY_BYTES:
        raise ProviderError(
            f"contains {len(key)} bytes instead of {KEY_BYTES}",
            where=path,
            remedy="restore it from a copy, or delete it: answers to prompts with queries are then paid for again",
        )
    return key


def _plant(path: Path, key: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent)  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(key)
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return  # another process created the file first
        except OSError:  # the file system does not support links
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


T = TypeVar("T")

GRACE_S = 10.0  # seconds that closing waits for calls in flight


class LLM:
    """Client for language models. One object serves one invocation. Costs of earlier invocations in the ledger file
    count as spent.

    The constructor uses neither disk nor network. The object can be used in several event loops, one after the other.

        ledger = CallLedger(Path("study.ledger.jsonl"), "study")
        llm = LLM(LLMSettings(), BudgetSettings(max_usd=1), Path(".cache/llm"), ledger)

    Args:
        settings: settings of language models.
        budget: limits of the run and of this invocation.
        cache_dir: folder of the answer cache, created if missing; None for no cache.
        ledger: ledger in which each call is booked (default: one without a file).
        batch: settings for sending requests that may take hours (`patient`) in batches; None sends all requests
            directly.
        progress: progress callback for batches: name, number of answers, expected number.
        tell: receives messages for the user, such as a long pause or a damaged cache.
    """

    def __init__(
        self,
        settings: LLMSettings,
        budget: BudgetSettings,
        cache_dir: Path | None,
        ledger: CallLedger | None = None,
        batch: BatchSettings | None = None,
        progress: Callable[[str, int, int], None] = lambda *_: None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._batch = batch
        self._progress = progress
        self._tell = tell
        self._batched: dict[str, BatchCaller] = {}  # by model
        self._budget = budget
        self._cache_dir = cache_dir
        self._ledger = ledger or CallLedger()

    async def ask(self, request: ChatRequest[T] | DecisionRequest[T]) -> Reply[T]:
        """Return the validated answer of a chat or decision model, from the cache if it was paid for before.

        Raises:
            BudgetError: the next call would exceed a limit of the budget.
            AuthenticationError: the provider rejected the key.
            ConfigError: the price or the provider of the model is unknown, or an address is wrong.
            ModelError: the provider does not know the model or accept one of its parameters.
            SnapshotError: the answer is from another model snapshot than earlier answers.
            BusyError: the request is in an unfinished batch of another run, or the cache is locked.
            ProviderError: the account has no credit, the provider is down, or the cache is unusable.
        """
        parameters = self._parameters(request)
        key, account = self._key(request, parameters), self._ledger.account(request.qid)
        while (leader := self._caller.leader(key)) is not None:
            await asyncio.wait({leader})
            # if cancelled, the leading caller left before its request was sent, so another caller takes over
            if not leader.cancelled():
                return self._share(leader.result(), request, account)
        recalled = self._recall(key, request, account)
        if recalled is not None:
            return recalled
        return (await self._caller.lead(key, partial(self._obtain, key, request, parameters, account))).reply

    def known(self, request: ChatRequest[T] | DecisionRequest[T]) -> Reply[T] | None:
        """Return the validated answer if it was paid for before, otherwise None. Make no call and book nothing.

        Raises:
            BusyError, ProviderError: the cache is locked or unusable.
        """
        found = self._remembered(self._key(request, self._parameters(request)), request)
        return None if found is None else found[0]

    async def embed(self, request: EmbedRequest) -> Vectors:
        """Return the model's vectors, shape (len(request.texts), request.dims), float32.

        Raises:
            ProviderError: the provider failed, or did not return one finite vector of that length per text.
            DataError: the provider rejected the request, for example because a text is too long.
            RaggsError: see `ask`.
        """
        from raggs.llm.embedding import EmbedRequestState

        return await EmbedRequestState(
            self._caller, self._ledger, self._cache, request, self.settings, self._claims
        ).all()

    async def rerank(self, request: RerankRequest) -> RerankScores:
        """Return a finite score of the model for each passage. Paid scores are requested again only if `request.fresh`.

        Raises:
            ProviderError: the provider failed, or did not return one finite score per passage.
            DataError: the provider rejected the request.
            RaggsError: see `ask`.
        """
        from raggs.llm.reranking import RerankRequestState

        return await RerankRequestState(self._caller, self._ledger, self._cache, request, self.settings).all(
            self._claims
        )

    @property
    def spent(self) -> Spending:
        """Usage of the finished calls so far."""
        return self._ledger.spent

    def guard(self, content: str) -> str:
        """Return `content` between marks that its author cannot guess. The same content gives the same bytes.

        Raises:
            ProviderError, DataError: the key next to the cache cannot be read or created.
            BusyError, ProviderError: the cache is locked or unusable.
        """
        return self._guard(content)

    def price(self, model: str) -> Price | None:
        """Return the price of `model` from the settings or litellm's list, or None if unknown. Does not import
        litellm.
        """
        return self.settings.price_of(model) or list_price(model)

    def require_price(self, model: str) -> None:
        """Check that the price is known if it is required, before any call.

        Raises:
            ConfigError: the price is unknown, and USD are limited (`budget.max_usd` or
                `budget.max_usd_per_invocation`).
        """
        self._caller.price(model)

    def require_batches(self, model: str) -> None:
        """Check before any call that `model` supports batches, if they are enabled. A server with a configured address
        is assumed to support them.

        Raises:
            ConfigError: its provider has no Batch API in OpenAI's form.
        """
        known = provider_of(model) == "openai" or address_of(model, self.settings.base_of(model)) is not None
        if self._batch is not None and not known:
            raise ConfigError(
                f"judge.mode: batch needs a Batch API in OpenAI's form, which {provider_of(model)} is not "
                "known to have",
                remedy="use an openai/ model, set llm.api_base to a server with such an API, or set judge.mode: direct",
            )

    @property
    def budget(self) -> Budget:
        """The budget, with the spent and reserved amounts of the run."""
        return self._caller.budget

    async def arrive(self) -> None:
        """Wait briefly for calls in flight, which are paid for, so that they are booked. Cancel calls that still wait
        for their turn.
        """
        if "_caller" in self.__dict__:
            await self._caller.drain(GRACE_S)

    async def close(self) -> None:
        """Wait briefly for calls in flight, then close connections, the ledger and the cache."""
        if "_caller" in self.__dict__:
            from raggs.llm import providers

            await self.arrive()
            for batched in self._batched.values():
                await batched.close()
            self._batched.clear()
            await providers.close()
        self._ledger.close()
        if (claims := self.__dict__.pop("_claims", None)) is not None:
            claims.close()
        if (cache := self.__dict__.pop("_cache", None)) is not None:
            if cache.damaged:
                told = f"{plural(cache.damaged, 'damaged entry')} in the answer cache ({cache.folder})"
                self._tell(f"{told}: requested and paid for again")
            cache.close()

    async def _obtain(
        self,
        key: str,
        request: ChatRequest[T] | DecisionRequest[T],
        parameters: Mapping[str, object],
        account: LedgerAccount,
    ) -> Exchange[T]:
        """Return the answer. If another run makes the same request in a direct call, wait for it and use its answer."""
        from raggs.llm.cache import claim_keys
        from raggs.llm.conversation import Exchange, converse

        self._caller.budget.check_open()
        batched = self._batches(request)
        async with claim_keys(self._claims, [key], batched=batched is not None):
            if (recalled := self._recall(key, request, account)) is not None:
                return Exchange(recalled, Spending())
            asked, repairs = batched or self._caller, self.settings.max_repairs
            keep = partial(self._keep, key, request.model)
            found = await converse(asked, self._ledger, account, request, parameters, repairs, key, keep)
        if batched is not None:
            batched.forget(key)  # only now, because the answer must be cached first
        self._ledger.answerers.require(found.by)
        return found

    def _share(
        self, found: Exchange[T], request: ChatRequest[T] | DecisionRequest[T], account: LedgerAccount
    ) -> Reply[T]:
        by = found.by or Answerer(asked=request.model)
        self._ledger.hit(account, request.model, request.schema_name, found.spent.usd, by, self._ledger.payer)
        return found.reply

    def _parameters(self, request: ChatRequest[T] | DecisionRequest[T]) -> dict[str, object]:
        """Return the parameters of a request's calls. For log-probabilities, the limit of the answer is one of them."""
        if isinstance(request, DecisionRequest):
            return dict(request.parameters)
        found = {**self.settings.parameters_of(request.model), **request.parameters}
        if not request.logprobs:
            return found
        others = {name: value for name, value in found.items() if name not in LIMITS}
        limit = {LIMITS[-1]: request.max_output_tokens}
        return {**others, **limit, "logprobs": True, "top_logprobs": request.logprobs}

    def _key(self, request: ChatRequest[T] | DecisionRequest[T], parameters: Mapping[str, object]) -> str:
        """Return the cache key, made of everything that can change the answer.

        Limits, retries, payment, the address and the query id are not included.
        """
        about: dict[str, object] = {"parameters": parameters, "sample": request.sample}
        if isinstance(request, DecisionRequest):
            parts = {**about, "input": request.text, "question": dict(request.question)}
        else:
            parts = {**about, "messages": list(request.messages), "schema": dict(request.schema)}
        return answer_key(request.model, self.settings, parts)

    def _recall(
        self, key: str, request: ChatRequest[T] | DecisionRequest[T], account: LedgerAccount
    ) -> Reply[T] | None:
        found = self._remembered(key, request)
        if found is None:
            return None
        reply, cached = found
        about = (account, request.model, request.schema_name)
        self._ledger.hit(*about, cached.usd, cached.answerer, cached.payer)
        return reply

    def _remembered(
        self, key: str, request: ChatRequest[T] | DecisionRequest[T]
    ) -> tuple[Reply[T], CachedAnswer] | None:
        """Return the validated answer from the cache with its cache entry, or None if there is no valid one."""
        from raggs.llm.conversation import Unusable, read_text

        cached = None if self._cache is None else self._cache.get(key)
        if cached is None:
            return None
        try:
            value = read_text(cached.raw, request.check)
        except Unusable:
            # The entry was edited, or an earlier version checked less strictly: request again and replace it.
            return None
        answerer = self._ledger.answerers.note(cached.answerer)
        return Reply(value, None, cached.raw, cached.took, answerer=answerer), cached

    def _keep(self, key: str, model: str, found: Exchange[T]) -> None:
        from raggs.llm.cache import CachedAnswer

        if self._cache is not None:
            raw, ms = mask(found.reply.raw or ""), found.reply.took.ms
            with self._caller.storing():
                self._cache.put(key, CachedAnswer.of(raw, model, found.spent, ms, found.by, self._ledger.payer))

    def _batches(self, request: ChatRequest[T] | DecisionRequest[T]) -> BatchCaller | None:
        """Return the batch caller if this request may be sent in a batch, otherwise None."""
        if isinstance(request, DecisionRequest) or not request.patient or self._batch is None or self._cache is None:
            return None
        if request.model not in self._batched:
            from raggs.llm.batch import BatchCaller

            self._batched[request.model] = BatchCaller(
                request.model, self._caller, self._cache, self._ledger, self._batch, self.settings, self._progress
            )
        return self._batched[request.model]

    @cached_property
    def _caller(self) -> Caller:
        from raggs.llm.caller import Caller

        ledger = self._ledger
        return Caller(self.settings, self._budget, lambda: ledger.earlier, lambda: ledger.unknown, self._tell)

    @cached_property
    def _cache(self) -> AnswerCache | None:
        from raggs.llm.cache import AnswerCache

        return None if self._cache_dir is None else AnswerCache(self._cache_dir)

    @cached_property
    def _claims(self) -> AnswerClaims | None:
        from raggs.llm.cache import AnswerClaims

        return None if self._cache is None else AnswerClaims(self._cache.folder)

    @cached_property
    def _guard(self) -> InjectionGuard:

        if self._cache is None or self._cache_dir is None:
            return InjectionGuard(random_key())
        return InjectionGuard(stored_key(self._cache_dir))  # the cache has created the folder


class MeteredLLM(LLM):
    """Language models that measure the usage of their chat and decision answers. Other requests are not supported.

    Args:
        llm: language models to call. `MeteredLLM` does not close them.

    Attributes:
        took: usage of the answers so far.
    """

    def __init__(self, llm: LLM) -> None:
        self.settings = llm.settings
        self.took = CallUsage()
        self._llm = llm

    async def ask(self, request: ChatRequest[T] | DecisionRequest[T]) -> Reply[T]:
        """Return the answer to a request; see `LLM.ask`."""
        reply = await self._llm.ask(request)
        self.took += reply.took
        return reply

    def guard(self, content: str) -> str:
        """Put text between marks; see `LLM.guard`."""
        return self._llm.guard(content)

    def price(self, model: str) -> Price | None:
        """Return the price of a model; see `LLM.price`."""
        return self._llm.price(model)

    def require_price(self, model: str) -> None:
        """Check that the price is known; see `LLM.require_price`."""
        self._llm.require_price(model)

    def require_batches(self, model: str) -> None:
        """Check that batches are supported; see `LLM.require_batches`."""
        self._llm.require_batches(model)
