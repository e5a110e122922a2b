"""What the user says about language models: how to ask, what it may cost, what it does cost.

Only `api_base`, `max_repairs` and `parameters` can change what comes out; the rest is `Effort`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from raggs.hashing import canonical_json
from raggs.secrets import held
from raggs.settings import Effort, Settings

# Set by raggs itself, or no business of a file that others may read.
RESERVED = frozenset(
    {"api_base", "base_url", "extra_headers", "headers", "max_retries", "messages", "model", "n", "num_retries"}
    | {"response_format", "stream", "timeout", "tools"}
)


def _completion_parameters(parameters: dict[str, object]) -> dict[str, object]:
    if found := next(held(parameters), None):
        raise ValueError(f"{found.why}; set the provider's environment variable instead")
    if taken := sorted(RESERVED & set(parameters)):
        raise ValueError(f"{', '.join(taken)}: set by raggs itself")
    canonical_json(parameters)  # they are part of cache keys; NaN and objects are refused here
    return parameters


Parameters = Annotated[dict[str, object], AfterValidator(_completion_parameters)]


def _without_password(address: str) -> str:
    if found := next(held(address), None):
        raise ValueError(f"{found.why}; set the provider's environment variable instead")
    return address


Address = Annotated[str, AfterValidator(_without_password)]


class Price(Settings):
    """What a model charges, in USD per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)

    def times(self, share: float) -> Price:
        """A share of this price."""
        return Price(input=share * self.input, output=share * self.output)

    def usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of one call in USD. Discounts for prompts the provider remembers are ignored: an upper bound."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000


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
    outage_after: Effort[int | None] = Field(
        20, ge=1, description="calls in a row that failed after all their tries until the run stops; null: it goes on"
    )
    max_repairs: int = Field(2, ge=0, description="corrective questions after an answer that cannot be used")
    api_base: Address | None = Field(None, description="address of an OpenAI-compatible server")
    prices: Effort[dict[str, Price]] = Field(default_factory=dict, description="USD per 1M tokens, by model")
    parameters: Parameters = Field(default_factory=dict, description="sent with each call, such as temperature")


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
    """What a run may spend, over all invocations of `raggs run` that its ledger knows; or each of them."""

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
