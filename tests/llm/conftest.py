"""Servers and layers for the tests of this folder, with pauses too short to notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.llm_bench import KEY, Bench
from support.llm_server import LLMServer

from raggs.llm.providers import library


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`with bench(faults=[...]) as b:`"""
    library()  # its import takes seconds, which no test should time

    @contextmanager
    def start(**behaviour: Any) -> Iterator[Bench]:
        with LLMServer(**behaviour) as server:
            yield Bench(server, tmp_path)

    return start
