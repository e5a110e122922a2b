"""Language models: structured answers, paid for once, within a budget.

The only package that knows litellm and openai, and it imports them at the first call that has to be paid.
"""

from __future__ import annotations

from raggs.llm.client import LLM
from raggs.llm.ledger import CallLedger, ask_for
from raggs.llm.messages import EmbedRequest, Message, Reply, Request, Usage
from raggs.llm.settings import BatchSettings, BudgetSettings, LLMSettings, Parameters, Price

__all__ = [
    "LLM",
    "BatchSettings",
    "BudgetSettings",
    "CallLedger",
    "EmbedRequest",
    "LLMSettings",
    "Message",
    "Parameters",
    "Price",
    "Reply",
    "Request",
    "Usage",
    "ask_for",
]
