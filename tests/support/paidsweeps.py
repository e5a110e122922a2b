"""A sweep whose rewriter, embedder and rerankers are paid, and what its server was asked and paid."""

from __future__ import annotations

import json
from math import fsum
from pathlib import Path
from typing import Any

from support.llm_reranks import tokens as rerank_tokens
from support.llm_server import LLMServer
from support.sweeping import SweepProject, make_sweep

EMBEDDER, REWRITER = "openai/embedder", "openai/rewriter"
RERANKERS = {"litellm": "openai/reranker", "listwise": "openai/orderer", "pointwise": "openai/pointer"}
MODELS = (EMBEDDER, REWRITER, *RERANKERS.values())
PRICE = {"input": 1.0, "output": 2.0}
COUNT = 4


def paid_sweep(folder: Path, server: LLMServer, **keys: Any) -> SweepProject:
    """Four questions; a system for each reranker and one without, over a paid embedder, with and without a rewriter."""
    rerankers: list[Any] = ["none", *({"type": kind, "model": model} for kind, model in RERANKERS.items())]
    llm = {"api_base": server.url, "backoff_s": 0.001, "timeout_s": 2, **keys.pop("llm", {})}
    axes = {
        "rewrite": ["none", {"type": "llm", "model": REWRITER}],
        "embedder": {"type": "litellm", "model": EMBEDDER, "dims": 8},
        "mode": "dense",
        "k": [6],
        "reranker": rerankers,
        **keys.pop("axes", {}),
    }
    return make_sweep(
        folder,
        count=COUNT,
        size=24,
        judged=24,
        axes=axes,
        llm=llm,
        prices=dict.fromkeys(MODELS, PRICE),
        cutoffs=[3, 6],
        **keys,
    )


def usd_of(body: dict[str, Any]) -> float:
    """What the server's good answer to a request costs, all models at one price; texts that come back are not in it."""
    if "input" in body:
        return sum(map(len, body["input"])) // 4 / 1e6
    if "documents" in body:
        return rerank_tokens(body) / 1e6
    return sum(len(message["content"]) for message in body["messages"]) // 4 / 1e6


def booked(project: SweepProject) -> list[dict[str, Any]]:
    """The lines of the sweep's ledger."""
    path = project.out / "llm.ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def calls(project: SweepProject) -> int:
    return sum(line["attempts"] for line in booked(project))


def usd(project: SweepProject) -> float:
    return fsum(line["usd"] for line in booked(project))
