"""User settings of language models: calls, limits and prices.

Only `max_repairs`, `parameters` and a model's `model_id` can change results; all others are `Effort`. The address of a
model is not a cause: the same model at another address gives the same results, unless its `model_id` differs.
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

# Set by raggs itself, or not suitable for a file that others may read.
RESERVED = frozenset(
    {"api_base", "base_url", "extra_headers", "headers", "max_retries", "messages", "model", "n", "num_retries"}
    | {"response_format", "stream", "timeout", "tools"}
)


def _completion_parameters(parameters: dict[str, object]) -> dict[str, object]:
    if found := next(find_secrets(parameters), None):
        raise ValueError(f"{found.why}; set the provider's environment variable instead")
    if taken := sorted(RESERVED & set(parameters)):
        raise ValueError(f"{', '.join(taken)}: set by raggs itself")
    canonical_json(parameters)  # they are part of cache keys; NaN and objects are rejected here
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
    """Prices of a model in USD: per million tokens, or per 1,000 searches for some rerankers."""

    input: float = Field(0, ge=0, description="USD per 1M input tokens")
    output: float = Field(0, ge=0, description="USD per 1M output tokens, including hidden reasoning")
    per_1k_searches: float = Field(
        0,
        ge=0,
        description="USD per 1,000 searches of a reranker, each with up to 100 passages; added to the token prices, "
        "which are then 0 by default",
    )
    cached_input: float | None = Field(
        None,
        ge=0,
        exclude_if=_unsaid,
        description="USD per 1M input tokens that the provider reports as read from its prompt cache; null: no "
        "discount",
    )
    cache_write: float | None = Field(
        None,
        ge=0,
        exclude_if=_unsaid,
        description="USD per 1M input tokens that the provider reports as written to its prompt cache; null: same as "
        "input",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Require prices to be complete: a missing price is not zero."""
        if "per_1k_searches" not in self.model_fields_set and not {"input", "output"} <= self.model_fields_set:
            raise ValueError("needs input and output (USD per 1M tokens), or per_1k_searches for a reranker")
        return self

    def times(self, share: float) -> Price:
        """Return this price multiplied by `share`."""
        return Price(
            input=share * self.input,
            output=share * self.output,
            per_1k_searches=share * self.per_1k_searches,
            cached_input=None if self.cached_input is None else share * self.cached_input,
            cache_write=None if self.cache_write is None else share * self.cache_write,
        )

    def usd(self, prompt_tokens: int, completion_tokens: int, searches: int = 0) -> float:
        """Return the cost of one call in USD without prompt caching; see `discount`."""
        by_token = (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000
        return by_token + searches * self.per_1k_searches / 1000

    def discount(self, cached_tokens: int, written_tokens: int = 0) -> float:
        """Return the saving of a call through prompt caching in USD; negative if writing cost more than reading saved.

        Args:
            cached_tokens: tokens read from the provider's cache.
            written_tokens: other tokens, written to its cache.
        """
        read = 0.0 if self.cached_input is None else cached_tokens * (self.input - self.cached_input)
        wrote = 0.0 if self.cache_write is None else written_tokens * (self.input - self.cache_write)
        return (read + wrote) / 1_000_000

    def most_usd(self, prompt_tokens: int, completion_tokens: int, searches: int = 0, written_tokens: int = 0) -> float:
        """Return the maximum cost of one call in USD: nothing is read from the provider's cache, and all it may
        write is charged.
        """
        return self.usd(prompt_tokens, completion_tokens, searches) - min(0.0, self.discount(0, written_tokens))


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("must be the name of an environment variable (never put the key itself in a file)")
    return name


class ModelSettings(Settings):
    """Settings of one model, which override those in `llm`."""

    api_base: Effort[Address | None] = Field(None, description="address of the model's server")
    api_key_env: Effort[Annotated[str, AfterValidator(_variable)] | None] = Field(
        None, description="environment variable with the model's API key; null: the provider's usual variable"
    )
    prices: Effort[Price | None] = Field(None, description="prices of the model")
    parameters: Parameters = Field(
        default_factory=dict, description="parameters sent with each chat call; override llm.parameters"
    )
    concurrency: Effort[int | None] = Field(
        None,
        ge=1,
        description="maximum number of concurrent calls to this model, which do not count towards "
        "llm.concurrency; null: the model shares llm.concurrency with the other models",
    )
    requests_per_minute: Effort[int | None] = Field(
        None, ge=1, description="maximum number of requests per minute; null: llm.requests_per_minute"
    )
    tokens_per_minute: Effort[int | None] = Field(
        None, ge=1, description="maximum number of tokens per minute; null: llm.tokens_per_minute"
    )
    model_id: str | None = Field(
        None,
        min_length=1,
        description="identifier that distinguishes models with the same name; cached answers are separate for each "
        "identifier",
    )


DEFAULT_MODEL_SETTINGS = ModelSettings()


class LLMSettings(Settings):
    """Settings of language models."""

    concurrency: Effort[int] = Field(16, ge=1, description="maximum number of concurrent calls")
    requests_per_minute: Effort[int | None] = Field(
        None,
        ge=1,
        description="maximum number of requests per minute and model; null: learned from the provider's responses",
    )
    tokens_per_minute: Effort[int | None] = Field(
        None,
        ge=1,
        description="maximum number of tokens per minute and model, requests and answers together; null: learned from "
        "the provider's responses",
    )
    timeout_s: Effort[float] = Field(60, gt=0, description="timeout of a call in seconds, after which it is retried")
    max_attempts: Effort[int] = Field(6, ge=1, description="maximum number of attempts per call if the provider fails")
    backoff_s: Effort[float] = Field(
        1.0,
        gt=0,
        le=60,
        description="maximum pause in seconds before the first retry; doubled for each further retry, up to 60 seconds",
    )
    max_wait_s: Effort[float] = Field(
        600, gt=0, description="longest pause in seconds that a provider may request; the run stops if it requests more"
    )
    outage_after: Effort[int | None] = Field(
        20,
        ge=1,
        description="calls to one model in a row that must fail, after all attempts, to stop the run; null: never stop",
    )
    max_repairs: int = Field(2, ge=0, description="maximum number of corrections requested after an unusable answer")
    allow_mixed: Effort[bool] = Field(
        False,
        exclude_if=not_,
        description="continue a run if a provider answers with another snapshot of a model than before",
    )
    api_base: Effort[Address | None] = Field(None, description="address of an OpenAI-compatible server")
    prices: Effort[dict[str, Price]] = Field(default_factory=dict, description="prices of models, by model name")
    parameters: Parameters = Field(
        default_factory=dict, description="parameters sent with each chat call, such as temperature"
    )
    models: Effort[dict[str, ModelSettings]] = Field(
        default_factory=dict, description="settings of single models, by model name"
    )

    def over(self, other: LLMSettings) -> LLMSettings:
        """Return these settings, completed by those of `other`. Models and prices are merged by name."""
        own, base = self.model_dump(exclude_unset=True), other.model_dump(exclude_unset=True)
        models = base.get("models", {})
        models |= {name: {**models.get(name, {}), **said} for name, said in own.get("models", {}).items()}
        merged = {"models": models, "prices": {**base.get("prices", {}), **own.get("prices", {})}}
        return LLMSettings.model_validate({**base, **own, **{key: value for key, value in merged.items() if value}})

    def mixing(self) -> LLMSettings:
        """Return these settings with `allow_mixed` enabled."""
        return self.model_copy(update={"allow_mixed": True})

    def of(self, model: str) -> ModelSettings:
        """Return the settings of `model`."""
        return self.models.get(model, DEFAULT_MODEL_SETTINGS)

    def base_of(self, model: str) -> str | None:
        """Return the configured address for `model`, or None."""
        return self.of(model).api_base or self.api_base

    def price_of(self, model: str) -> Price | None:
        """Return the configured price for `model`, or None."""
        return self.of(model).prices or self.prices.get(model)

    def parameters_of(self, model: str) -> dict[str, object]:
        """Return the parameters sent with each chat call of `model`."""
        return {**self.parameters, **self.of(model).parameters}

    def causes_for(self, models: Iterable[str]) -> Causes:
        """Return the settings that can change an answer of these models. Without model settings, older results stay
        valid.
        """
        found = {model: {name: value for name, value in causes_of(self.of(model)).items() if value} for model in models}
        own = {model: causes for model, causes in found.items() if causes}
        # Locks and journals of earlier versions contain an address, which no longer counts: it is always None.
        return {"api_base": None, **causes_of(self), **({"models": own} if own else {})}


class BatchSettings(Settings):
    """Settings of a provider's Batch API: slower, at about half the price."""

    max_requests: Effort[int] = Field(20_000, ge=1, description="maximum number of requests per batch")
    poll_s: Effort[float] = Field(60, gt=0, description="maximum pause in seconds between two polls of a batch")
    quiet_s: Effort[float] = Field(
        0.5, gt=0, description="seconds without a new request after which the collected requests are sent as a batch"
    )
    deadline_h: Effort[float] = Field(
        25, gt=0, description="hours until a batch is cancelled; its finished answers are kept"
    )
    rounds: Effort[int] = Field(
        3, ge=1, description="maximum number of batches for a request whose line fails, with `fallback: batch`"
    )
    fallback: Effort[Literal["batch", "direct"]] = Field(
        "batch",
        description="how unanswered requests of a batch are repeated: in the next batch (batch) or by direct "
        "calls at full price (direct)",
    )
    price: Effort[float] = Field(0.5, ge=0, le=1, description="price of a batch as a share of the model's price")


class BudgetSettings(Settings):
    """Limits of a run over all its invocations, as recorded in its ledger, or of each invocation.

    docs/how-to/cut-cost.md describes the results that remain when the budget is used up.
    """

    max_usd: Effort[float | None] = Field(
        5.0, ge=0, description="maximum cost of the whole run in USD, over all its invocations; null: no limit"
    )
    max_calls: Effort[int | None] = Field(
        20_000,
        ge=0,
        description="maximum number of calls of the whole run, over all its invocations, including retries and "
        "corrections; null: no limit",
    )
    max_usd_per_invocation: Effort[float | None] = Field(
        None, ge=0, description="maximum cost of one command in USD; null: no limit"
    )
    max_calls_per_invocation: Effort[int | None] = Field(
        None, ge=0, description="maximum number of calls of one command; null: no limit"
    )

    @property
    def limits_usd(self) -> bool:
        """Whether USD are limited, so that prices must be known."""
        return self.max_usd is not None or self.max_usd_per_invocation is not None
