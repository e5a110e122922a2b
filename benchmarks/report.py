"""Measure the HTML report of 1,000 queries and 8 systems: seconds to make, megabytes, and seconds to open and filter.

    python benchmarks/report.py [--questions 1000] [--systems 8] [--repeat 3] [--keep DIR]

The golden set is a run over synthetic passages of about 120 words, with 20 passages from each of two retrievers and
grades from labels. Each system is one of its retrievers with random changes of ranks, and 50 passages per query.
Chromium opens the file (RAGGS_CHROMIUM, or `chromium`). With --check, the exit code is 1 if the file is larger, or
opens or filters more slowly, than LIMITS allow. Times are the best of `--repeat`, because other work on a machine
only adds to them. Modules are compiled in advance. The table is in results/report.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
HEADS, TAILS = "ba ce di fo gu ha je ki lo mu na pe".split(), "rn lt st mp nd".split()  # noqa: SIM905
WORDS = [f"{head}{tail}" for head in HEADS for tail in TAILS]
PASSAGES, LONG, SHOWN = 5_000, 120, 50
LIMITS = {"MB": 4.0, "opened in s": 0.6, "filtered in ms": 100.0}  # for 1,000 queries and 8 systems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="folder for the run; an existing run is used again")
    parser.add_argument("--check", action="store_true", help="fail if a value is over its limit")
    asked = parser.parse_args()
    over = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        runs = world(folder, asked.questions, asked.systems)
        print("| queries | systems | passages | MB | made in s | of processor time | opened in s | filtered in ms |")
        print("|---|---|---|---|---|---|---|---|")
        for option in ((), ("--no-text",)):
            page = folder / "report.html"
            seconds = [made(folder, runs, page, option) for _ in range(asked.repeat)]
            looks = [looked_at(page) for _ in range(asked.repeat)]
            megabytes, opened, filtered = page.stat().st_size / 1e6, *map(min, zip(*looks, strict=True))
            values = zip(LIMITS, (megabytes, opened, filtered), strict=True)
            over += [f"{name}: {value:.2f}, limit {LIMITS[name]:g}" for name, value in values if value > LIMITS[name]]
            cells = (
                f"{asked.questions:,}",
                asked.systems,
                "omitted" if option else "shown",
                f"{megabytes:.1f}",
                *(f"{min(column):.1f}" for column in zip(*seconds, strict=True)),
                f"{opened:.2f}",
                f"{filtered:.0f}",
            )
            print(f"| {' | '.join(map(str, cells))} |")
    if asked.check and over:
        sys.exit("over the limit: " + "; ".join(over))


def world(folder: Path, questions: int, systems: int) -> list[str]:
    """Return the run files of the systems. Make them and the run if they do not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    if not (folder / "runs" / "demo" / "rank.jsonl").is_file():
        write_inputs(folder, questions, draw)
        command = [sys.executable, "-m", "raggs", "run", "--config", str(folder / "raggs.yaml"), "--quiet"]
        subprocess.run(command, check=True, cwd=ROOT)
    return [f"system{number}={lists(folder, number, draw)}" for number in range(systems)]


def write_inputs(folder: Path, questions: int, draw: random.Random) -> None:
    rows = [
        {"_id": f"p{n}", "title": f"Passage {n}", "text": " ".join(draw.choices(WORDS, k=LONG))}
        for n in range(PASSAGES)
    ]
    asked = [{"_id": f"q{n:04}", "text": f"What of {' '.join(draw.choices(WORDS, k=6))}?"} for n in range(questions)]
    for name, lines in (("corpus", rows), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    labels = (f"{q['_id']} 0 {p['_id']} {draw.choice((2, 3, 4, 5))}\n" for q in asked for p in draw.sample(rows, 900))
    (folder / "qrels.txt").write_text("".join(labels))
    settings = {
        "name": "demo",
        "corpus": {"type": "jsonl", "path": "corpus.jsonl"},
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 20}, {"type": "dense", "k": 20}]},
        "judge": {"judge": {"type": "qrels", "path": "qrels.txt"}},
        "rank": {"engine": "online", "top": 10, "max_calls": 4},
    }
    (folder / "raggs.yaml").write_text(yaml.safe_dump(settings))


def lists(folder: Path, number: int, draw: random.Random) -> Path:
    """Write a run file: lists of a retriever with noise on the ranks, and other passages at the end."""
    path = folder / f"system{number}.trec"
    if path.is_file():
        return path
    found: dict[str, dict[str, list[tuple[float, str]]]] = {}
    with (folder / "runs" / "demo" / "retrieve.jsonl").open() as file:
        for hit in map(json.loads, file):
            place = hit["rank"] + draw.gauss(0, 1 + number)
            found.setdefault(hit["qid"], {}).setdefault(hit["retriever"], []).append((place, hit["doc_id"]))
    path.write_text("".join(line for qid, each in found.items() for line in trec(qid, each, number, draw)))
    return path


def trec(qid: str, each: dict[str, list[tuple[float, str]]], number: int, draw: random.Random) -> Iterator[str]:
    mine = sorted(each[("bm25", "dense")[number % 2]])
    docs = dict.fromkeys([doc for _, doc in mine] + [f"p{draw.randrange(PASSAGES)}" for _ in range(SHOWN)])
    for rank, doc in enumerate(list(docs)[:SHOWN], start=1):
        yield f"{qid} Q0 {doc} {rank} {1 / rank:.6f} system{number}\n"


def made(folder: Path, runs: list[str], page: Path, option: tuple[str, ...]) -> tuple[float, float]:
    """Return the elapsed seconds and processor seconds of the command."""
    named = [word for run in runs for word in ("--run", run)]
    run = str(folder / "runs" / "demo")
    command = [sys.executable, "-m", "raggs", "report", run, *named, *option, "--out", str(page)]
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, env=kept)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def looked_at(page: Path) -> tuple[float, float]:
    """Return the seconds until a page can be used, and the most milliseconds of a filter until its rows are drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("RAGGS_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        window = browser.new_page(offline=True)
        begin = time.perf_counter()
        window.goto(page.as_uri())
        window.wait_for_function("document.querySelectorAll('#systems-table tbody tr').length > 0")
        opened = time.perf_counter() - begin
        filtered = max(window.evaluate(FILTER, [search, word]) for search in SEARCHES for word in ("q01", "barn", ""))
        browser.close()
    return opened, filtered


SEARCHES = ("systems-find", "questions-find")
FILTER = """async ([id, word]) => {
  const field = document.getElementById(id)
  if (!field) return 0
  const begin = performance.now()
  field.value = word
  field.dispatchEvent(new Event('input'))
  document.body.getBoundingClientRect()
  return performance.now() - begin
}"""


if __name__ == "__main__":
    main()
