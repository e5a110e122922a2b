"""What tests of several packages share.

Hypothesis tries the same 10 examples per test in each run, and 300 others with `HYPOTHESIS_PROFILE=nightly`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from support.llm_server import LLMServer

# As the command sets it before numpy is loaded: threads of BLAS that have nothing to do sleep.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# Speed is measured in benchmarks, never in a test.
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: some tests wait for servers, time-outs and processes that end."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Neighbours go to the same worker, which makes what a module's tests share once.

    What a shell starts in the background ignores interrupts, and so would the commands that the tests start. The same
    holds for SIGHUP under nohup.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if config.getoption("dist", None) == "load":
        config.option.dist = "worksteal"


@pytest.fixture(scope="session")
def elastic_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks Elasticsearch's protocol, one for the whole session."""
    from support.elastic import running

    with running(tmp_path_factory.mktemp("elastic")) as url:
        yield url


@pytest.fixture
def provider_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that every `LLMServer` takes."""
    from support.llm_server import KEY

    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server(provider_key: None) -> Iterator[LLMServer]:
    """Answers as providers of language models do, whoever is told its address."""
    from support.llm_server import LLMServer

    with LLMServer() as running:
        yield running


@pytest.fixture(autouse=True)
def no_elastic_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have credentials for a real server; none of them goes anywhere."""
    for name in ("ELASTIC_API_KEY", "ELASTIC_USERNAME", "ELASTIC_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_secret_outlives_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test made known as a secret is not hidden in the texts of the next."""
    from raggs.base import secrets

    monkeypatch.setattr(secrets, "_remembered", set())
