"""Compare the time and memory of `raggs eval`, ir_measures and pytrec_eval, and of scoring with and without ties.

    python benchmarks/eval.py                 runs of 10^5, 10^6 and 10^7 lines
    python benchmarks/eval.py --quick         without 10^7

Each tool is a separate process, reads the same two files and computes the same ten metrics. The best of several times
counts. raggs also computes its bootstrap intervals. pytrec_eval reads with plain Python and computes the eight
metrics that trec_eval has. For RR@10 and Judged@10, ir_measures calls other tools, which about doubles its time. Runs
have 1,000 passages per query, of which 100 are judged. Existing files are used again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measures

DEPTH, JUDGED = 1000, 100
MEASURES = (
    "nDCG@10", "nDCG@100", "P@5", "P@10", "R@100", "R@1000", "Success@10", "RR@10", "AP", "Judged@10",
)  # fmt: skip
TIED = ("nDCG@10", "P@10", "R@100", "RR@10", "AP@100", "F1@10", "Success@10")
PYTREC_EVAL = """
import sys
import pytrec_eval
qrels, run = {}, {}
with open(sys.argv[1]) as file:
    for line in file:
        qid, _, doc_id, grade = line.split()
        qrels.setdefault(qid, {})[doc_id] = int(grade)
with open(sys.argv[2]) as file:
    for line in file:
        qid, _, doc_id, _, score, _ = line.split()
        run.setdefault(qid, {})[doc_id] = float(score)
names = {"ndcg_cut.10,100", "P.5,10", "recall.100,1000", "success.10", "map"}
found = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
for name in next(iter(found.values())):
    print(name, sum(values[name] for values in found.values()) / len(qrels))
"""


class Cost(NamedTuple):
    """Elapsed time and processor time in seconds, and peak memory in MiB."""

    seconds: float
    cpu: float
    memory: float


class World(NamedTuple):
    """Descending scores, shape (queries, DEPTH), and grades with their ranks, shape (queries, JUDGED)."""

    score: np.ndarray
    grade: np.ndarray
    place: np.ndarray


def make_world(queries: int, seed: int = 1) -> World:
    """Return grades from 0 to 3, of which high ones are rare, and scores that depend slightly on them."""
    rng = np.random.default_rng(seed)
    grade = rng.choice(4, size=(queries, JUDGED), p=[0.7, 0.15, 0.1, 0.05])
    score = rng.normal(size=(queries, DEPTH))
    score[:, :JUDGED] += grade
    order = np.argsort(-score, axis=1)
    return World(np.take_along_axis(score, order, axis=1), grade, np.argsort(order, axis=1)[:, :JUDGED])


def write_files(folder: Path, lines: int) -> tuple[Path, Path]:
    """Return qrels and a run of this many lines. Write them if they do not exist."""
    qrels, run = folder / f"{lines}.qrels", folder / f"{lines}.run"
    if run.exists():
        return qrels, run
    world = make_world(lines // DEPTH)
    rng = np.random.default_rng(2)
    with qrels.open("w") as labels, (folder / "unfinished").open("w") as rows:
        for number, (scores, grades, places) in enumerate(zip(*world, strict=True)):
            docs = rng.choice(9_000_000, size=DEPTH, replace=False).tolist()
            labels.writelines(
                f"q{number} 0 msmarco_{docs[place]} {grade}\n"
                for place, grade in zip(places.tolist(), grades.tolist(), strict=True)
            )
            rows.writelines(
                f"q{number} Q0 msmarco_{doc} {rank} {score:.6f} made\n"
                for rank, (doc, score) in enumerate(zip(docs, scores.tolist(), strict=True), start=1)
            )
    (folder / "unfinished").replace(run)
    return qrels, run


def clock(command: Sequence[object], repeats: int) -> Cost:
    """Return the best times of a command over some repeats, and its largest peak memory."""
    costs = []
    for _ in range(repeats):
        began = time.perf_counter()
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        costs.append(Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return Cost(
        min(cost.seconds for cost in costs), min(cost.cpu for cost in costs), max(cost.memory for cost in costs)
    )


def commands(qrels: Path, run: Path) -> dict[str, list[object]]:
    python = sys.executable
    return {
        "raggs eval": [python, "-m", "raggs", "eval", "-g", qrels, "-r", run, "-m", ",".join(MEASURES)],
        "ir_measures": [python, "-m", "ir_measures", qrels, run, *MEASURES],
        "pytrec_eval": [python, "-c", PYTREC_EVAL, qrels, run],
    }


def compare_tools(folder: Path, sizes: Sequence[int], repeats: int) -> None:
    print(f"{'lines':>12}  {'tool':<12} {'seconds':>8} {'cpu':>8} {'MiB':>7}  relative to ir_measures: elapsed, cpu")
    for lines in sizes:
        files = write_files(folder, lines)
        times = 1 if lines > 10**6 else repeats
        found = {name: clock(command, times) for name, command in commands(*files).items()}
        for name, cost in found.items():
            wall, cpu = cost.seconds / found["ir_measures"].seconds, cost.cpu / found["ir_measures"].cpu
            numbers = f"{cost.seconds:>8.2f} {cost.cpu:>8.2f} {cost.memory:>7.0f}  {wall:>20.2f} {cpu:>4.2f}"
            print(f"{lines:>12,}  {name:<12} {numbers}", flush=True)


def columns_of(world: World, ids: np.ndarray) -> tuple[Qrels, Run]:
    """Return the qrels and the run with these passage ids, shape (queries, DEPTH)."""
    names = [[f"d{number}" for number in row] for row in ids.tolist()]
    labels = {
        f"q{query}": {names[query][place]: grade for place, grade in zip(places, grades, strict=True)}
        for query, (places, grades) in enumerate(zip(world.place.tolist(), world.grade.tolist(), strict=True))
    }
    lists = {
        f"q{query}": dict(zip(row, scores, strict=True))
        for query, (row, scores) in enumerate(zip(names, world.score.tolist(), strict=True))
    }
    return Qrels.of(labels, GradeScale.of(0, 3)), Run.of(lists)


def least_time(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def compare_ties(queries: int, shuffles: int, repeats: int) -> None:
    """Compare expectations over ties with plain values, on scores that were rounded to float16."""
    exact = make_world(queries, seed=3)
    world = exact._replace(score=exact.score.astype(np.float16).astype(np.float64))
    rng = np.random.default_rng(4)
    plain = parse_measures(TIED)
    expected, bias = ([replace(named, mode=mode) for named in plain] for mode in ("E", "bias"))
    biases = []
    for _ in range(shuffles):
        qrels, run = columns_of(world, rng.permuted(np.tile(np.arange(DEPTH), (queries, 1)), axis=1))
        hits = find_hits(qrels, run)
        biases.append([float(named.values(hits).mean()) for named in bias])
    tied = hits.tied.sum() / hits.length.sum()
    times = [
        least_time(lambda chosen=chosen: measure_hits(find_hits(qrels, run), chosen), repeats)
        for chosen in (plain, expected)
    ]
    print(f"\nTies: {queries * DEPTH:,} lines in float16, {tied:.0%} of the passages tied")
    print(f"plain {times[0]:.3f} s, tie-aware {times[1]:.3f} s: {times[1] / times[0]:.2f} times")
    print(f"bias over {shuffles} shuffles of the ids (mean, standard error):")
    table = np.array(biases)
    for named, mean, error in zip(plain, table.mean(axis=0), table.std(axis=0, ddof=1) / shuffles**0.5, strict=True):
        print(f"  {named.name:<12} {mean:+.6f} {error:.6f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without 10^7 lines")
    parser.add_argument("--lines", type=int, nargs="*", help="other sizes, multiples of 1,000")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "raggs-benchmark-eval")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    sizes = options.lines or ([10**5, 10**6] if options.quick else [10**5, 10**6, 10**7])
    compare_tools(options.folder, sizes, options.repeats)
    compare_ties(max(1, min(sizes[0], 10**5) // DEPTH), shuffles=8, repeats=options.repeats)


if __name__ == "__main__":
    main()
