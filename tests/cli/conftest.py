"""A paid project and the server that it asks, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.llm_server import LLMServer
from support.paying import paying
from support.project import Project


@pytest.fixture
def project(server: LLMServer, tmp_path: Path) -> Project:
    """Three questions, whose judge asks the server at a low price."""
    return paying(tmp_path, server)
