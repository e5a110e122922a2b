"""Latencies in run files, such as those of imported traces: read, checked and shown with --details."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.project import raggs

from raggs.base.errors import DataError
from raggs.parts.run_files import read_run

ROWS = [("q1", "a", 1, 2.0, 100), ("q1", "b", 2, 1.0, 100), ("q2", "a", 1, 2.0, 50.5), ("q3", "a", 1, 2.0, None)]
NAMES = ("qid", "doc_id", "rank", "score", "latency_ms")


def written(path: Path, rows: list[tuple[object, ...]] | None = None) -> Path:
    rows = ROWS if rows is None else rows
    if path.suffix == ".csv":
        cells = [",".join("" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join([",".join(NAMES), *cells]) + "\n", encoding="utf-8")
    else:
        objects = [{name: value for name, value in zip(NAMES, row, strict=True) if value is not None} for row in rows]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in objects), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["run.csv", "run.jsonl"])
def test_each_query_counts_once(name: str, tmp_path: Path) -> None:
    latency = read_run(written(tmp_path / name)).latency
    assert latency is not None
    assert (latency.queries, latency.p50_ms) == (2, 75.25)
    assert latency.p95_ms == pytest.approx(97.525)


def test_a_file_without_latencies_has_none(tmp_path: Path) -> None:
    assert read_run(written(tmp_path / "run.jsonl", [(*row[:4], None) for row in ROWS])).latency is None
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 2.0 x\n", encoding="utf-8")
    assert read_run(tmp_path / "run.trec").latency is None


@pytest.mark.parametrize("name", ["run.csv", "run.jsonl"])
@pytest.mark.parametrize(
    ("value", "words"),
    [(-1, "not a number of at least 0"), ("fast", "not a number of at least 0"), (7, "differs from another row")],
)
def test_wrong_latencies_name_file_and_line(name: str, value: object, words: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, [ROWS[0], (*ROWS[1][:4], value)])
    with pytest.raises(DataError, match=words) as caught:
        read_run(path)
    assert caught.value.line == (3 if path.suffix == ".csv" else 2)


def test_details_show_the_latency_of_the_systems_that_state_it(tmp_path: Path) -> None:
    labels = [{"qid": qid, "doc_id": "a", "grade": 5} for qid in ("q1", "q2", "q3")]
    (tmp_path / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in labels), encoding="utf-8")
    (tmp_path / "plain.trec").write_text("q1 Q0 a 1 2.0 x\n", encoding="utf-8")
    logged = written(tmp_path / "logged.jsonl")
    words = ("eval", "-g", tmp_path / "labels.jsonl", "-r", logged, "-r", tmp_path / "plain.trec", "-m", "ndcg@2")
    assert "latency p50" not in raggs(*words).stdout
    shown = raggs(*words, "--details", "--out", tmp_path / "out")
    assert shown.returncode == 0, shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("latency p")]
    assert [row[-1] for row in rows] == ["75", "98"]
    report = json.loads((tmp_path / "out" / "eval.json").read_text(encoding="utf-8"))
    assert report["systems"][0]["latency"] == {"queries": 2, "p50_ms": 75.25, "p95_ms": pytest.approx(97.525)}
    assert "latency" not in report["systems"][1]
    assert "| latency p50 (ms) | 75" in (tmp_path / "out" / "eval.md").read_text(encoding="utf-8")
    assert raggs("audit", tmp_path / "out" / "eval.json").returncode == 0
