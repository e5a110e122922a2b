"""Measure the import of traces for large files, and the precision of labels that `raggs questions gaps` proposes.

    python benchmarks/traces.py size [--mb 1000]
    python benchmarks/traces.py choice [--worlds 400]

`size` writes OTLP files in three forms: one document on one line, one document with line ends, and JSON lines. It
runs `raggs questions import --dry-run` on each, and prints the processor time and the peak memory of the process.

`choice` simulates logs with kinds of queries whose true difference between two systems is known. It compares how
precisely 20 labels estimate the mean difference over searches. The labels are chosen by `raggs.stats.query_coverage`,
drawn from the searches, or given to the most frequent queries.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.traces import Searched, otlp

from raggs.stats.query_coverage import KindTotals, choose_queries

OPENING, CLOSING = '{"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [', "]}]}]}"
FORMS = {"one line": (".json", ", "), "document": (".json", ",\n"), "JSON lines": (".jsonl", "")}
LABELS = 20
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(done.stdout or done.stderr)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round(used.ru_utime + used.ru_stime, 1), used.ru_maxrss // 1024, sep="\\n")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("size", "choice"))
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--worlds", type=int, default=400)
    options = parser.parse_args()
    if options.part == "size":
        with tempfile.TemporaryDirectory() as folder:
            measure_sizes(Path(folder), options.mb)
    else:
        simulate(options.worlds)


def measure_sizes(folder: Path, megabytes: int) -> None:
    """Print time and peak memory for each form of file, at a tenth of the size and at the full size."""
    print("| form | MB | searches | processor s | peak, MB |\n|---|---|---|---|---|")
    for form, (suffix, between) in FORMS.items():
        for size in (megabytes // 10, megabytes):
            path = folder / f"traces{suffix}"
            searches = write(path, size * 1_000_000, between)
            words = [sys.executable, "-m", "raggs", "questions", "import", str(path), "--dry-run", "--json"]
            done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True)
            *found, seconds, peak = done.stdout.strip().splitlines()
            counted = json.loads("\n".join(found))["searches"]
            if counted != searches:
                raise SystemExit(f"{form}: {counted} searches instead of {searches}")
            print(f"| {form} | {size} | {searches:,} | {seconds} | {peak} |", flush=True)
            path.unlink()


def write(path: Path, size: int, between: str) -> int:
    """Write a file of about `size` bytes and return its number of searches. A tenth of the queries is distinct."""
    passage = "A passage of the corpus with some words, as a retriever returns it. " * 12
    count = 0
    with path.open("w") as file:
        file.write(OPENING if between else "")
        while file.tell() < size:
            query = f"How do I reset clock number {count % 20_000} at the plant?"
            documents = [(f"d{count % 97 + at}", passage, 0.9 - at / 10) for at in range(5)]
            (row,) = otlp([Searched(query, documents, 1_700_000_000_000 + count)])
            spans = row["resourceSpans"][0]["scopeSpans"][0]["spans"]
            for span in spans:
                span["traceId"] = f"{count:032x}"
                span["spanId"] = f"{2 * count + (span['parentSpanId'] == ''):016x}"
            if between:
                file.write((between if count else "") + between.join(map(json.dumps, spans)))
            else:
                file.write(json.dumps(row) + "\n")
            count += 1
        file.write(CLOSING if between else "")
    return count


def simulate(worlds: int) -> None:
    """Print the error of the mean difference over searches for each choice of 20 labels."""
    errors = {name: np.empty(worlds) for name in ("proposed", "random searches", "most frequent")}
    right = {name: np.empty(worlds) for name in errors}
    for world in range(worlds):
        rng = np.random.default_rng(world)
        kinds, searches, signals, differences, labelled = world_of(rng)
        weights = np.bincount(kinds, searches)
        totals = KindTotals(
            weights, np.bincount(kinds, signals), np.bincount(kinds[labelled], minlength=len(weights)) + 0.0
        )
        truth = float((differences * searches).sum() / searches.sum())
        free = np.ones(len(kinds), dtype=bool)
        free[labelled] = False
        vectors = rng.normal(size=(len(kinds), 32))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        chosen = choose_queries(vectors, kinds, searches, signals, totals, np.where(free, -1.0, 1.0), LABELS)
        shares = np.where(free, searches, 0)
        ways = {
            "proposed": np.array([each.row for each in chosen]),
            "random searches": rng.choice(len(kinds), LABELS, replace=False, p=shares / shares.sum()),
            "most frequent": np.argsort(-shares, kind="stable")[:LABELS],
        }
        for name, rows in ways.items():
            estimate = stratified(np.concatenate([labelled, rows]), kinds, differences, weights)
            errors[name][world], right[name][world] = (estimate - truth) ** 2, (estimate > 0) == (truth > 0)
    print("| labels | root mean squared error | right sign |\n|---|---|---|")
    for name, squares in errors.items():
        rmse = np.sqrt(squares.mean())
        error = squares.std() / np.sqrt(worlds) / (2 * rmse)
        share = right[name]
        print(f"| {name} | {rmse:.4f} ± {error:.4f} | {share.mean():.1%} ± {share.std() / np.sqrt(worlds):.1%} |")
    for name in ("random searches", "most frequent"):
        gap = errors[name] - errors["proposed"]
        print(f"squared error of {name} minus proposed: {gap.mean():.6f} ± {gap.std() / np.sqrt(worlds):.6f}")


def world_of(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return kinds, searches, failed searches and differences of 400 queries, and 30 queries labelled so far.

    25 kinds have skewed sizes. The labelled queries are from the 8 kinds that the set was made for. Searches fail in
    some kinds more often, and there the difference between the systems varies twice as much.
    """
    sizes = rng.dirichlet(np.full(25, 0.5))
    kinds = np.concatenate([np.arange(25), rng.choice(25, 375, p=sizes)])
    searches = rng.geometric(0.2, 400).astype(float)
    failing = rng.beta(0.5, 2, 25)
    signals = rng.binomial(searches.astype(int), failing[kinds]).astype(float)
    spread = np.where(failing > 0.3, 0.4, 0.2)
    means = rng.normal(0.02, 0.15, 25)
    differences = means[kinds] + rng.normal(size=400) * spread[kinds]
    known = rng.choice(25, 8, replace=False)
    labelled = rng.choice(
        np.flatnonzero(np.isin(kinds, known)), min(30, int(np.isin(kinds, known).sum())), replace=False
    )
    return kinds, searches, signals, differences, labelled


def stratified(rows: np.ndarray, kinds: np.ndarray, differences: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean over searches, estimated from labelled rows; each kind is shrunk to the mean of all labels."""
    counts = np.bincount(kinds[rows], minlength=len(weights))
    sums = np.bincount(kinds[rows], differences[rows], len(weights))
    means = (sums + differences[rows].mean()) / (counts + 1)
    return float((means * weights).sum() / weights.sum())


if __name__ == "__main__":
    main()
