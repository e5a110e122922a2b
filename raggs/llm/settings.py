"""What the user says about language models: how to ask, what it may cost, what it does cost.

Only `max_repairs`, `parameters` and a model's `model_id` can change what comes out; the rest is `Effort`. Where a
model is asked is no cause: it is the same model behind another address, unless its `model_id` says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import not_
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from raggs.base.hashing import canonical_json
from raggs.base.secrets import find_secrets
from raggs.base.settings import Causes, Effort, Settings, causes_of, http_address

# Set by raggs itself, or no business of a file that others may read.
RESERVED = frozenset(
    {"api_base", "base_url", "extra_headers", "headers", "max_retries", "messages", "model", "n", "num_retries"}
    | {"response_format", "stream", "timeout", "tools"}
)


def _completion_parameters(parameters: dict[str, object]) -> dict[str, object]:
    if found := next(find_secrets(parameters), None):
        raise ValueError(f"{found.why}; set the provider's environment variable instead")
    if taken := sorted(RESERVED & set(parameters)):
        raise ValueError(f"{', '.join(taken)}: set by raggs itself")
    canonical_json(parameters)  # they are part of cache keys; NaN and objects are refused here
    return parameters


Parameters = Annotated[dict[str, object], AfterValidator(_completion_parameters)]


def _without_password(address: str) -> str:
    if found := next(find_secrets(address), None):
        raise ValueError(f"{found.why}; set the provider's environment variable instead")
    return http_address(address)


Address = Annotated[str, AfterValidator(_without_password)]


def _unsaid(amount: float | None) -> bool:
    return amount is None


class Price(Settings):
    """What a model charges: by the token, in USD per million of them, or by the search, as some rerankers do."""

    input: float = Field(0, ge=0, description="USD per 1M tokens of what is sent")
    output: float = Field(0, ge=0, description="USD per 1M tokens of what comes back, hidden reasoning included")
    per_1k_searches: float = Field(
        0, ge=0, description="USD per 1,000 searches of a reranker, each of up to 100 passages; in place of the others"
    )
    cached_input: float | None = Field(
        None,
        ge=0,
        exclude_if=_unsaid,
        description="USD per 1M tokens of what is sent and the provider remembers, where it says so; null: no discount",
    )
    cache_write: float | None = Field(
        None,
        ge=0,
        exclude_if=_unsaid,
        description="USD per 1M tokens that a provider says it wrote into its cache; null: as input",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """A price that was forgotten is not zero."""
        if "per_1k_searches" not in self.model_fields_set and not {"input", "output"} <= self.model_fields_set:
            raise ValueError("needs input and output (USD per 1M tokens), or per_1k_searches for a reranker")
        return self

    def times(self, share: float) -> Price:
        """A share of this price."""
        return Price(
            input=share * self.input,
            output=share * self.output,
            per_1k_searches=share * self.per_1k_searches,
            cached_input=None if self.cached_input is None else share * self.cached_input,
            cache_write=None if self.cache_write is None else share * self.cache_write,
        )

    def usd(self, prompt_tokens: int, completion_tokens: int, searches: int = 0) -> float:
        """The cost of one call in USD, as far as the provider remembers nothing of it: see `discount`."""
        by_token = (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000
        return by_token + searches * self.per_1k_searches / 1000

    def discount(self, cached_tokens: int, written_tokens: int = 0) -> float:
        """What a call costs less for what the provider remembered of its prompt, in USD; < 0 where it only wrote.

        Args:
            cached_tokens: that it read from its cache.
            written_tokens: that it wrote into it, others than those.
        """
        read = 0.0 if self.cached_input is None else cached_tokens * (self.input - self.cached_input)
        wrote = 0.0 if self.cache_write is None else written_tokens * (self.input - self.cache_write)
        return (read + wrote) / 1_000_000

    def most_usd(self, prompt_tokens: int, completion_tokens: int, searches: int = 0, written_tokens: int = 0) -> float:
        """The cost of one call in USD at most: as if the provider remembered nothing and wrote down what it may."""
        return self.usd(prompt_tokens, completion_tokens, searches) - min(0.0, self.discount(0, written_tokens))


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("must be the name of an environment variable (the key itself does not belong into a file)")
    return name


class ModelSettings(Settings):
    """What holds for one model, over what `llm` says of all."""

    api_base: Effort[Address | None] = Field(None, description="address of the server that has it")
    api_key_env: Effort[Annotated[str, AfterValidator(_variable)] | None] = Field(
        None, description="the environment variable that holds its key; null: the provider's own"
    )
    prices: Effort[Price | None] = Field(None, description="what it costs")
    parameters: Parameters = Field(default_factory=dict, description="sent with each call, over llm.parameters")
    concurrency: Effort[int | None] = Field(
        None, ge=1, description="calls in flight to it, besides those to others; null: it shares llm.concurrency"
    )
    requests_per_minute: Effort[int | None] = Field(None, ge=1, description="null: llm.requests_per_minute")
    tokens_per_minute: Effort[int | None] = Field(None, ge=1, description="null: llm.tokens_per_minute")
    model_id: str | None = Field(
        None, min_length=1, description="tells models of one name apart; answers are kept under both names"
    )


DEFAULT_MODEL_SETTINGS = ModelSettings()


class LLMSettings(Settings):
    """How language models are asked."""

    concurrency: Effort[int] = Field(16, ge=1, description="calls in flight at once")
    requests_per_minute: Effort[int | None] = Field(
        None, ge=1, description="of each model; no minute holds more. null: what the provider's answers teach"
    )
    tokens_per_minute: Effort[int | None] = Field(None, ge=1, description="of each model, questions and answers")
    timeout_s: Effort[float] = Field(60, gt=0, description="seconds until a call is given up, and retried")
    max_attempts: Effort[int] = Field(6, ge=1, description="tries of one call when the provider fails")
    backoff_s: Effort[float] = Field(
        1.0, gt=0, le=60, description="longest first pause in seconds after a failed call; each next one is doubled"
    )
    max_wait_s: Effort[float] = Field(
        600, gt=0, description="longest pause in seconds that a provider may ask for; at a longer one the run stops"
    )
    outage_after: Effort[int | None] = Field(
        20, ge=1, description="calls in a row that failed after all their tries until the run stops; null: it goes on"
    )
    max_repairs: int = Field(2, ge=0, description="corrective questions after an answer that cannot be used")
    allow_mixed: Effort[bool] = Field(
        False,
        exclude_if=not_,
        description="whether a run goes on when a provider answers with another snapshot of a model than before",
    )
    api_base: Effort[Address | None] = Field(None, description="address of an OpenAI-compatible server")
    prices: Effort[dict[str, Price]] = Field(default_factory=dict, description="what models cost, by model")
    parameters: Parameters = Field(default_factory=dict, description="sent with each call, such as temperature")
    models: Effort[dict[str, ModelSettings]] = Field(
        default_factory=dict, description="what holds for one model alone, by its name"
    )

    def over(self, other: LLMSettings) -> LLMSettings:
        """Return these settings, with those of `other` for all that is not set here; models and prices by name."""
        own, base = self.model_dump(exclude_unset=True), other.model_dump(exclude_unset=True)
        models = base.get("models", {})
        models |= {name: {**models.get(name, {}), **said} for name, said in own.get("models", {}).items()}
        merged = {"models": models, "prices": {**base.get("prices", {}), **own.get("prices", {})}}
        return LLMSettings.model_validate({**base, **own, **{key: value for key, value in merged.items() if value}})

    def mixing(self) -> LLMSettings:
        """Return these settings, with which other snapshots of models than before may answer."""
        return self.model_copy(update={"allow_mixed": True})

    def of(self, model: str) -> ModelSettings:
        """What is said about `model` alone."""
        return self.models.get(model, DEFAULT_MODEL_SETTINGS)

    def base_of(self, model: str) -> str | None:
        """The address that is set for `model`, if any."""
        return self.of(model).api_base or self.api_base

    def price_of(self, model: str) -> Price | None:
        """The price that is set for `model`, if any."""
        return self.of(model).prices or self.prices.get(model)

    def parameters_of(self, model: str) -> dict[str, object]:
        """What is sent with each chat call of `model`."""
        return {**self.parameters, **self.of(model).parameters}

    def causes_for(self, models: Iterable[str]) -> Causes:
        """What can change an answer of one of these models; the same as ever where nothing is said about one alone."""
        found = {model: {name: value for name, value in causes_of(self.of(model)).items() if value} for model in models}
        own = {model: causes for model, causes in found.items() if causes}
        # The locks and journals of all versions name an address; since it is no cause any more, it is none at all.
        return {"api_base": None, **causes_of(self), **({"models": own} if own else {})}


class BatchSettings(Settings):
    """How a provider's Batch API is used: slower, at about half the price."""

    max_requests: Effort[int] = Field(20_000, ge=1, description="questions in one batch")
    poll_s: Effort[float] = Field(60, gt=0, description="longest pause in seconds between two looks at a batch")
    quiet_s: Effort[float] = Field(
        0.5, gt=0, description="seconds without another question until what was asked is sent as a batch"
    )
    deadline_h: Effort[float] = Field(25, gt=0, description="hours until a batch is cancelled; what it has is kept")
    rounds: Effort[int] = Field(3, ge=1, description="batches that a question may go into when its line fails")
    fallback: Effort[Literal["batch", "direct"]] = Field(
        "batch", description="who is asked what a batch left open: the next batch, or direct calls at full price"
    )
    price: Effort[float] = Field(0.5, ge=0, le=1, description="share of the model's price that a batch costs")


class BudgetSettings(Settings):
    """What a run may spend, over all invocations of `raggs run` that its ledger knows; or each of them.

    What is there when it ends: docs/how-to/cut-cost.md.
    """

    max_usd: Effort[float | None] = Field(5.0, ge=0, description="USD of the whole run; null: no limit")
    max_calls: Effort[int | None] = Field(
        20_000, ge=0, description="of the whole run, retries and repairs count; null: no limit"
    )
    max_usd_per_invocation: Effort[float | None] = Field(
        None, ge=0, description="USD of one `raggs run`; null: no limit"
    )
    max_calls_per_invocation: Effort[int | None] = Field(
        None, ge=0, description="calls of one `raggs run`; null: no limit"
    )

    @property
    def limits_usd(self) -> bool:
        """Whether money is limited, so that prices must be known."""
        return self.max_usd is not None or self.max_usd_per_invocation is not None
