"""A paid project and the server that it asks, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.llm_server import LLMServer
from support.paying import KEY, paying
from support.project import Project


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LLMServer]:
    """Answers whoever has a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as running:
        yield running


@pytest.fixture
def project(server: LLMServer, tmp_path: Path) -> Project:
    """Three questions, whose judge asks the server at a low price."""
    return paying(tmp_path, server)
