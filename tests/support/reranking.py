"""Rerankers that ask a server on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from raggs.base.artifacts import Passage
from raggs.base.errors import ProviderError
from raggs.parts.rerankers import RerankerConfig
from raggs.parts.workspace import Workspace
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate
from support.llm_server import LLMServer

KEY = "none-of-your-business"
KNOWN = "openai/gpt-5-nano"  # any name whose price is known


def asked_at_a_server(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings for a contract's case: a model, and a server behind it as long as the test runs."""
    server = LLMServer()
    server.__enter__()
    request.addfinalizer(lambda: server.__exit__(None, None, None))
    patch = pytest.MonkeyPatch()
    request.addfinalizer(patch.undo)
    patch.setenv("OPENAI_API_KEY", KEY)
    patch.setenv("OPENAI_BASE_URL", server.url)
    return {"model": KNOWN}


def counted(workspace: Workspace, config: RerankerConfig, passages: Sequence[Passage], query: str) -> CostEstimate:
    """What a dry run says of one question to a reranker, of which nothing was paid for."""
    with workspace.rehearsal(remembers=False) as llm:
        with suppress(ProviderError):  # as nobody answers
            workspace.loop.run(workspace.reranker(config, llm).rerank(query, "en", passages))
        (line,) = lines_of(llm)
    return line
