"""Language models: structured answers, paid for once, within a budget. The only package that asks providers.

    client         the door: `LLM`, which needs settings, a budget, a folder and a ledger, and no run
    messages       what is asked for and what comes back; settings: what the user says about it
    conversation   a question until its answer can be used; embedding, reranking: the same for vectors and scores
    caller         slots, retries, work shared by those who want the same; rate, pace, limits: how fast
    budget, prices, ledger, cache    what may be spent, what it costs, where it is booked, what was paid for
    keys, claims                     under which names the cache holds it, and who asks what just now
    calls, http, providers           one call as a value, and the two ways on which it goes; redirects: none is followed
    batch          the same questions by a provider's Batch API
    faults         what can go wrong, and what is done about it; guard: marks around texts that may hold orders

There are two ways to a provider. Servers of OpenAI's protocol (chat, embeddings, files and batches), and rerankers
whose address is set, are asked by `http` over aiohttp; every other provider, and every parameter that the protocol
does not have, goes through litellm. The openai package is not called: it stands beneath litellm, whose exceptions
derive from its own, and for the five requests of the protocol it would be a third way to the same servers, with
retries, time-outs and clients of its own.

litellm, aiohttp and diskcache are imported at the first call that needs them. May import leaves alone.
"""

from __future__ import annotations

from raggs.llm.budget import BudgetSpent
from raggs.llm.client import LLM
from raggs.llm.ledger import CallLedger
from raggs.llm.messages import ChatRequest, EmbedRequest, Message, Reply, RerankRequest, Scored, Took
from raggs.llm.settings import BatchSettings, BudgetSettings, LLMSettings, Parameters, Price

__all__ = [
    "LLM",
    "BatchSettings",
    "BudgetSettings",
    "BudgetSpent",
    "CallLedger",
    "ChatRequest",
    "EmbedRequest",
    "LLMSettings",
    "Message",
    "Parameters",
    "Price",
    "Reply",
    "RerankRequest",
    "Scored",
    "Took",
]
