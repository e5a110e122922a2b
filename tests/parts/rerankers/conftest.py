"""A server, and rerankers that ask it, each in a workspace of its own over one workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from support.llm_server import LLMServer

from raggs.base.artifacts import Passage
from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts.rerankers import REGISTRY, Reranker, Reranking
from raggs.parts.workspace import Workspace


class Bench(NamedTuple):
    """A reranker in its workspace; `told`: what a user heard."""

    who: Reranker
    workspace: Workspace
    told: list[Any]

    def ask(self, passages: list[Passage], query: str = "what?", language: str = "en") -> Reranking:
        return self.workspace.loop.run(self.who.rerank(query, language, passages))


@pytest.fixture
def bench(server: LLMServer, tmp_path) -> Iterator[Callable[..., Bench]]:
    made: list[Workspace] = []

    def new(kind: str, *, max_usd: float | None = 1.0, llm: dict[str, Any] | None = None, **config: Any) -> Bench:
        settings = {"api_base": server.url, "backoff_s": 0.001, **(llm or {})}
        told: list[Any] = []
        budget = BudgetSettings(max_usd=max_usd)
        workspace = Workspace(tmp_path / "runs", LLMSettings(**settings), budget, hear=told.append)
        made.append(workspace)
        return Bench(workspace.reranker(REGISTRY.load(kind).Config(**config)), workspace, told)

    yield new
    for workspace in made:
        workspace.close()
