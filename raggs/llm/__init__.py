"""Language models: structured answers, paid for once, within a budget. No other package calls providers of models.

client            the entry point, `LLM`; needs settings, a budget, a folder and a ledger, but no run
messages          requests and replies
settings          user settings
conversation      repeats a request until its answer is usable
embedding         vectors of texts
reranking         scores of passages
caller            concurrency, shared work, attempts
rate              rate limits and retries
calls             one call as a value, and the cache keys of answers
providers         sends a call over HTTP or through litellm
faults            errors of providers, their treatment, and limits stated in headers
budget, prices    limits, prices, token counts, keys
ledger, cache     recorded cost, and paid answers
batch, batch_api  the same requests through a provider's Batch API
rehearsal         models that answer only from the cache, for dry runs

Models of the provider `openai`, at OpenAI or at other addresses with its protocol, are called with aiohttp. So are
Batch APIs, and most rerankers with a configured address. All other providers and parameters go through litellm. The
openai package is not used: it would be a third path to the same servers, with its own retries, time-outs and clients.

litellm, aiohttp and diskcache are imported at the first call that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raggs.llm.budget import BudgetSpent
    from raggs.llm.client import LLM
    from raggs.llm.ledger import CallLedger
    from raggs.llm.messages import (
        CallUsage,
        ChatRequest,
        DecisionRequest,
        EmbedRequest,
        Message,
        Reply,
        RerankRequest,
        RerankScores,
    )
    from raggs.llm.settings import BatchSettings, BudgetSettings, LLMSettings, Parameters, Price

__all__ = [
    "LLM",
    "BatchSettings",
    "BudgetSettings",
    "BudgetSpent",
    "CallLedger",
    "CallUsage",
    "ChatRequest",
    "DecisionRequest",
    "EmbedRequest",
    "LLMSettings",
    "Message",
    "Parameters",
    "Price",
    "Reply",
    "RerankRequest",
    "RerankScores",
]

# Names are imported from their modules on first use, so that records of a run can be read without a client.
_MODULES = {
    "BatchSettings": "raggs.llm.settings",
    "BudgetSettings": "raggs.llm.settings",
    "BudgetSpent": "raggs.llm.budget",
    "CallLedger": "raggs.llm.ledger",
    "CallUsage": "raggs.llm.messages",
    "ChatRequest": "raggs.llm.messages",
    "DecisionRequest": "raggs.llm.messages",
    "EmbedRequest": "raggs.llm.messages",
    "LLM": "raggs.llm.client",
    "LLMSettings": "raggs.llm.settings",
    "Message": "raggs.llm.messages",
    "Parameters": "raggs.llm.settings",
    "Price": "raggs.llm.settings",
    "Reply": "raggs.llm.messages",
    "RerankRequest": "raggs.llm.messages",
    "RerankScores": "raggs.llm.messages",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'raggs.llm' has no attribute {name!r}")
    found: object = getattr(import_module(_MODULES[name]), name)
    return found
