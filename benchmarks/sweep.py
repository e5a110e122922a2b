"""Measure `raggs sweep`: a grid over a labelled collection, a thousand run files, early dropping, indexes, units.

    python benchmarks/sweep.py grid FOLDER        24 systems; FOLDER has corpus.jsonl, queries.jsonl, qrels.trec
    python benchmarks/sweep.py indexes FOLDER     flat, hnsw, hnsw int8 and ivf, with the loss of each
    python benchmarks/sweep.py units FOLDER       whole passages and their sentences or chunks, dense and lexical
    python benchmarks/sweep.py runs               run files of 1,000 systems and 1,000 queries
    python benchmarks/sweep.py halving            how often early dropping loses the best system
    python benchmarks/sweep.py grid FOLDER --context-grid /other/venv/bin/contextgrid

Without FOLDER, the collection is synthetic. Each sweep is a separate process. The tables contain its processor time,
which is more reliable than elapsed time on a busy machine. The grid has 3 dimensions of WordLlama, {flat, hnsw int8},
K {50, 100} and {dense, hybrid}. context-grid supports 9 of the 24 systems. It has no WordLlama (hashed words of as
many dimensions replace it), fuses only exact search, and merges both K without a reranker. It counts grades from 4 as
relevant, and gets one file per document.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from decision import ERROR, PARTS, bets, play, table

from raggs import evaluate
from raggs.app.sweep import load_sweep, sweep
from raggs.base.arrays import Floats
from raggs.base.hashing import generator
from raggs.evaluation.models import ComparisonPart

DEPTH, POOL = 30, 100
MANY = 1_000_000
HERE = Path(__file__).resolve().parents[1]


class Cost(NamedTuple):
    """Elapsed and processor time in seconds, peak memory in MiB."""

    wall: float
    cpu: float
    memory: float


def clock(command: Sequence[str | Path], folder: Path) -> Cost:
    """Run and measure one process. Raise CalledProcessError if it fails."""
    began = time.perf_counter()
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        list(map(str, command)), cwd=folder, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths}
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(map(str, command)))
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def raggs_sweep(folder: Path) -> Cost:
    """Run and measure the command once."""
    return clock([sys.executable, "-m", "raggs", "sweep", "--config", "sweep.yaml", "--yes"], folder)


def line(what: str, cost: Cost) -> str:
    """Return a row of a table."""
    return f"| {what} | {cost.wall:.1f} | {cost.cpu:.1f} | {cost.memory:.0f} |"


HEAD = "| | elapsed, s | processor, s | peak, MiB |\n|---|---:|---:|---:|"


# --- collections ----------------------------------------------------------------------------------------------


def make_collection(folder: Path, passages: int = 1400, queries: int = 150) -> Path:
    """Write passages and queries of topic words. A grade is the share of the topic in a passage."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = generator(1, "collection", passages, queries)
    topics = [[f"word{topic}x{place}" for place in range(30)] for topic in range(40)]
    of = rng.integers(1, 6, (passages, 2)), rng.integers(len(topics), size=(passages, 2))
    with (folder / "corpus.jsonl").open("w") as file:
        for row in range(passages):
            words = [rng.choice(topics[topic], 12 * share) for share, topic in zip(of[0][row], of[1][row], strict=True)]
            file.write(json.dumps({"_id": f"p{row}", "text": " ".join(np.concatenate(words))}) + "\n")
    with (folder / "queries.jsonl").open("w") as asked, (folder / "qrels.trec").open("w") as labels:
        for number in range(queries):
            topic = number % len(topics)
            asked.write(json.dumps({"_id": f"q{number}", "text": " ".join(rng.choice(topics[topic], 6))}) + "\n")
            for row in np.flatnonzero((of[1] == topic).any(axis=1)):
                labels.write(f"q{number} 0 p{row} {of[0][row][list(of[1][row]).index(topic)]}\n")
    return folder


def write_sweep(folder: Path, collection: Path, axes: dict[str, object], queries: int = 150) -> None:
    """Write a sweep over the first queries of a collection."""
    asked = (collection / "queries.jsonl").read_text().splitlines(keepends=True)[:queries]
    (folder / "asked.jsonl").write_text("".join(asked))
    config = {
        "name": "grid",
        "golden": str(collection.resolve() / "qrels.trec"),
        "corpus": {"type": "jsonl", "path": str(collection.resolve() / "corpus.jsonl")},
        "queries": {"type": "jsonl", "path": "asked.jsonl"},
        "axes": axes,
    }
    (folder / "sweep.yaml").write_text(json.dumps(config))


def write_runs(folder: Path, systems: int, queries: int) -> None:
    """Write run files of systems with increasing quality, and a sweep over them without corpus and queries."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    rng = generator(1, "runs", systems, queries)
    grades = rng.choice([1, 2, 3, 4, 5], size=(queries, POOL), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    rows = (f"q{qid} 0 d{qid}_{doc} {grades[qid, doc]}\n" for qid in range(queries) for doc in range(POOL))
    (folder / "qrels.txt").write_text("".join(rows))
    for number in range(systems):
        scores = (0.5 + number / systems) * grades + rng.normal(0, 2, grades.shape)
        top = np.argsort(-scores, axis=1)[:, :DEPTH].tolist()
        lines = (
            f"q{qid} Q0 d{qid}_{doc} {rank + 1} {DEPTH - rank} s\n"
            for qid, docs in enumerate(top)
            for rank, doc in enumerate(docs)
        )
        (folder / "runs" / f"s{number:04}.trec").write_text("".join(lines))
    modes = [{"type": "runfile", "path": f"runs/s{number:04}.trec"} for number in range(systems)]
    config = {"name": "grid", "golden": "qrels.txt", "axes": {"mode": modes, "k": [DEPTH]}}
    (folder / "sweep.yaml").write_text(json.dumps(config))


@contextmanager
def places(collection: Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield a folder for the sweep, and the collection."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield folder, collection or make_collection(folder / "made")


# --- tables ---------------------------------------------------------------------------------------------------


def measure_grid(collection: Path | None, other: Path | None) -> None:
    """Measure 24 systems without cache, and again."""
    axes = {
        "embedder": [{"type": "wordllama", "dims": [64, 128, 256]}],
        "index": ["flat", {"type": "hnsw", "quantize": "int8"}],
        "mode": ["dense", "hybrid"],
        "k": [50, 100],
    }
    with places(collection) as (folder, source):
        write_sweep(folder, source, axes)
        print(f"{HEAD}\n{line('raggs sweep, 24 systems, without cache', raggs_sweep(folder))}", flush=True)
        print(line("raggs sweep again, nothing changed", raggs_sweep(folder)), flush=True)
        if other is not None:
            write_context_grid(folder, source)
            print(line("context-grid, the 9 systems that it supports", clock([other, "run", "grid.yaml"], folder)))


def write_context_grid(folder: Path, collection: Path) -> None:
    """Write the collection for context-grid: one file per document, grades from 4 as spans of whole files."""
    (folder / "docs").mkdir()
    texts: dict[str, int] = {}
    for row in map(json.loads, (collection / "corpus.jsonl").read_text().splitlines()):
        text = f"{row.get('title', '')}\n\n{row['text']}".strip()
        if row["text"]:
            texts[row["_id"]] = len(text)
            (folder / "docs" / f"{row['_id']}.txt").write_text(text)
    gold: dict[str, list[dict[str, object]]] = {}
    for qid, _, doc, grade in map(str.split, (collection / "qrels.trec").read_text().splitlines()):
        if int(grade) >= 4 and doc in texts:
            gold.setdefault(qid, []).append({"doc_id": f"{doc}.txt", "start": 0, "end": texts[doc]})
    asked = map(json.loads, (folder / "asked.jsonl").read_text().splitlines())
    rows = [
        {"id": row["_id"], "question": row["text"], "gold": gold[row["_id"]]} for row in asked if row["_id"] in gold
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    grid = {
        "parser": ["text"],
        "chunker": ["fixed:100000"],
        "embedder": ["hash:64", "hash:128", "hash:256"],
        "index": ["dense", "usearch:i8", "hybrid"],
        "candidates": [50, 100],
    }
    run = {"mode": "factorial", "k": 10, "headline": "ndcg@10"}
    whole = {"name": "grid", "corpus": "./docs", "evalset": "./questions.jsonl", "grid": grid, "run": run}
    (folder / "grid.yaml").write_text(json.dumps(whole))


def measure_runs(systems: int, queries: int) -> None:
    """Measure a sweep over run files: read, score, compare, write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_runs(folder, systems, queries)
        print(f"{HEAD}\n{line(f'raggs sweep, {systems:,} systems × {queries:,} queries', raggs_sweep(folder))}")
        print(line("raggs sweep again, nothing changed", raggs_sweep(folder)))


def measure_indexes(collection: Path | None) -> None:
    """Compare approximate indexes with the exact one."""
    index = ["flat", "hnsw", {"type": "hnsw", "quantize": "int8"}, {"type": "ivf", "nprobe": 16}]
    axes = {"embedder": [{"type": "wordllama", "dims": 256}], "index": index, "mode": "dense", "k": 50}
    with places(collection) as (folder, source):
        write_sweep(folder, source, axes)
        report = sweep(load_sweep(folder / "sweep.yaml")).report
    found = {part.system: part for part in report.deltas}
    print("| system | " + " | ".join(f"{name} (Δ)" for name in report.quality) + " | search, ms (Δ) | MiB |")
    print("|---" + "|---:" * (len(report.quality) + 2) + "|")
    for row in report.systems:
        part, spread = found.get(row.name), row.latency.retrieve
        cells = [
            f"{row.scores[name].mean:.4f} ({share(None if part is None else part.quality[name])})"
            for name in report.quality
        ]
        latency = "-" if spread is None else f"{spread.p50:.3f} ({share(None if part is None else part.latency)})"
        print(
            f"| {row.name} | {' | '.join(cells)} | {latency} | {(row.memory.bytes if row.memory else 0) / 2**20:.2f} |"
        )


def measure_units(collection: Path) -> None:
    """Compare the search of sentences or chunks of passages with the search of whole passages."""
    units: list[dict[str, object]] = [{"window": [0, 1, 2]}, {"unit": {"type": "recursive", "size": 64}}]
    names = ("ndcg@10", "recall@50")
    head = ("system", *(f"{name} (Δ)" for name in names), "search, ms", "MiB of vectors")
    print(f"| {' | '.join(head)} |\n|---{'|---:' * (len(head) - 1)}|")
    for whole, of in (("dense", "dense"), ("lexical", "bm25")):
        modes = [whole, *({"type": "parent", "of": {"type": of}, **unit} for unit in units)]
        with places(collection) as (folder, source):
            write_sweep(folder, source, {"mode": modes, "k": 50}, queries=MANY)
            done = sweep(load_sweep(folder / "sweep.yaml"))
            base, *others = done.report.systems
            runs = {row.name: done.folder / str(row.file) for row in done.report.systems}
            report = evaluate(source / "qrels.trec", runs=runs, measures=list(names), baseline=base.name).report
        scores = {each.name: each.scores for each in report.systems}
        differences = {(part.system, part.measure): part for part in report.comparisons}
        for row in (base, *others):
            cells = [
                f"{scores[row.name][name].mean:.3f}{difference(differences.get((row.name, name)))}" for name in names
            ]
            latency = "-" if row.latency.retrieve is None else f"{row.latency.retrieve.p50:.2f}"
            size = "-" if row.memory is None else f"{row.memory.bytes / 2**20:.1f}"
            print(f"| {row.name} | {' | '.join(cells)} | {latency} | {size} |")


def difference(part: ComparisonPart | None) -> str:
    """Return a difference from the baseline with its interval and verdict."""
    return "" if part is None else f" ({part.difference:+.3f} [{part.low:+.3f}, {part.high:+.3f}], {part.verdict})"


def share(value: float | None) -> str:
    """Return a change as a percentage."""
    return "–" if value is None else f"{value:+.1%}"


def halving_worlds(systems: int, queries: int, spread: float, worlds: int) -> tuple[int, Floats]:
    """Return the number of simulated sweeps that lose the best system, and the share of the work in each."""
    played = [play(table(systems, queries, spread, "sweep", world), bets, world) for world in range(worlds)]
    return sum(not kept for kept, _ in played), np.array([work for _, work in played])


def measure_halving(worlds: int) -> None:
    """Print how often the best system is lost, with its standard error."""
    print(f"{worlds} simulated sweeps per row, rounds after {PARTS} queries, error limit {ERROR:.0%}\n")
    print("| systems | queries | standard deviation of the means | best system lost | standard error | work saved |")
    print("|---:|---:|---:|---:|---:|---:|")
    for systems, queries in ((60, 150), (60, 1000)):
        for spread in (0.02, 0.05, 0.1):
            lost, work = halving_worlds(systems, queries, spread, worlds)
            rate = (lost + 1) / (worlds + 2)  # Laplace's estimate, so that 0 of n has an error, too
            error = math.sqrt(rate * (1 - rate) / worlds)
            saved = f"{1 - work.mean():.0%} ± {work.std(ddof=1) / math.sqrt(worlds):.1%}"
            print(f"| {systems} | {queries:,} | {spread} | {lost} of {worlds} | {error:.2%} | {saved} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["grid", "indexes", "units", "runs", "halving"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--context-grid", type=Path)
    parser.add_argument("--systems", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--worlds", type=int, default=300)
    options = parser.parse_args()
    match options.what:
        case "grid":
            measure_grid(options.folder, options.context_grid)
        case "indexes":
            measure_indexes(options.folder)
        case "units":
            measure_units(options.folder)
        case "runs":
            measure_runs(options.systems, options.queries)
        case "halving":
            measure_halving(options.worlds)


if __name__ == "__main__":
    main()
