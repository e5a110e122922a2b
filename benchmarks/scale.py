"""Measure time and memory by the number of queries in a run, and by the number of passages in a vector index.

    python benchmarks/scale.py queries                     100, 1,000 and 10,000 queries with a simulated judge
    python benchmarks/scale.py queries --execution dask    the same on a cluster of two local workers
    python benchmarks/scale.py queries --sizes 100 --full  the same with the default pools and ranking calls
    python benchmarks/scale.py vectors                     1,000,000 passages with 256 dimensions

Each size runs in a separate process, so peak memory is that of one size. With ``--out FILE.svg`` the points are drawn
on log-log axes, with lines of constant time per query and of constant memory.
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
from itertools import pairwise
from pathlib import Path

PASSAGES = 2000
QUERIES = 64
WORDS = [f"w{number}" for number in range(2000)]
WIDTH, HEIGHT, TOP = 280, 220, 35  # size of a panel in pixels
# Pools are small and few batches are judged: the pipeline is measured, not the judge.
SETTINGS = (
    "retrieve: {retrievers: [{type: bm25, k: 15}, {type: dense, k: 15}]}\nmerge: {depth: 20}\n"
    "prune: {min_keep: 8, max_keep: 10}\nrank: {top: 5, max_calls: 4}\n"
)


@dataclass(frozen=True)
class Point:
    """Elapsed seconds and CPU seconds of one size, peak resident memory in MiB, bytes of all artifacts."""

    size: int
    seconds: float
    cpu: float
    peak: float
    stored: int


def measured(command: Sequence[str], size: int, folder: Path | None = None) -> Point:
    """Run a command and measure it. Its peak memory is at least that of this process at the start."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    stored = sum(path.stat().st_size for path in folder.glob("*.jsonl")) if folder else 0
    return Point(size, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, stored)


def make_project(folder: Path, queries: int, execution: str = "local", settings: str = SETTINGS) -> Path:
    """Write synthetic passages and queries, ten labels per query, and a configuration with a noisy judge."""
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
        f"judge: {{judge: {{type: qrels, path: qrels.txt, beta: 3, grade_noise: 0.1}}}}\n{settings}"
        f"execution: {{type: {execution}}}\n"
    )
    return config


def run_queries(size: int, execution: str, settings: str) -> Point:
    """Run the command line over `size` queries."""
    with tempfile.TemporaryDirectory() as name:
        config = make_project(Path(name), size, execution, settings)
        command = [sys.executable, "-m", "raggs", "run", "--quiet", "--config", str(config)]
        return measured(command, size, Path(name) / "runs" / "scale")


# --- vectors ---


def index(passages: int, folder: Path) -> dict[str, float]:
    """Return the seconds to store passages of twelve words, to embed them, and to search for 64 queries."""
    from raggs.base.artifacts import Passage
    from raggs.base.cache import Cache
    from raggs.parts.embedders.wordllama import WordLlamaEmbedder
    from raggs.parts.indexes.passages import PassageStore
    from raggs.parts.indexes.vectors import open_vectors

    draw, embedder = random.Random(1), WordLlamaEmbedder(WordLlamaEmbedder.Config())
    source = (Passage(doc_id=f"p{n}", text=" ".join(draw.choices(WORDS, k=12))) for n in range(passages))
    clock = [time.perf_counter()]
    with PassageStore.build(folder / "passages.sqlite", source) as store:
        clock.append(time.perf_counter())
        vectors = open_vectors(Cache(folder), embedder.identity, embedder.dims, store, embedder.embed)
        clock.append(time.perf_counter())
        found = vectors.search(embedder.embed([" ".join(draw.choices(WORDS, k=8)) for _ in range(QUERIES)]), 50)
        clock.append(time.perf_counter())
    if (found.positions < 0).any():
        raise SystemExit("a query has too few neighbours")
    return dict(zip(("store", "vectors", "search"), (after - before for before, after in pairwise(clock)), strict=True))


def run_vectors(passages: int) -> None:
    """Build the index in a separate process and print its time, memory and disk space."""
    with tempfile.TemporaryDirectory() as name:
        point = measured([sys.executable, __file__, "index", "--passages", str(passages), "--folder", name], passages)
        stored = sum(path.stat().st_size for path in Path(name).rglob("*") if path.is_file()) / 1e6
    took = f"{point.seconds:,.0f} s, {point.cpu:,.0f} s of CPU"
    print(f"{passages:,} passages: {took}, peak {point.peak:,.0f} MiB, {stored:,.0f} MB on disk")


# --- output ---


def table(points: Sequence[Point]) -> str:
    """Return the points as a Markdown table."""
    lines = ["| queries | seconds | CPU seconds | CPU ms per query | peak memory | artifacts |", "|---:" * 6 + "|"]
    for point in points:
        each, stored = 1000 * point.cpu / point.size, point.stored / 1e6
        lines.append(
            f"| {point.size:,} | {point.seconds:.1f} | {point.cpu:.1f} | {each:.1f} "
            f"| {point.peak:.0f} MiB | {stored:.1f} MB |"
        )
    return "\n".join(lines)


def panel(title: str, left: int, values: Sequence[tuple[float, float]], slope: int) -> str:
    """Return a log-log panel with points and a dashed line of `slope` through the last point."""
    xs, ys = ([math.log10(value) for value in column] for column in zip(*values, strict=True))
    x0, x1, y0, y1 = math.floor(xs[0]), math.ceil(xs[-1]), math.floor(min(ys)), math.ceil(max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        return left + WIDTH * (x - x0) / (x1 - x0), TOP + HEIGHT * (y1 - y) / (y1 - y0)

    parts = [f'<text x="{left + WIDTH / 2}" y="20" text-anchor="middle" font-weight="bold">{title}</text>']
    for x in range(x0, x1 + 1):
        (px, low), (_, high) = place(x, y0), place(x, y1)
        parts.append(f'<path d="M{px:.1f} {low:.1f}V{high:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{px:.1f}" y="{low + 18:.1f}" text-anchor="middle">{10**x:,}</text>')
    for y in range(y0, y1 + 1):
        (start, py), (end, _) = place(x0, y), place(x1, y)
        parts.append(f'<path d="M{start:.1f} {py:.1f}H{end:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{start - 6:.1f}" y="{py + 4:.1f}" text-anchor="end">{10**y:,}</text>')
    (ax, ay), (bx, by) = place(xs[0], ys[-1] - slope * (xs[-1] - xs[0])), place(xs[-1], ys[-1])
    parts.append(f'<path d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}" stroke="#888" stroke-dasharray="5 4"/>')
    for x, y in zip(xs, ys, strict=True):
        px, py = place(x, y)
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="#1f5fa8"/>')
    return "\n".join(parts)


def drawing(points: Sequence[Point]) -> str:
    """Return seconds and memory over the number of queries as SVG."""
    time_panel = panel("CPU seconds (dashed: linear)", 60, [(point.size, point.cpu) for point in points], 1)
    memory = panel("peak memory, MiB (dashed: constant)", 430, [(point.size, point.peak) for point in points], 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 {TOP + HEIGHT + 45}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n{time_panel}\n{memory}\n'
        f'<text x="{370}" y="{TOP + HEIGHT + 38}" text-anchor="middle">queries</text>\n</svg>\n'
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("queries", "vectors", "index"))
    parser.add_argument("--sizes", default="100,1000,10000", help="numbers of queries")
    parser.add_argument("--full", action="store_true", help="default pools and ranking calls")
    parser.add_argument("--execution", choices=("local", "dask"), default="local")
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="folder of the index (for `index` only)")
    parser.add_argument("--out", type=Path, help="path of an SVG file")
    options = parser.parse_args(arguments)
    if options.what == "index":
        for name, seconds in index(options.passages, options.folder).items():
            print(f"{name:8} {seconds:8.1f} s", flush=True)
        return
    print(f"load average at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    if options.what == "vectors":
        run_vectors(options.passages)
    else:
        settings = "" if options.full else SETTINGS
        points = [run_queries(size, options.execution, settings) for size in map(int, options.sizes.split(","))]
        print(table(points))
        if options.out is not None:
            options.out.write_text(drawing(points))
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
