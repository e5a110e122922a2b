"""Measure the latency of the next passage in `raggs review serve`, and the memory of the server.

    python benchmarks/reviewing.py [--items 50000] [--grades 300] [--reviewed 0] [--decide] [--check]

The server runs in a separate process and gets the requests of the page over HTTP. Each grade is on disk before the
server answers. With `--reviewed`, this many items have grades before the server starts. With `--decide`, a judge has
graded all of them, four in five differently from the annotator, and Decide is opened while grades arrive. The program
prints one row of Markdown. `--check` fails if the first opening of Decide takes longer than the start of the server,
which also reads the run once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.reviewpage import Visitor, judge_run, serving, write_run  # noqa: E402

from raggs.base.artifacts import RetrieveRecord  # noqa: E402
from raggs.base.jsonl import write_records  # noqa: E402
from raggs.parts.reviews import ReviewStore  # noqa: E402
from raggs.reviewing.pool import open_pool  # noqa: E402
from raggs.reviewing.session import Session, SessionSettings  # noqa: E402
from raggs.runs.manifests.open_run import open_run  # noqa: E402

TEXT = "The lift of a wing in a slipstream was measured at several angles of attack. " * 13  # a thousand characters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--grades", type=int, default=300)
    parser.add_argument("--reviewed", type=int, default=0)
    parser.add_argument("--decide", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "runs" / "demo", asked.items // 50, texts=[f"{n} {TEXT}" for n in range(50)])
        fill(run, Path(folder) / "reviews", asked.reviewed)
        if asked.decide:
            compare(run, asked.items // 50)
        begin = time.perf_counter()
        with serving(run) as (address, process), ThreadPoolExecutor(1) as executor:
            start = time.perf_counter() - begin
            decided = executor.submit(decide, address) if asked.decide else None
            waits = grade(address, asked.grades)
            opened, weighed = (0.0, 0.0) if decided is None else decided.result()
            memory = peak(process.pid)
    print(
        "| items | graded before | start, s | next item, median ms | 99th percentile, ms | maximum, ms "
        "| Decide, s | label impact, s | memory, MiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    worst = quantiles(waits, n=100)[-1]
    row = (
        asked.items,
        asked.reviewed,
        f"{start:.1f}",
        f"{median(waits):.1f}",
        f"{worst:.1f}",
        f"{max(waits):.1f}",
        f"{opened:.1f}" if opened else "-",
        f"{weighed:.0f}" if opened else "-",
    )
    print(f"| {' | '.join(map(str, row))} | {memory:.0f} |")
    if asked.check and opened > start:
        raise SystemExit(f"the first opening of Decide took {opened:.1f} s, longer than the start ({start:.1f} s)")


def fill(run: Path, folder: Path, count: int) -> None:
    if not count:
        return
    session = Session(open_pool([open_run(run)]), ReviewStore(folder), SessionSettings(overlap=0))
    lines = [session._review("bo", number, number % 5 + 1, "", 9.0) for number in range(count)]
    ReviewStore(folder).append(*lines)


def compare(run: Path, questions: int) -> None:
    """Write grades of a judge, and two systems that rank each pool differently."""
    judge_run(run, lambda record: record.rank % 5 + 1)
    lists = [
        RetrieveRecord(qid=f"q{query:05}", retriever=name, rank=rank + 1, doc_id=f"d{query}-{doc}", score=50.0 - rank)
        for name, step in (("one", 7), ("other", 11))
        for query in range(questions)
        for rank, doc in enumerate((place * step + query) % 50 for place in range(50))
    ]
    write_records(run / "retrieve.jsonl", lists)


def decide(address: str) -> tuple[float, float]:
    """Return the seconds until the first difference is shown, and until the label impact is computed."""
    begin = time.perf_counter()
    visitor = Visitor(address, timeout=120)
    answer = visitor.post("/api/differences", who="cy", tab="t")
    opened = time.perf_counter() - begin
    while answer["weighing"]:
        time.sleep(2)
        answer = visitor.post("/api/differences", who="cy", tab="t")
    if not answer["impact"]:
        raise SystemExit(f"no label impact was computed: {answer['told']}")
    return opened, time.perf_counter() - begin


def grade(address: str, count: int) -> list[float]:
    """Return the milliseconds from each grade to the next item."""
    visitor, waits = Visitor(address), list[float]()
    ahead = visitor.post("/api/next", who="ada", tab="t")["ahead"]
    for number in range(count):
        begin = time.perf_counter()
        answer = visitor.post("/api/grade", who="ada", tab="t", item=ahead[0]["item"], grade=3, seconds=number / 1000)
        waits.append(1000 * (time.perf_counter() - begin))
        ahead = answer["ahead"]
        time.sleep(0.03)
    return waits


def peak(pid: int) -> float:
    """Return the peak memory of a process in MiB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    main()
