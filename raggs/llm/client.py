"""The one door to language models: a question in, a checked value out, paid for once.

Invariants: a failure is never a value and is never cached; a cached answer is checked again when it is read; the
same question asked twice at once is sent once. What is no answer of the model (a cap reached, a key refused, an
unknown model) is raised; all else is told in the reply, and the work goes on.

Knows no run, no stage and no configuration file: settings, a folder and a ledger are all it needs.

The guard against injected orders: marks around a text that its author cannot guess.

A question or a passage may hold any words, such as an end mark followed by orders to the judge. So each text
stands between marks made from a keyed hash (HMAC-SHA256) of the text itself: nobody without the key can write
them, and the same text under the same key gives the same bytes, so the same call finds its answer in the cache.
The key lies beside the cache; losing it costs the cached answers, nothing else.

Language models that are asked as before, and of which somebody wants to know what their answers took.

Whoever wants to know what one part of the work costs gives that part these models. What a kept answer took when it was
paid for counts like any other, so that the sum does not depend on what was asked before.
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
from raggs.llm.calls import answer_key
from raggs.llm.ledger import CallLedger, LedgerAccount
from raggs.llm.messages import Answerer, CallUsage, ChatRequest, EmbedRequest, Reply, RerankRequest, RerankScores
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
MARK_DIGITS = 20  # 80 bits, and nobody can try twice


class InjectionGuard:
    """Puts texts between marks. `key`: 32 secret bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, content: str) -> str:
        """``<data-MARK>``, the text unchanged, ``</data-MARK>``, each on lines of their own."""
        digest = hmac.digest(self._key, content.encode("utf-8", "surrogatepass"), "sha256")
        mark = digest.hex()[:MARK_DIGITS]
        return f"<data-{mark}>\n{content}\n</data-{mark}>"


def random_key() -> bytes:
    """A key that nobody keeps: marks of one object's life."""
    return secrets.token_bytes(KEY_BYTES)


def stored_key(folder: Path) -> bytes:
    """The key in `folder`, made (mode 0600) if there is none; two processes that make one at once agree on it.

    Raises:
        ProviderError: the file is damaged, or cannot be read or written.
        DataError: it is a pipe or a device.
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
            f"holds {len(key)} bytes instead of {KEY_BYTES}", where=path, remedy="delete the file and run again"
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
            return  # another process was first
        except OSError:  # a file system without links
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# Below these lie diskcache, tenacity and at last litellm, so they wait until something is asked.

T = TypeVar("T")

GRACE_S = 10.0  # how long closing waits for calls on their way


class LLM:
    """Asks language models. One object serves one invocation; what the ledger's file held before counts as spent.

    Building it touches neither disk nor network. It may be used in several event loops, one after the other.

        ledger = CallLedger(Path("study.ledger.jsonl"), "study")
        llm = LLM(LLMSettings(), BudgetSettings(max_usd=1), Path(".cache/llm"), ledger)

    Args:
        settings: how to ask.
        budget: what may be spent, by the run and by this invocation.
        cache_dir: where answers are kept, made if missing; None keeps none.
        ledger: where each call is booked, and on what; without one, nowhere.
        batch: how patient questions are asked by batches; None: all are asked directly.
        progress: hears of batches: which, answers there are, answers there will be.
        tell: hears what a user should know, such as a long pause or a damaged cache.
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

    async def ask(self, request: ChatRequest[T]) -> Reply[T]:
        """The checked answer, from the cache if it was paid before.

        Raises:
            BudgetError: the next call would break a cap.
            AuthenticationError: the provider refused the key.
            ConfigError: the model, its price or one of its parameters is not known.
            ProviderError: the account has no credit, or the cache cannot be used.
        """
        parameters = {**self.settings.parameters_of(request.model), **request.parameters}
        key, account = self._key(request, parameters), self._ledger.account(request.qid)
        while (leader := self._caller.leader(key)) is not None:
            await asyncio.wait({leader})
            if not leader.cancelled():  # else its asker went away before it was sent, and another one leads
                return self._share(leader.result(), request, account)
        recalled = self._recall(key, request, account)
        if recalled is not None:
            return recalled
        return (await self._caller.lead(key, partial(self._obtain, key, request, parameters, account))).reply

    def known(self, request: ChatRequest[T]) -> Reply[T] | None:
        """The checked answer, if it was paid before; asks nobody and books nothing.

        Raises:
            ProviderError: the cache cannot be used.
        """
        parameters = {**self.settings.parameters_of(request.model), **request.parameters}
        found = self._remembered(self._key(request, parameters), request)
        return None if found is None else found[0]

    async def embed(self, request: EmbedRequest) -> Vectors:
        """Vectors as the model gives them, shape (len(request.texts), request.dims), float32.

        Raises:
            ProviderError: the provider failed, or gave no finite vectors of that length, one for each text.
            RaggsError: as `ask`.
        """
        from raggs.llm.embedding import EmbedRequestState

        return await EmbedRequestState(
            self._caller, self._ledger, self._cache, request, self.settings, self._claims
        ).all()

    async def rerank(self, request: RerankRequest) -> RerankScores:
        """A finite score for each passage, as the model gives it; what was paid for once is not asked again.

        Raises:
            ProviderError: the provider failed, or gave no finite scores, one for each passage.
            RaggsError: as `ask`.
        """
        from raggs.llm.reranking import RerankRequestState

        return await RerankRequestState(self._caller, self._ledger, self._cache, request, self.settings).all(
            self._claims
        )

    @property
    def spent(self) -> Spending:
        """What the calls took so far that are over."""
        return self._ledger.spent

    def guard(self, content: str) -> str:
        """`content` between marks that its author cannot guess; the same content gives the same bytes.

        Raises:
            ProviderError: the key beside the cache cannot be read or made.
        """
        return self._guard(content)

    def price(self, model: str) -> Price | None:
        """What `model` costs, by the settings or litellm's list; None where neither knows it. Imports no litellm."""
        return self.settings.price_of(model) or list_price(model)

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
        known = provider_of(model) == "openai" or address_of(model, self.settings.base_of(model)) is not None
        if self._batch is not None and not known:
            raise ConfigError(
                f"judge.mode: batch needs a Batch API of OpenAI's form, which {provider_of(model)} is not known for",
                remedy="use an openai/ model, or llm.api_base for a server of that form, or judge.mode: direct",
            )

    @property
    def budget(self) -> Budget:
        """What the calls of this invocation have spent and promised."""
        return self._caller.budget

    async def arrive(self) -> None:
        """Wait a little for calls on their way, whose answers are paid for, so that they are booked."""
        if "_caller" in self.__dict__:
            await self._caller.drain(GRACE_S)

    async def close(self) -> None:
        """Let calls on their way arrive; then close connections and the cache."""
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
                told = f"{plural(cache.damaged, 'damaged entry')} in the cache of answers ({cache.folder})"
                self._tell(f"{told}: asked again, paid again")
            cache.close()

    async def _obtain(
        self, key: str, request: ChatRequest[T], parameters: Mapping[str, object], account: LedgerAccount
    ) -> Exchange[T]:
        """The answer; where another run asks the same just now, its answer."""
        from raggs.llm.cache import claim_keys
        from raggs.llm.conversation import Exchange, converse

        self._caller.budget.check_open()
        batched = self._batches(request)
        async with claim_keys(self._claims, [key], batched=batched is not None):
            if batched is None and (recalled := self._recall(key, request, account)) is not None:
                return Exchange(recalled, Spending())
            asked, repairs = batched or self._caller, self.settings.max_repairs
            keep = partial(self._keep, key, request.model)
            found = await converse(asked, self._ledger, account, request, parameters, repairs, key, keep)
        if batched is not None:
            batched.forget(key)  # after its answer is kept
        self._ledger.answerers.require(found.by)
        return found

    def _share(self, found: Exchange[T], request: ChatRequest[T], account: LedgerAccount) -> Reply[T]:
        by = found.by or Answerer(asked=request.model)
        self._ledger.hit(account, request.model, request.schema_name, found.spent.usd, by, self._ledger.payer)
        return found.reply

    def _key(self, request: ChatRequest[T], parameters: Mapping[str, object]) -> str:
        """Of all that can change the answer.

        What limits, retries and pays for the call is left out, where it is asked, and for whom.
        """
        parts = {
            "messages": list(request.messages),
            "parameters": parameters,
            "schema": dict(request.schema),
            "sample": request.sample,
        }
        return answer_key(request.model, self.settings, parts)

    def _recall(self, key: str, request: ChatRequest[T], account: LedgerAccount) -> Reply[T] | None:
        found = self._remembered(key, request)
        if found is None:
            return None
        reply, cached = found
        about = (account, request.model, request.schema_name)
        self._ledger.hit(*about, cached.usd, cached.answerer, cached.payer)
        return reply

    def _remembered(self, key: str, request: ChatRequest[T]) -> tuple[Reply[T], CachedAnswer] | None:
        """An answer of the cache, checked and as it is kept."""
        from raggs.llm.conversation import Unusable, read_text

        cached = None if self._cache is None else self._cache.get(key)
        if cached is None:
            return None
        try:
            value = read_text(cached.raw, request.check)
        except Unusable:
            return None  # edited, or checked less strictly once; asked again and replaced
        answerer = self._ledger.answerers.note(cached.answerer)
        return Reply(value, None, cached.raw, cached.took, answerer=answerer), cached

    def _keep(self, key: str, model: str, found: Exchange[T]) -> None:
        from raggs.llm.cache import CachedAnswer

        if self._cache is not None:
            raw, ms = mask(found.reply.raw or ""), found.reply.took.ms
            with self._caller.storing():
                self._cache.put(key, CachedAnswer.of(raw, model, found.spent, ms, found.by, self._ledger.payer))

    def _batches(self, request: ChatRequest[T]) -> BatchCaller | None:
        """Who asks by batches, if this question may wait for one."""
        if not request.patient or self._batch is None or self._cache is None:
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
        return InjectionGuard(stored_key(self._cache_dir))  # the cache has made the folder


class MeteredLLM(LLM):
    """See the module.

    Args:
        llm: who is asked; closed by its owner.

    Attributes:
        took: what the answers took so far.
    """

    def __init__(self, llm: LLM) -> None:
        self.settings = llm.settings
        self.took = CallUsage()
        self._llm = llm

    async def ask(self, request: ChatRequest[T]) -> Reply[T]:
        """As the models that are asked."""
        reply = await self._llm.ask(request)
        self.took += reply.took
        return reply

    def guard(self, content: str) -> str:
        """As the models that are asked."""
        return self._llm.guard(content)

    def price(self, model: str) -> Price | None:
        """As the models that are asked."""
        return self._llm.price(model)

    def require_price(self, model: str) -> None:
        """As the models that are asked."""
        self._llm.require_price(model)

    def require_batches(self, model: str) -> None:
        """As the models that are asked."""
        self._llm.require_batches(model)
