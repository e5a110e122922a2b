"""A process that may open no more files says so, and never that what it could not open is damaged."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.project import environment, make_project, raggs

from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.base.errors import ProviderError
from raggs.base.files import HANDLES
from raggs.llm.cache import AnswerCache
from raggs.parts.indexes.lexical import Parameters, open_lexical
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import open_vectors


@contextmanager
def no_more_files(spare: int = 0) -> Iterator[None]:
    """At most `spare` more files can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    taken: list[int] = []
    try:
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        for handle in taken[:spare]:
            os.close(handle)
        yield
    finally:
        for handle in taken[spare:]:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("spare", range(4))
def test_indexes_and_caches_are_not_called_damaged(spare: int, tmp_path: Path) -> None:
    passages = [Passage(doc_id=f"p{number}", title="", text=f"amber brook {number}") for number in range(20)]
    store = PassageStore.build(tmp_path / "passages.db", passages)
    open_lexical(Cache(tmp_path), store, Parameters(1.2, 0.75, "en"))
    AnswerCache(tmp_path / "llm").close()
    openers = [
        lambda: PassageStore.open(tmp_path / "passages.db"),
        lambda: open_lexical(Cache(tmp_path), store, Parameters(1.2, 0.75, "en")),
        lambda: open_vectors(Cache(tmp_path), "e", 4, store, lambda texts: np.eye(len(texts), 4, dtype=np.float32)),
        lambda: AnswerCache(tmp_path / "llm"),
    ]
    for opener in openers:
        with no_more_files(spare):
            try:
                opener()
            except ProviderError as error:
                message = str(error)
            except OSError as error:  # the command line's boundary names it
                message = "ulimit -n" if error.errno in HANDLES else str(error)
            else:
                message = "opened, with what was left"
        assert "damaged" not in message
        assert "opened" in message or "ulimit -n" in message


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("limit", [6, 8, 11, 16])
def test_a_command_says_so(limit: int, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=10)
    assert raggs("run", "--config", project.config, "--quiet", "--to", "merge").returncode == 0
    command = f"ulimit -n {limit}; exec {sys.executable} -m raggs run --config {project.config} --quiet --from retrieve"
    found = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment(), timeout=120, check=False
    )
    assert "damaged" not in found.stderr
    assert "Traceback" not in found.stderr
    assert found.returncode == 0 or ("oo many" in found.stderr and len(found.stderr.splitlines()) == 1)
