"""The benchmark of sweeps measures what it says."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from raggs.app.sweep import load_sweep, sweep

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(FOLDER))  # its files import each other as siblings, as a script's do
try:
    bench = importlib.import_module("sweep")
finally:
    sys.path.remove(str(FOLDER))


def test_runs_made_elsewhere_differ_in_skill_and_need_no_corpus(tmp_path):
    bench.write_runs(tmp_path, 4, 30)
    report = sweep(load_sweep(tmp_path / "sweep.yaml")).report
    means = [row.scores["ra_nwg@10"].mean for row in report.systems]
    assert means == sorted(means)
    assert report.choice.winner == "runfile-s0003"
    assert not (tmp_path / "corpus.jsonl").exists()


def test_a_made_up_collection_can_be_searched_and_is_handed_to_others_alike(tmp_path):
    source = bench.make_collection(tmp_path / "made", passages=120, queries=6)
    bench.write_sweep(tmp_path, source, {"mode": "lexical", "k": 10}, queries=4)
    report = sweep(load_sweep(tmp_path / "sweep.yaml", ["latency.passes=1", "latency.queries=1"])).report
    assert report.questions == 4
    assert report.systems[0].scores["recall@10" if not report.ceilings else "ra_nwg@10"].mean > 0.5
    bench.write_context_grid(tmp_path, source)
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    for span in rows[0]["gold"]:
        assert span["end"] == len((tmp_path / "docs" / span["doc_id"]).read_text())
    assert len(list((tmp_path / "docs").iterdir())) == 120


def test_worlds_of_early_dropping_count_lost_winners_and_work():
    lost, work = bench.halving_worlds(8, 120, 0.2, 5)
    assert lost == 0
    assert ((work > 0) & (work < 1)).any()
    assert bench.share(None) == "–"
    assert bench.share(-0.12) == "-12.0%"


def test_a_process_that_fails_is_no_time(tmp_path):
    with pytest.raises(bench.subprocess.CalledProcessError):
        bench.clock([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)
