"""A project whose judge is paid."""

from __future__ import annotations

from pathlib import Path

from support.llm_server import LLMServer
from support.project import Project, make_project

MODEL = "openai/judge"


def paying(folder: Path, server: LLMServer, usd: float = 1.0, queries: int = 3) -> Project:
    """A project whose judge asks `server`. `usd`: for a million tokens in; those out cost twice as much."""
    project = make_project(folder, queries=queries, corpus=24)
    prices = {MODEL: {"input": usd, "output": 2 * usd}}
    llm = {"api_base": server.url, "backoff_s": 0.01, "prices": prices}
    project.change(judge={"judge": {"type": "litellm", "model": MODEL}}, llm=llm)
    return project
