"""From the cuts of a folder to their document: a row a file, or, for one file, a row a chunk; and a histogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from raggs.base.text import plural
from raggs.chunking.models import ChunkRow, CutFile, CutReport
from raggs.evaluation.document import Cell, Document, Legend, Row, Section, Table
from raggs.parts.corpora.folder import file_name

BARS = 30
NAME = 40  # characters of a file's name
STEPS = (1, 2, 5)
BINS = 12  # of a histogram at most
TORN = "~"


class Bar(NamedTuple):
    """A class of sizes: from where to where, and how many chunks fall into it."""

    label: str
    chunks: int


def lay_out_cuts(report: CutReport, *, whole: bool, most: int | None = None) -> Document:
    """The document.

    Args:
        whole: with a row for each chunk, instead of one for each file.
        most: files that get a row; None: all. The figures are of all files.
    """
    left = 0 if whole or most is None else max(0, len(report.files) - most)
    chunks = [chunk for file in report.files for chunk in file.chunks]
    if whole:
        table = Table(("#", "place", "tokens", "begins", "ends"), tuple(map(_chunk, chunks)))
        legend: tuple[Legend, ...] = (Legend(TORN, "the cut falls into a sentence"),)
    else:
        table = Table(
            ("file", "chunks", "median", "longest", "torn", "lost", "repeated"), tuple(map(_file, report.files[:most]))
        )
        legend = (
            Legend("median, longest", "tokens of cl100k"),
            Legend("torn", "chunks that end inside of a sentence"),
            Legend("lost", "characters that no chunk holds, white space aside"),
            Legend("repeated", "characters that several hold"),
        )
    rest = (f"the first {most} files by name; {left:,} more: --all, or --file FILE",) if left else ()
    sentences = (summary(report), *report.notes, *rest)
    histogram = Section("Sizes in tokens", tuple(_histogram([chunk.tokens for chunk in chunks])))
    return Document("Cuts", Section("Cuts", sentences, table, legend), (histogram,), ())


def summary(report: CutReport) -> str:
    """How many chunks there are, of what sizes, and how many are torn."""
    chunks = [chunk for file in report.files for chunk in file.chunks]
    if not chunks:
        return f"no chunk of {plural(len(report.files), 'file')}"
    sizes = [chunk.tokens for chunk in chunks]
    torn = sum(chunk.torn for chunk in chunks)
    return (
        f"{plural(len(chunks), 'chunk')} of {plural(len(report.files), 'file')}: {min(sizes):,} to {max(sizes):,} "
        f"tokens, median {median(sizes):,.0f}; {torn:,} ({torn / len(chunks):.0%}) end inside of a sentence"
    )


def _file(file: CutFile) -> Row:
    sizes = [chunk.tokens for chunk in file.chunks] or [0]
    return (
        Cell(_shown(file.file)),
        Cell(f"{len(file.chunks):,}"),
        Cell(f"{median(sizes):,.0f}"),
        Cell(f"{max(sizes):,}"),
        Cell(f"{sum(chunk.torn for chunk in file.chunks):,}"),
        Cell(f"{file.lost:,}"),
        Cell(f"{file.repeated:,}"),
    )


def _shown(source: str) -> str:
    """A file's name in the folder, or its id if the name cannot be printed on a line; of a long one the end."""
    name = file_name(source)
    name = name if name.isprintable() else source
    return name if len(name) <= NAME else f"…{name[1 - NAME :]}"


def _chunk(chunk: ChunkRow) -> Row:
    end = f"{chunk.last} {TORN}" if chunk.torn else chunk.last
    return (
        Cell(str(chunk.number)),
        Cell(f"{chunk.start}:{chunk.end}"),
        Cell(f"{chunk.tokens:,}"),
        Cell(chunk.first),
        Cell(end),
    )


def _histogram(sizes: Sequence[int]) -> Iterator[str]:
    """A line for each class of sizes."""
    bars = bars_of(sizes)
    most = max((bar.chunks for bar in bars), default=1)
    for bar in bars:
        yield f"{bar.label}  {'▇' * -(-bar.chunks * BARS // most):<{BARS}} {bar.chunks:,}"


def bars_of(sizes: Sequence[int]) -> list[Bar]:
    """How many sizes fall into each class, from 0 on; none where there are no sizes."""
    if not sizes:
        return []
    width = _width(max(sizes))
    counts = [0] * (max(sizes) // width + 1)
    for size in sizes:
        counts[size // width] += 1
    places = len(f"{len(counts) * width:,}")
    return [
        Bar(f"{number * width:>{places},} – {(number + 1) * width - 1:>{places},}", count)
        for number, count in enumerate(counts)
    ]


def _width(largest: int) -> int:
    """Of a class: the first of 1, 2, 5, 10, 20, ... that needs no more than `BINS`."""
    scale = 1
    while True:
        for step in STEPS:
            if largest // (step * scale) < BINS:
                return step * scale
        scale *= 10
