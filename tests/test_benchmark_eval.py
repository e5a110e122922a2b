"""The evaluation benchmark compares like with like."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "eval.py"
spec = importlib.util.spec_from_file_location("benchmark_eval", SCRIPT)
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)


@pytest.mark.nightly
def test_files_are_made_once_and_both_tools_find_the_same_in_them(tmp_path):
    qrels, run = bench.write_files(tmp_path, 3000)
    made = run.stat().st_mtime_ns
    assert bench.write_files(tmp_path, 3000) == (qrels, run)
    assert run.stat().st_mtime_ns == made
    assert len(run.read_text().splitlines()) == 3000
    assert len(qrels.read_text().splitlines()) == 300
    printed = {
        name: subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
        for name, command in bench.commands(qrels, run).items()
    }
    theirs = {line.split()[0].lower(): line.split()[1] for line in printed["ir_measures"].splitlines()}
    rows = [line.split() for line in printed["raggs eval"].splitlines()[2:]]
    ours = {row[0]: row[1] for row in rows if len(row) > 1 and row[1][:1].isdigit()}  # below them stands their legend
    for name, other in (("ndcg@10", "ndcg@10"), ("recall@1000", "r@1000"), ("map", "ap"), ("mrr@10", "rr@10")):
        assert float(ours[name]) == pytest.approx(float(theirs[other]), abs=2e-4)


def test_times_are_the_least_and_memory_the_largest_of_a_process():
    cost = bench.clock([bench.sys.executable, "-c", "import time; b = bytes(50_000_000); time.sleep(0.05)"], 2)
    assert cost.seconds >= 0.05
    assert cost.memory >= 47
    with pytest.raises(subprocess.CalledProcessError):
        bench.clock([bench.sys.executable, "-c", "raise SystemExit(3)"], 1)


def test_worlds_are_sorted_and_hold_the_judged_where_they_say():
    world = bench.make_world(5)
    assert (np.diff(world.score, axis=1) <= 0).all()
    assert world.place.shape == world.grade.shape == (5, bench.JUDGED)
    assert all(len(set(places)) == bench.JUDGED for places in world.place.tolist())


def test_ties_cost_and_bias_are_printed(capsys):
    bench.compare_ties(4, shuffles=2, repeats=1)
    printed = capsys.readouterr().out
    assert "Ties: 4,000 lines in float16" in printed
    assert "map@100" in printed
