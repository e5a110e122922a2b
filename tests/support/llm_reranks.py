"""What a server of rerankers says: Cohere's form, or Voyage's where `top_k` is asked for; spoiled on demand.

Best first, as all servers do, so that only `index` says whose score it is.
"""

from __future__ import annotations

import math
import random
from typing import Any

# What makes an answer unusable, each in its own way.
SPOILT = (
    "fewer results",
    "more results",
    "repeated index",
    "unknown index",
    "boolean index",
    "no results",
    "nan score",
    "infinite score",
    "huge score",
    "null score",
    "text score",
    "true score",
)
BAD_SCORES = {
    "nan score": math.nan,
    "infinite score": math.inf,
    "huge score": int("9" * 400),
    "null score": None,
    "text score": "0.5",
    "true score": True,
}


def relevance(query: str, passage: str) -> float:
    """A score that depends on nothing but the texts."""
    return round(random.Random(f"{query} / {passage}").random(), 6)


def tokens(body: dict[str, Any]) -> int:
    """What this server counts: the query once for each passage."""
    return sum(len(body["query"]) + len(text) for text in body["documents"]) // 4


def scores(body: dict[str, Any], fault: str, *, counted: bool = True) -> dict[str, Any]:
    found = [
        {"index": place, "relevance_score": relevance(body["query"], text)}
        for place, text in enumerate(body["documents"])
    ]
    found.sort(key=lambda item: -item["relevance_score"])
    _spoil(found, fault)
    answer: dict[str, Any] = {"id": "rerank-1", "data" if "top_k" in body else "results": found}
    if counted:
        sent = tokens(body)
        units = {"search_units": -(-len(body["documents"]) // 100), "total_tokens": sent}
        answer |= {"usage": {"total_tokens": sent, "prompt_tokens": sent}, "meta": {"billed_units": units}}
    return answer


def _spoil(found: list[dict[str, Any]], fault: str) -> None:
    match fault:
        case "fewer results":
            found.pop()
        case "more results":
            found.append({"index": len(found), "relevance_score": 0.5})
        case "repeated index":
            found[-1]["index"] = found[0]["index"]
        case "unknown index":
            found[-1]["index"] = len(found)
        case "boolean index":
            found[-1]["index"] = True
        case "no results":
            found.clear()
        case _ if fault in BAD_SCORES:
            found[-1]["relevance_score"] = BAD_SCORES[fault]
