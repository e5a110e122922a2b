"""Measure the most used parts, each relative to a reference in the same process.

    python benchmarks/parts.py                  all parts, half a minute
    python benchmarks/parts.py paragraphs run   parts with one of these words in their names

A figure is the cost of the work divided by that of its reference: the same work on half of the input, or what the
standard library needs for the same text. Costs are processor seconds, or bytes of peak memory. The figure is the
median of several ratios of two samples, one measured directly after the other. So the machine and its other users
have little influence. The limits and their reasons are in the table PARTS. The exit code is 1 if a figure is above
its limit.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer

import parts_work as made
from parts_work import Pair, Work

SAMPLE_S = 0.02  # minimum duration of a sample
LINEAR = 2.6  # twice the input takes twice the time, and slightly more if it no longer fits into a cache

Ratio = Callable[[], float]


@dataclass(frozen=True)
class Clocks:
    """Processor seconds of the process with all its threads, and of the calling thread."""

    every: Callable[[], float] = time.process_time
    own: Callable[[], float] = time.thread_time


def of_seconds(pair: Pair, clocks: Clocks = Clocks()) -> Ratio:
    """Return a ratio of processor times: the work relative to its reference."""
    work, reference = (_seconds(each, clocks) for each in pair)
    return lambda: work() / reference()


def of_peaks(pair: Pair) -> Ratio:
    """Return a ratio of peak memory: the work relative to its reference."""
    return lambda: _peak(pair.work) / _peak(pair.reference)


def of_threads(pair: Pair, clocks: Clocks = Clocks()) -> Ratio:
    """Return a ratio of processor times in the work: all threads relative to the calling thread."""

    def ratio() -> float:
        every, own = clocks.every(), clocks.own()
        for _ in range(4):
            pair.work()
        every, own = clocks.every() - every, clocks.own() - own
        return every / own

    return ratio


def _seconds(work: Work, clocks: Clocks) -> Ratio:
    timer, loops = Timer(work, timer=clocks.every), 1
    while timer.timeit(loops) < SAMPLE_S:
        loops *= 2
    return lambda: timer.timeit(loops) / loops


def _peak(work: Work) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@dataclass(frozen=True)
class Part:
    """A row of the table. `pair` makes work and reference in an empty folder."""

    name: str
    reference: str
    limit: float
    why: str
    pair: Callable[[Path], Pair]
    ratio: Callable[[Pair], Ratio] = of_seconds

    def measured(self, repeats: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            ratio = self.ratio(self.pair(Path(folder)))
            return statistics.median(ratio() for _ in range(repeats))


# A limit relative to the standard library is about twice the figure with CPython 3.11. One more step for each word,
# line or call exceeds it, but another version of Python or of a library does not.
PARTS = (
    Part(
        "reference judge", "half the words", LINEAR,
        "a passage is read once",
        lambda _: made.grown(made.grading, 200),
    ),
    Part(
        "reference judge", "finding the words", 8,
        "runs of words are looked up in a set; all pairs of positions would take a hundred times as long",
        lambda _: made.grading_versus_words(),
    ),
    Part(
        "qrels judge, order", "random.Random(ids)", 7,
        "simulations need millions of orders; utilities are drawn once",
        made.ordering,
    ),
    Part(
        "run of TREC", "half the lines", LINEAR,
        "one pass; a dictionary finds repeated pairs",
        lambda folder: made.grown(lambda lines: made.reading(folder, lines), 20_000),
    ),
    Part(
        "run of TREC", "str.split, float", 8,
        "a million lines are read and checked in seconds",
        made.reading_versus_split,
    ),
    Part(
        "ledger, cached answer", "json.dumps of a line", 1.5,
        "there are thousands of cached answers per second; they are counted and not written",
        made.booking,
    ),
    Part(
        "near-duplicates", "half the pool", 2.8,
        "all pairs are compared, but only few of them word by word",
        lambda _: made.grown(made.grouping, 100),
    ),
    Part(
        "near-duplicates", "finding the words", 5,
        "a pool of a hundred must cost little relative to the judge: histograms exclude most pairs",
        lambda _: made.grouping_versus_words(),
    ),
    Part(
        "exact search", "half the vectors", LINEAR,
        "every vector is read once",
        lambda _: made.grown(made.searching, 16_384),
    ),
    Part(
        "exact search, memory", "half the vectors", 1.1,
        "the file is read in blocks",
        lambda _: made.grown(made.searching, 16_384), of_peaks,
    ),
    Part(
        "exact search, memory, ties", "half the vectors", 1.1,
        "ties are resolved in blocks, also if all vectors are equal",
        lambda _: made.grown(made.searching_equals, 16_384), of_peaks,
    ),
    *(
        Part(
            f"exact search, {asked} queries", "the calling thread", 1.2,
            "threads of BLAS would compete with other workers for the same cores",
            lambda _, asked=asked: made.searching_versus_itself(asked), of_threads,
        )
        for asked in (1, 3, 64)
    ),
    *(
        Part(
            f"hygiene of {name}", "finding the words", limit,
            "every passage that is read is cleaned, and most are clean",
            lambda _, accent=accent, raw=raw: made.cleaning_versus_words(accent, raw),
        )
        for name, accent, raw, limit in (
            ("ASCII", "e", False, 0.2), ("accents", "é", False, 0.3), ("decomposed letters", "é\u202f!", True, 5),
        )
    ),
    Part(
        "opening passages", "a sixteenth of them", 1.5,
        "two pages are read for a corpus of any size",
        lambda folder: made.grown(lambda count: made.opening_store(folder, count), 1000, times=16),
    ),
    Part(
        "opening passages", "sqlite3.connect", 4,
        "every command opens passages",
        made.opening_versus_sqlite,
    ),
    Part(
        "opening BM25", "json.loads of its corpus", 4,
        "an existing index is mapped, neither read completely nor built again",
        made.opening_index,
    ),
    *(
        Part(
            f"paragraphs of {name}", "half the text", LINEAR,
            "no text may make a pattern backtrack from every position",
            lambda _, unit=unit, after=after: made.packing(unit, after),
        )
        for name, unit, after in (
            ("white space", "\n \t", "x"), ("sentences", "x. ", ""), ("items", "- ", ""), ("rules", "-", "\n x"),
            ("marks", "#", ""),
        )
    ),
    Part(
        "paragraphs of prose", "finding the words", 2,
        "chunking a corpus must cost at most twice as much as finding its words",
        lambda _: made.packing_versus_words(),
    ),
    *(
        Part(
            f"{kind} of {name}", "half the text", LINEAR,
            "no text may make a pattern or a parser backtrack from every position",
            lambda _, kind=kind, unit=unit: made.chunking(kind, unit),
        )
        for kind in ("markdown", "recursive", "sentence")
        for name, unit in (
            ("headings", "# A\n"), ("items", "- x\n"), ("nested items", "- "), ("stops", "."), ("quotations", '."'),
            ("white space", "\n \t"), ("letters", "x"), ("tables", "|a|\n|-|\n"),
        )
    ),
    Part(
        "recursive of prose", "finding the words", 0.4,
        "megabytes per second if lengths are in characters",
        lambda _: made.chunking_versus_words(),
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None, parts: Sequence[Part] = PARTS) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="measure only parts with one of these words in their names")
    parser.add_argument("--repeats", type=int, default=7, help="number of ratios, whose median is the figure")
    options = parser.parse_args(arguments)
    chosen = [part for part in parts if not options.words or any(word in part.name for word in options.words)]
    if not chosen:
        parser.error(f"no part has such a name; the parts are {'; '.join(dict.fromkeys(part.name for part in parts))}")
    print(f"{'part':<28} {'relative to':<26} {'ratio':>6} {'limit':>6}")
    failed = 0
    for part in chosen:
        found = part.measured(options.repeats)
        failed += found > part.limit
        verdict = "pass" if found <= part.limit else f"FAIL: {part.why}"
        print(f"{part.name:<28} {part.reference:<26} {found:>6.2f} {part.limit:>6.1f}  {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
