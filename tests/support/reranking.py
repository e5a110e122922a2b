"""Rerankers that ask a server on this machine."""

from __future__ import annotations

from typing import Any

import pytest

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
