"""Language models: structured answers, paid for once, within a budget. No other package calls providers.

client            the entry point, `LLM`; it needs settings, a budget, a folder and a ledger, and no run
messages          requests and replies; `settings`: what the user configures
conversation      repeats a request until its answer can be used; `embedding`, `reranking`: vectors and scores
caller            concurrency, shared work, attempts; `rate`: rate limits and retries
calls             one call as a value, and the keys under which the cache holds its answer
providers         sends a call over HTTP or through litellm
faults            what can go wrong, what is done about it, and what headers say about limits
budget, prices    what may be spent, what it costs, token counts, keys
ledger, cache     what was spent, and the answers that were paid for
batch, batch_api  the same requests through a provider's Batch API
rehearsal         models that only remember: what a dry run calls

Servers of OpenAI's protocol (chat, embeddings, files, batches), and rerankers with a configured address, are called
over aiohttp. Every other provider, and every parameter outside the protocol, goes through litellm. The openai package
is not called: it would be a third path to the same servers, with its own retries, time-outs and clients.

litellm, aiohttp and diskcache are imported at the first call that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raggs.llm.budget import BudgetSpent
    from raggs.llm.client import LLM
    from raggs.llm.ledger import CallLedger
    from raggs.llm.messages import CallUsage, ChatRequest, EmbedRequest, Message, Reply, RerankRequest, RerankScores
    from raggs.llm.settings import BatchSettings, BudgetSettings, LLMSettings, Parameters, Price

__all__ = [
    "LLM",
    "BatchSettings",
    "BudgetSettings",
    "BudgetSpent",
    "CallLedger",
    "CallUsage",
    "ChatRequest",
    "EmbedRequest",
    "LLMSettings",
    "Message",
    "Parameters",
    "Price",
    "Reply",
    "RerankRequest",
    "RerankScores",
]

# Each name is imported from its module when it is first used: what a run has noted is read without a client.
_MODULES = {
    "BatchSettings": "raggs.llm.settings",
    "BudgetSettings": "raggs.llm.settings",
    "BudgetSpent": "raggs.llm.budget",
    "CallLedger": "raggs.llm.ledger",
    "CallUsage": "raggs.llm.messages",
    "ChatRequest": "raggs.llm.messages",
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
