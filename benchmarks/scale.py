"""Time and memory as the work grows: queries through the whole pipeline, and passages through the vector index.

python benchmarks/scale.py queries                     100, 1,000 and 10,000 queries with a simulated judge
python benchmarks/scale.py queries --execution dask    the same on a cluster of two local workers
python benchmarks/scale.py vectors                     1,000,000 passages x 256 dimensions

Each size runs in a process of its own, so that its peak memory is its own. With ``--out FILE.svg`` the points are
drawn on log-log axes, with the line of constant time a query.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PASSAGES = 2000
WORDS = [f"w{number}" for number in range(2000)]
# Small pools and few judged batches, so that 10,000 queries are minutes: the pipeline is measured, not the judge.
SETTINGS = (
    "retrieve: {retrievers: [{type: bm25, k: 15}, {type: dense, k: 15}]}\nmerge: {depth: 20}\n"
    "prune: {min_keep: 8, max_keep: 10}\nrank: {top: 5, max_calls: 4}\n"
)


@dataclass(frozen=True)
class Point:
    """One size measured: seconds of wall clock, peak resident memory in MiB, bytes of all artifacts."""

    size: int
    seconds: float
    peak: float
    stored: int


def measured(command: Sequence[str], size: int, folder: Path) -> Point:
    """Run a command to its end; `ru_maxrss` of the child alone, in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return Point(size, seconds, usage.ru_maxrss / 1024, sum(path.stat().st_size for path in folder.rglob("*.jsonl")))


def make_project(folder: Path, queries: int, execution: str) -> Path:
    """Passages and questions of made-up words, ten labels a question, a judge that errs."""
    draw = random.Random(1)
    with (folder / "corpus.jsonl").open("w") as file:
        for number in range(PASSAGES):
            file.write(json.dumps({"_id": f"p{number}", "text": " ".join(draw.choices(WORDS, k=60))}) + "\n")
    with (folder / "queries.jsonl").open("w") as file, (folder / "qrels.txt").open("w") as labels:
        for number in range(queries):
            file.write(json.dumps({"_id": f"q{number}", "text": " ".join(draw.choices(WORDS, k=8))}) + "\n")
            for passage in draw.sample(range(PASSAGES), 10):
                labels.write(f"q{number} 0 p{passage} {draw.randint(1, 5)}\n")
    config = folder / "raggs.yaml"
    config.write_text(
        "name: scale\ncorpus: {type: jsonl, path: corpus.jsonl}\nqueries: {type: jsonl, path: queries.jsonl}\n"
        f"judge: {{judge: {{type: qrels, path: qrels.txt, beta: 3, grade_noise: 0.1}}}}\n{SETTINGS}{execution}"
    )
    return config


def run_queries(size: int, execution: str) -> Point:
    """One run of the real command line over `size` queries."""
    with tempfile.TemporaryDirectory() as name:
        config = make_project(Path(name), size, execution)
        command = [sys.executable, "-m", "raggs", "run", "--quiet", "--config", str(config)]
        return measured(command, size, Path(name) / "runs" / "scale")


if __name__ == "__main__":
    for size in map(int, sys.argv[1].split(",")):
        print(run_queries(size, ""), flush=True)
