"""benchmarks/decision.py runs, and its worlds are what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).resolve().parents[3] / "benchmarks" / "decision.py"
spec = importlib.util.spec_from_file_location("benchmark_of_decisions", PATH)
assert spec is not None and spec.loader is not None
benchmark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)


def test_every_part_is_measured(capsys):
    benchmark.measure_time(40, 50)
    printed = capsys.readouterr().out
    assert "| leave-one-out of pools of 10 |" in printed and "Peak memory" in printed


def test_rare_failures_have_one_best_system():
    values = benchmark.rare_failures(6, 100)
    means = values.mean(axis=1)
    assert means.argmax() == 0 and means[1:].tolist() == pytest.approx([means[1]] * 5)
    assert (values[1:] > values[0]).mean() == 0.95


def test_a_played_sweep_counts_its_work():
    values = benchmark.table(6, 120, 0.3)
    kept, work = benchmark.play(values, benchmark.bets, 1)
    assert kept and 0.25 < work < 1
    everything = benchmark.play(values, lambda part, counts, total: list(range(6)), 1)
    assert everything == (True, 1.0)
    nobody = benchmark.play(values, lambda part, counts, total: np.flatnonzero(values.mean(axis=1) < 0.2).tolist(), 1)
    assert not nobody[0]
