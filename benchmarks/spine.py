"""Measure raggs without a model: start, a rerun without changes, memory.

python benchmarks/spine.py            1,000 queries, about two minutes
python benchmarks/spine.py --queries 200
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 5


def clock(*command: str, repeats: int = REPEATS) -> float:
    """Return the median seconds of a command."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def make(folder: Path, queries: int, passages: int) -> Path:
    """Write a project of synthetic words with a simulated judge."""
    words = [f"w{number}" for number in range(2000)]
    draw = random.Random(1)
    with (folder / "corpus.jsonl").open("w") as file:
        for number in range(passages):
            file.write(json.dumps({"_id": f"p{number}", "text": " ".join(draw.choices(words, k=120))}) + "\n")
    with (folder / "queries.jsonl").open("w") as file:
        for number in range(queries):
            file.write(json.dumps({"_id": f"q{number}", "text": " ".join(draw.choices(words, k=8))}) + "\n")
    with (folder / "qrels.txt").open("w") as file:
        for number in range(queries):
            for passage in draw.sample(range(passages), 20):
                file.write(f"q{number} 0 p{passage} {draw.randint(1, 5)}\n")
    config = folder / "raggs.yaml"
    config.write_text(
        "name: spine\ncorpus: {type: jsonl, path: corpus.jsonl}\nqueries: {type: jsonl, path: queries.jsonl}\n"
        "judge: {judge: {type: qrels, path: qrels.txt, beta: 3}}\nrank: {max_calls: 20}\n"
    )
    return config


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=5000)
    options = parser.parse_args()
    python = sys.executable
    start = clock(python, "-c", "pass")
    print(f"interpreter start       {start:6.3f} s")
    print(f"import raggs            {clock(python, '-c', 'import raggs') - start:6.3f} s more")
    print(f"raggs --help            {clock(python, '-m', 'raggs', '--help'):6.3f} s")
    with tempfile.TemporaryDirectory() as name:
        config = make(Path(name), options.queries, options.passages)
        run = (python, "-m", "raggs", "run", "--quiet", "--config", str(config))
        first = clock(*run, repeats=1)
        print(f"first run               {first:6.1f} s, {options.queries:,} queries, {options.passages:,} passages")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"peak memory             {peak:6.0f} MiB")
        size = sum(path.stat().st_size for path in (Path(name) / "runs" / "spine").glob("*.jsonl")) / 1e6
        print(f"artifacts               {size:6.1f} MB")
        print(f"rerun, nothing to do    {clock(*run) - start:6.3f} s without the interpreter")


if __name__ == "__main__":
    main()
