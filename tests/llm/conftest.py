"""Servers and layers for the tests of this folder, with pauses too short to notice."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.llm_bench import Bench
from support.llm_server import KEY, LLMServer

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


@pytest.fixture
def busy_port() -> Iterator[int]:
    """A port that listens, and whose queue of connections is full: whoever connects waits."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
