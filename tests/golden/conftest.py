"""A finished run."""

from __future__ import annotations

import pytest
from support.project import make_project

from raggs import load_config
from raggs import run as run_config


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("finished"), queries=2, corpus=20, rank={"top": 3, "max_calls": 3})
    run_config(load_config(project.config))
    return project


@pytest.fixture
def run(finished, tmp_path):
    return finished.copied(tmp_path / "project").run
