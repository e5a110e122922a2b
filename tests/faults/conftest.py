"""The code of benchmarks/faults.py and a bench for all tests of this folder."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "faults.py"


@pytest.fixture(scope="session")
def faults():
    spec = importlib.util.spec_from_file_location("benchmark_faults", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look for it
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    yield module
    monkeypatch.undo()


@pytest.fixture(scope="session")
def b(faults, tmp_path_factory):
    with faults.bench(tmp_path_factory.mktemp("faults")) as made:
        yield made
