"""A finished run."""

from __future__ import annotations

import pytest
from support.project import make_project

from raggs import load_config
from raggs import run as run_config


@pytest.fixture
def run(tmp_path):
    project = make_project(tmp_path, queries=2, corpus=20, rank={"top": 3, "max_calls": 3})
    return run_config(load_config(project.config)).store.folder
