"""What tests of several packages share.

Hypothesis tries the same 10 examples per test in each run, and 300 others with `HYPOTHESIS_PROFILE=nightly`, which
also runs the tests marked `nightly`. `-m nightly` runs these alone, and the id of a test (`path::name`) runs that test.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from support.llm_server import LLMServer

# As the command sets it before numpy is loaded: threads of BLAS that have nothing to do sleep.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# The matrices of the tests are small: a second thread waits for the first, on a processor that another worker needs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Speed is measured in benchmarks, never in a test.
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=300)
# Else each process that a test starts would compile raggs anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# In memory, where there is enough, nobody waits for a disk; tests whose processes are killed need none.
MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
settings.load_profile(PROFILE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than processors: some tests wait for servers, time-outs and processes that end."""
    return (os.cpu_count() or 1) + 2


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
    if hasattr(config, "workerinput"):  # compiling assertions that explain themselves costs each worker 20 s
        sys.meta_path.remove(config.pluginmanager.rewrite_hook)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect garbage only in tests: all that is made before them stays, and is not looked through again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `nightly`, unless they are asked for.

    `nightly(keep=2)` leaves two cases of a parametrized test in every run, the first and the last.
    """
    if PROFILE == "nightly" or "nightly" in config.option.markexpr:
        return
    asked = tuple(argument.split("::", 1)[1] for argument in config.args if "::" in argument)
    cases: dict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("nightly")
        if mark and not item.nodeid.split("::", 1)[1].startswith(asked):
            cases[item.path, getattr(item, "originalname", item.name), mark.kwargs.get("keep", 0)].append(item)
    left_out: set[pytest.Item] = set()
    for (_, _, keep), found in cases.items():
        kept = {round(place * (len(found) - 1) / max(keep - 1, 1)) for place in range(keep)}
        left_out.update(item for place, item in enumerate(found) if place not in kept)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


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
