"""Display of the chunks of a corpus: position and size of each chunk, and the sentences that chunk boundaries split.

A boundary splits a sentence if no sentence ends there and the line continues after the boundary. No texts are embedded,
unless the chunker needs an embedder.

The report has one row per file or, for a single file, one row per chunk. It also has a histogram of sizes. The HTML
page is self-contained: sizes, a histogram, and every text with its chunks. Texts of documents are untrusted, so the
template escapes them. Characters that change the text direction are shown as escapes. The page's content security
policy forbids scripts, external addresses, and styles other than the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from raggs.base.artifacts import Passage
from raggs.base.document import Column, Legend, ReportDocument, Section, Summary, Table, table_of, terms_of
from raggs.base.errors import NotFoundError
from raggs.base.text import count_tokens, did_you_mean, escape_controls, join_wrapped_lines, plural, shorten
from raggs.chunking.models import TORN, ChunkRow, CutFile, CutReport
from raggs.parts.chunkers import Document
from raggs.parts.corpora import CutCorpus
from raggs.parts.corpora.folder import file_name

if TYPE_CHECKING:
    from jinja2 import Template

EDGE_WORDS = 5  # words shown of a chunk's start and end
WIDTH = 36
SENTENCE_ENDED = re.compile(r"[.!?…。！？:;][\"'”’»)\]*_`]*\Z")
SENTENCE_ENDS = re.compile(r"[.!?…。！？]+[\"'”’»)\]*_`]*(?!\S)")
ON = re.compile(r"[^\S\n]*\S")


@dataclass(frozen=True)
class ChunkView:
    """The chunks of each file, and the documents in the same order."""

    report: CutReport
    documents: tuple[Document, ...]


def show_cuts(corpus: CutCorpus, file: str | None = None) -> ChunkView:
    """Return the chunks of the documents of a corpus.

    Args:
        corpus: the corpus.
        file: name, id or path of one file, or the end of its path; None for all files.

    Raises:
        NotFoundError: the folder does not exist, or `file` matches no file or several files.
        DataError: a file is not UTF-8.
    """
    read = {each.source: each for each in corpus.documents()}
    wanted = set(read) if file is None else {_find_document(file, list(read), corpus)}
    held: dict[str, list[Passage]] = {name: [] for name in read if name in wanted}
    for passage in corpus.passages():
        if passage.span is not None and passage.span.source in held:
            held[passage.span.source].append(passage)
    files = tuple(_file(read[name], passages) for name, passages in held.items())
    report = CutReport(files=files, notes=() if file else (*corpus.outside(), *corpus.notes()))
    return ChunkView(report, tuple(read[name] for name in held))


def _find_document(file: str, names: Sequence[str], corpus: CutCorpus) -> str:
    """Return the id of the document whose file name or id equals `file` or ends with it.

    Raises:
        NotFoundError: no document matches, or several documents match.
    """
    known = {name: file_name(name) for name in names}
    wanted = [file, *_relative_names(file, corpus.place)]
    found = [name for name, real in known.items() if name in wanted or real in wanted]
    if not found:  # operating systems encode an accented letter as one character or as two
        composed = {name: (_composed(name), _composed(real)) for name, real in known.items()}
        plain = [_composed(each) for each in wanted]
        found = [name for name, both in composed.items() if {*both} & {*plain}]
        ends = tuple(f"/{each}" for each in plain)
        found = found or [name for name, both in composed.items() if any(each.endswith(ends) for each in both)]
    if len(found) != 1:
        problem = f"{file} matches {len(found)} files" if found else f"no file {file}"
        raise NotFoundError(problem, where=corpus.place, remedy=did_you_mean(file, known.values()))
    return found[0]


def _relative_names(file: str, place: Path | str) -> Iterator[str]:
    """Yield the path `file` relative to the folder, if it is inside the folder. A shell may have completed the path."""
    path, folder = Path(file).absolute(), Path(place).absolute()
    for one, other in ((path, folder), (path.resolve(), folder.resolve())):
        if one.is_relative_to(other):
            yield one.relative_to(other).as_posix()


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _file(document: Document, passages: Sequence[Passage]) -> CutFile:
    text, begin = document.text, document.begin
    places = [(span.start, span.end) for passage in passages if (span := passage.span) is not None]
    titles = [passage.title for passage in passages if passage.span is not None]
    lengths = count_tokens([text[start:end] for start, end in places])
    shown = _times_shown(text, places)
    return CutFile(
        file=document.source,
        characters=len(text),
        lost=sum(not char.isspace() for char, times in zip(text[begin:], shown[begin:], strict=True) if not times),
        repeated=int((shown > 1).sum()),
        chunks=tuple(
            ChunkRow(
                number=number,
                start=start,
                end=end,
                tokens=length,
                first=_shorten_words(text[start:end].split()[:EDGE_WORDS]),
                last=_shorten_words(text[start:end].split()[-EDGE_WORDS:]),
                torn=is_torn(text, end),
                title=title,
            )
            for number, ((start, end), length, title) in enumerate(zip(places, lengths, titles, strict=True), start=1)
        ),
    )


def is_torn(text: str, end: int) -> bool:
    """Return whether a boundary at `end` splits a sentence."""
    if SENTENCE_ENDED.search(text, max(0, end - WIDTH), end) or SENTENCE_ENDS.match(text, end):
        return False
    return ON.match(text, end) is not None


def _times_shown(text: str, places: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of chunks that contain each character."""
    steps = np.zeros(len(text) + 1, dtype=np.int64)
    for start, end in places:
        steps[start] += 1
        steps[end] -= 1
    return np.cumsum(steps)[:-1]


def _shorten_words(words: Sequence[str]) -> str:
    return shorten(" ".join(words), WIDTH)


BARS = 30
NAME = 40  # maximum characters of a file name
BIN_STEPS = (1, 2, 5)
MAX_BINS = 12  # maximum number of bins of a histogram


class SizeBin(NamedTuple):
    """A bin of the histogram: its range of sizes, and the number of chunks in this range."""

    label: str
    chunks: int


def lay_out_cuts(report: CutReport, *, whole: bool, most: int | None = None) -> ReportDocument:
    """Return the report document.

    Args:
        report: the chunks.
        whole: whether the table has one row per chunk instead of one per file.
        most: maximum number of files in the table; None: all files. The statistics always include all files.
    """
    left = 0 if whole or most is None else max(0, len(report.files) - most)
    chunks = [chunk for file in report.files for chunk in file.chunks]
    if whole:
        table = table_of(chunks, "number", "place", "tokens", "first", "ending")
        legend: tuple[Legend, ...] = (Legend(TORN, "the chunk ends within a sentence"),)
    else:
        shown, told = report.files[:most], ("torn", "lost", "repeated")
        name = (Column("file"), lambda file: _shorten_name(file.file))
        table = table_of(shown, name, "chunks", "median", "longest", *told)
        legend = (Legend("median, longest", "size in tokens (cl100k)"), *terms_of(shown, *told))
    rest = (f"first {most} files by name; for {left:,} more, use --all or --file FILE",) if left else ()
    sentences = (summary(report), *report.notes, *rest)
    histogram = Section("Sizes in tokens", tuple(_histogram([chunk.tokens for chunk in chunks])))
    return ReportDocument("Chunks", Section("Chunks", sentences, table, legend), (histogram,), ())


MAX_SUMMARY_ROWS = 10  # maximum number of documents or chunks in the default output
SUMMARY_NAME, SUMMARY_WORDS = 36, 28  # maximum characters shown of a file name, and of a chunk's first or last words
MAX_NOTE = 160  # maximum characters of the note in the default output
MARKUP = "#*->| "  # Markdown characters that are omitted from the start of a chunk


def summarise_cuts(report: CutReport, *, whole: bool, command: str, page: bool = False) -> Summary:
    """Return the default output of `raggs chunks show`.

    If there are too many rows for the table, rows with chunks that end within a sentence take precedence.

    Args:
        report: the chunks.
        whole: whether the table has one row per chunk instead of one per document.
        command: the command that the user ran, without ``--file`` and ``--html``.
        page: whether the HTML page is already written.
    """
    chunks = [chunk for file in report.files for chunk in file.chunks]
    table, legend = _chunk_rows(chunks) if whole else _file_rows(report.files)
    worst = max(report.files, key=lambda file: (file.torn, file.lost), default=None)
    if worst and (worst.torn or worst.lost) and not whole:
        following = f"{command} --file {shlex.quote(file_name(worst.file))}"
    else:
        following = "" if page else f"{command} --html chunks.html"
    more = f"{plural(len(report.notes), 'note')}, " if report.notes else ""
    rows = "all chunks with their offsets" if whole else "more documents (--all: every document)"
    return Summary(
        (_headline(report, chunks),),
        table,
        legend,
        tuple(shorten(note, MAX_NOTE) for note in report.notes[:1]),
        following,
        f"--details: {more}{rows}, histogram of sizes",
    )


def _headline(report: CutReport, chunks: Sequence[ChunkRow]) -> str:
    documents = plural(len(report.files), "document")
    if not chunks:
        return f"No chunks from {documents}."
    sizes = [chunk.tokens for chunk in chunks]
    torn, lost = sum(chunk.torn for chunk in chunks), sum(file.lost for file in report.files)
    ends = f"{torn:,} {'ends' if torn == 1 else 'end'}" if torn else "none ends"
    missing = f" {plural(lost, 'character')} {'is' if lost == 1 else 'are'} in no chunk." if lost else ""
    return (
        f"{plural(len(chunks), 'chunk')} from {documents}; {ends} within a sentence; median {median(sizes):,.0f} "
        f"tokens, longest {max(sizes):,}.{missing}"
    )


def _file_rows(files: Sequence[CutFile]) -> tuple[Table | None, str]:
    """Return a table with one row per document, and its legend."""
    first = sorted(range(len(files)), key=lambda place: (-files[place].torn, -files[place].lost))[:MAX_SUMMARY_ROWS]
    shown = [files[place] for place in sorted(first)]
    name = (Column("document"), lambda file: _shorten_name(file.file, SUMMARY_NAME))
    torn = (Column("mid-sentence", text="{:,}"), lambda file: file.torn)
    table = table_of(shown, name, "chunks", torn, "median", "longest", "lost")
    legend = (
        "mid-sentence: chunks that end within a sentence; median, longest: tokens (cl100k); lost: characters in no "
        "chunk"
    )
    return table, legend + _rows_left_out(len(files), "documents", any(file.torn for file in files))


def _chunk_rows(chunks: Sequence[ChunkRow]) -> tuple[Table | None, str]:
    """Return a table with one row per chunk, and its legend."""
    first = sorted(range(len(chunks)), key=lambda place: not chunks[place].torn)[:MAX_SUMMARY_ROWS]
    begins = (Column("begins"), lambda chunk: shorten(chunk.first.lstrip(MARKUP) or chunk.first, SUMMARY_WORDS))
    ends = (Column("ends"), lambda chunk: shorten(chunk.last, SUMMARY_WORDS) + (f" {TORN}" if chunk.torn else ""))
    table = table_of([chunks[place] for place in sorted(first)], "number", "tokens", begins, ends)
    torn = any(chunk.torn for chunk in chunks)
    legend = f"{TORN}: the chunk ends within a sentence" if torn else "tokens: cl100k"
    return table, legend + _rows_left_out(len(chunks), "chunks", torn)


def _rows_left_out(count: int, things: str, torn: bool) -> str:
    if count <= MAX_SUMMARY_ROWS:
        return ""
    which = "those that split the most sentences" if torn else "in file order"
    return f"; {MAX_SUMMARY_ROWS} of {count:,} {things}, {which}"


def summary(report: CutReport) -> str:
    """Return a sentence with the number of chunks, their sizes, and how many end within a sentence."""
    chunks = [chunk for file in report.files for chunk in file.chunks]
    if not chunks:
        return f"no chunks in {plural(len(report.files), 'file')}"
    sizes = [chunk.tokens for chunk in chunks]
    torn = sum(chunk.torn for chunk in chunks)
    return (
        f"{plural(len(chunks), 'chunk')} of {plural(len(report.files), 'file')}: {min(sizes):,} to {max(sizes):,} "
        f"tokens, median {median(sizes):,.0f}; {torn:,} ({torn / len(chunks):.0%}) end within a sentence"
    )


def _shorten_name(source: str, most: int = NAME) -> str:
    """Return a file's name in the folder (or its id if the name is not printable), shortened to its end."""
    name = file_name(source)
    name = name if name.isprintable() else source
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _histogram(sizes: Sequence[int]) -> Iterator[str]:
    """Yield one line per bin of sizes."""
    bars = bars_of(sizes)
    most = max((bar.chunks for bar in bars), default=1)
    for bar in bars:
        yield f"{bar.label}  {'▇' * -(-bar.chunks * BARS // most):<{BARS}} {bar.chunks:,}"


def bars_of(sizes: Sequence[int]) -> list[SizeBin]:
    """Return the number of chunks in each bin of sizes, starting at 0; an empty list if there are no sizes."""
    if not sizes:
        return []
    width = _width(max(sizes))
    counts = [0] * (max(sizes) // width + 1)
    for size in sizes:
        counts[size // width] += 1
    places = len(f"{len(counts) * width:,}")
    return [
        SizeBin(f"{number * width:>{places},} – {(number + 1) * width - 1:>{places},}", count)
        for number, count in enumerate(counts)
    ]


def _width(largest: int) -> int:
    """Return the bin width: the smallest of 1, 2, 5, 10, 20, ... that results in at most `MAX_BINS` bins."""
    scale = 1
    while True:
        for step in BIN_STEPS:
            if largest // (step * scale) < MAX_BINS:
                return step * scale
        scale *= 10


MAX_PAGE_CHARS = 3_000_000  # maximum characters of all texts on a page; browsers scroll longer pages slowly
ROW, LABEL, BAR_WIDTH, COUNT = 18, 92, 216, 52  # dimensions of the histogram in SVG units


@dataclass(frozen=True)
class FilePiece:
    """A part of a document between two chunk boundaries.

    Attributes:
        text: characters of the part; control characters are shown as escapes.
        kind: "odd" or "even" by the number of the chunk that contains it, "twice" if several chunks contain it, "none"
            if no chunk contains it, "gap" if it is also only white space, or "head" before the start of the body.
        begins: chunks that start at the beginning of this part.
        torn: whether a chunk that ends with this part ends within a sentence.
    """

    text: str
    kind: str
    begins: tuple[ChunkRow, ...] = ()
    torn: bool = False


@dataclass(frozen=True)
class FileView:
    """A file as the page shows it; `pieces` is None if the file does not fit into the rest of the page."""

    number: int
    cut: CutFile
    pieces: tuple[FilePiece, ...] | None

    @property
    def about(self) -> str:
        """Number of chunks, and how many end within a sentence."""
        torn = f", {self.cut.torn:,} {MID_SENTENCE}" if self.cut.torn else ""
        return plural(len(self.cut.chunks), "chunk") + torn


class PageColumn(NamedTuple):
    """A column of the page's table: field of `CutFile`, title, and the meaning of the title (empty if not shown)."""

    field: str
    title: str
    legend: str = ""


MID_SENTENCE = "mid-sentence"
PAGE_COLUMNS = tuple(PageColumn(name, name) for name in ("chunks", "median", "longest"))
FAULT_COLUMNS = (  # shown if a document has such a fault
    PageColumn("torn", MID_SENTENCE, "chunks that end within a sentence"),
    PageColumn("lost", "lost", "characters in no chunk, without white space"),
    PageColumn("repeated", "repeated", "characters in several chunks"),
)


def cut_page(shown: ChunkView, title: str, chunker: str = "") -> str:
    """Return the HTML page. It joins lines of prose that an editor has wrapped.

    Args:
        shown: the chunks and the documents.
        title: title of the page.
        chunker: name and settings of the chunker; empty if unknown.
    """
    views, chunks = tuple(_views(shown)), [chunk for file in shown.report.files for chunk in file.chunks]
    bars = bars_of([chunk.tokens for chunk in chunks])
    worst = max(views, key=lambda view: (view.cut.torn, view.cut.lost), default=None)
    places = (files("raggs.base") / "theme.css", files("raggs.chunking") / "cutpage.css")
    style = "\n".join(place.read_text(encoding="utf-8") for place in places)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        title=title,
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        sentences=(_headline(shown.report, chunks), *shown.report.notes),
        chunker=chunker,
        following=_advice(worst.cut) if worst else "",
        columns=(
            *PAGE_COLUMNS,
            *(each for each in FAULT_COLUMNS if any(getattr(view.cut, each.field) for view in views)),
        ),
        kinds={piece.kind for view in views for piece in view.pieces or ()},
        mid_sentence=any(chunk.torn for chunk in chunks),
        opened=worst.number if worst else 0,
        views=views,
        left_out=sum(view.pieces is None for view in views),
        bars=tuple(_drawn_bars(bars)),
        high=ROW * len(bars) + 4,
        wide=LABEL + BAR_WIDTH + COUNT,
    )


def _advice(worst: CutFile) -> str:
    """Return what to do about the document with the most faults."""
    name = _shorten_name(worst.file)
    if worst.torn:
        return f"read {name}, which splits the most sentences, then try another chunker or a larger size."
    if worst.lost:
        return f"read {name}, where {plural(worst.lost, 'character')} {'is' if worst.lost == 1 else 'are'} in no chunk."
    return "compare chunkers on your questions: `raggs chunks eval`." if worst.chunks else ""


def _views(shown: ChunkView) -> Iterator[FileView]:
    room = MAX_PAGE_CHARS
    for number, (file, document) in enumerate(zip(shown.report.files, shown.documents, strict=True), start=1):
        fits = len(document.text) <= room
        room -= len(document.text) if fits else 0
        pieces = pieces_of(document, file.chunks) if fits else ()
        shown_pieces = tuple(replace(piece, text=join_wrapped_lines(piece.text)) for piece in pieces)
        yield FileView(number, file, shown_pieces if fits else None)


def pieces_of(document: Document, chunks: Sequence[ChunkRow]) -> Iterator[FilePiece]:
    """Yield a document's text in pieces, in order and without gaps, split at every start and end of a chunk."""
    text, begin = document.text, document.begin
    edges = sorted({0, begin, len(text), *(chunk.start for chunk in chunks), *(chunk.end for chunk in chunks)})
    waiting, held = list(reversed(chunks)), list[ChunkRow]()
    for start, end in pairwise(edges):
        held = [chunk for chunk in held if chunk.end > start]
        fresh = []
        while waiting and waiting[-1].start <= start:
            fresh.append(waiting.pop())
        held += fresh
        yield FilePiece(
            text=escape_controls(text[start:end].replace("\r\n", "\n")),
            kind=_piece_kind(text[start:end], held) if start >= begin else "head",
            begins=tuple(fresh),
            torn=any(chunk.torn and chunk.end == end for chunk in held),
        )


def _piece_kind(text: str, held: Sequence[ChunkRow]) -> str:
    if len(held) > 1:
        return "twice"
    if held:
        return "odd" if held[0].number % 2 else "even"
    return "none" if text.strip() else "gap"


def _drawn_bars(bars: Sequence[SizeBin]) -> Iterator[dict[str, object]]:
    """Yield each bar of the histogram with its coordinates."""
    most = max((bar.chunks for bar in bars), default=1)
    for number, bar in enumerate(bars):
        width = round(BAR_WIDTH * bar.chunks / most, 1)
        yield {"bar": bar, "y": number * ROW + 2, "width": width, "x": LABEL, "end": LABEL + width + 5}


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.from_string((files("raggs.chunking") / "cutpage.html").read_text(encoding="utf-8"))
