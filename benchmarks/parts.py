"""How fast the parts are that every run passes through, each beside a yardstick in the same process.

    python benchmarks/parts.py                  all parts, half a minute
    python benchmarks/parts.py paragraphs run   those with one of these words in their names

A figure is the cost of the work over that of its yardstick: the same work on half of the input, or the least that the
standard library needs for the same text. Costs are processor seconds, or bytes at the peak. The median of several
ratios counts, each of two samples taken one after the other, so that neither the machine nor its other users matter.
The limits and their reasons are in the table PARTS; exit code 1 if a figure is above its limit.
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

SAMPLE_S = 0.02  # a sample repeats its work for at least so long
LINEAR = 2.6  # twice the input takes twice the time, and a little more where it no longer fits a cache

Ratio = Callable[[], float]


@dataclass(frozen=True)
class Clocks:
    """Processor seconds of the process with all of its threads, and of the calling thread alone."""

    every: Callable[[], float] = time.process_time
    own: Callable[[], float] = time.thread_time


def of_seconds(pair: Pair, clocks: Clocks = Clocks()) -> Ratio:
    """Processor time of the work over that of the yardstick."""
    work, yardstick = (_seconds(each, clocks) for each in pair)
    return lambda: work() / yardstick()


def of_peaks(pair: Pair) -> Ratio:
    """Bytes held at most, beyond what was there before."""
    return lambda: _peak(pair.work) / _peak(pair.yardstick)


def of_threads(pair: Pair, clocks: Clocks = Clocks()) -> Ratio:
    """Processor time of all threads over that of the calling one, both in the work; there is no yardstick."""

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
    """One line of the table; `pair` makes work and yardstick in an empty folder."""

    name: str
    beside: str
    limit: float
    why: str
    pair: Callable[[Path], Pair]
    ratio: Callable[[Pair], Ratio] = of_seconds

    def measured(self, repeats: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            ratio = self.ratio(self.pair(Path(folder)))
            return statistics.median(ratio() for _ in range(repeats))


# Beside the standard library a limit is about twice what was measured with CPython 3.11: it is crossed by a step too
# many for each word, line or call, not by another version of Python or of a library.
PARTS = (
    Part(
        "reference judge", "half the words", LINEAR,
        "a passage of any length is looked through once",
        lambda _: made.grown(made.grading, 200),
    ),
    Part(
        "reference judge", "finding the words", 8,
        "runs of words are looked up in a set; all pairs of places would take a hundred times as long",
        lambda _: made.grading_beside_words(),
    ),
    Part(
        "qrels judge, order", "random.Random(ids)", 7,
        "simulations ask for millions of orders; utilities are drawn once",
        made.ordering,
    ),
    Part(
        "run of TREC", "half the lines", LINEAR,
        "one pass; a pair that stands twice is found by a look into a dictionary",
        lambda folder: made.grown(lambda lines: made.reading(folder, lines), 20_000),
    ),
    Part(
        "run of TREC", "str.split, float", 8,
        "a million lines in seconds, each of them checked",
        made.reading_beside_split,
    ),
    Part(
        "ledger, cached answer", "json.dumps of a line", 1.5,
        "cached answers come by the thousand a second; they are counted, not written",
        made.booking,
    ),
    Part(
        "near-duplicates", "half the pool", 2.8,
        "all pairs are compared, which would be four times, but few of them word by word",
        lambda _: made.grown(made.grouping, 100),
    ),
    Part(
        "near-duplicates", "finding the words", 5,
        "a pool of a hundred must cost nothing beside the judge: the histograms keep most pairs from rapidfuzz",
        lambda _: made.grouping_beside_words(),
    ),
    Part(
        "exact search", "half the vectors", LINEAR,
        "every vector is looked at once",
        lambda _: made.grown(made.searching, 16_384),
    ),
    Part(
        "exact search, memory", "half the vectors", 1.1,
        "the map is read chunk by chunk",
        lambda _: made.grown(made.searching, 16_384), of_peaks,
    ),
    Part(
        "exact search, memory, ties", "half the vectors", 1.1,
        "ties are settled chunk by chunk, also where all vectors are equal",
        lambda _: made.grown(made.searching_equals, 16_384), of_peaks,
    ),
    *(
        Part(
            f"exact search, {asked} asked", "the calling thread", 1.2,
            "threads of BLAS would fight with other workers for the same cores",
            lambda _, asked=asked: made.searching_beside_itself(asked), of_threads,
        )
        for asked in (1, 3, 64)
    ),
    *(
        Part(
            f"hygiene of {name}", "finding the words", limit,
            "every passage passes it whenever it is read, and most are clean",
            lambda _, accent=accent, raw=raw: made.cleaning_beside_words(accent, raw),
        )
        for name, accent, raw, limit in (
            ("ASCII", "e", False, 0.2), ("accents", "é", False, 0.3), ("letters in pieces", "é\u202f!", True, 5),
        )
    ),
    Part(
        "opening passages", "a sixteenth of them", 1.5,
        "two pages are read, whatever the size of the corpus",
        lambda folder: made.grown(lambda count: made.opening_store(folder, count), 1000, times=16),
    ),
    Part(
        "opening passages", "sqlite3.connect", 4,
        "every command opens them",
        made.opening_beside_sqlite,
    ),
    Part(
        "opening BM25", "json.loads of its corpus", 4,
        "an index that is there is mapped, neither read as a whole nor built again",
        made.opening_index,
    ),
    *(
        Part(
            f"paragraphs of {name}", "half the text", LINEAR,
            "no text may make a pattern try again from every place",
            lambda _, unit=unit, after=after: made.packing(unit, after),
        )
        for name, unit, after in (
            ("white space", "\n \t", "x"), ("sentences", "x. ", ""), ("items", "- ", ""), ("rules", "-", "\n x"),
            ("marks", "#", ""),
        )
    ),
    Part(
        "paragraphs of prose", "finding the words", 2,
        "cutting a corpus must cost no more than reading its words",
        lambda _: made.packing_beside_words(),
    ),
    *(
        Part(
            f"{kind} of {name}", "half the text", LINEAR,
            "no text may make a pattern or a parser try again from every place",
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
        "megabytes a second, where lengths are characters",
        lambda _: made.chunking_beside_words(),
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None, parts: Sequence[Part] = PARTS) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="measure parts with one of these in their names only")
    parser.add_argument("--repeats", type=int, default=7, help="ratios of which the median counts")
    options = parser.parse_args(arguments)
    chosen = [part for part in parts if not options.words or any(word in part.name for word in options.words)]
    if not chosen:
        parser.error(f"no part is named so; there are {'; '.join(dict.fromkeys(part.name for part in parts))}")
    print(f"{'part':<28} {'beside':<26} {'ratio':>6} {'limit':>6}")
    missed = 0
    for part in chosen:
        found = part.measured(options.repeats)
        missed += found > part.limit
        verdict = "kept" if found <= part.limit else f"MISSED: {part.why}"
        print(f"{part.name:<28} {part.beside:<26} {found:>6.2f} {part.limit:>6.1f}  {verdict}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
