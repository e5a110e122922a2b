"""What was cut where as one page of HTML that needs nothing else: sizes, a histogram, and every text with its chunks.

Texts of documents are hostile: all of them are escaped by the template, characters that would turn the order of letters
are shown as escapes, and the page forbids itself every script, every address and every style but its own. It computes
nothing that the report does not say.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from raggs.base.text import visible
from raggs.chunking.models import ChunkRow, CutFile
from raggs.chunking.showing import Shown
from raggs.chunking.showlayout import Bar, bars_of, summary
from raggs.parts.chunkers.base import Document

if TYPE_CHECKING:
    from jinja2 import Template

MOST = 3_000_000  # characters of text on a page, which browsers still scroll
ROW, LABEL, ROOM, COUNT = 18, 92, 216, 52  # of the histogram, in its own units


@dataclass(frozen=True)
class Piece:
    """A stretch of a document that the same chunks hold.

    Attributes:
        text: its characters.
        kind: "odd" or "even" by the chunk's number, "twice" for several, "none" where no chunk holds it, "gap" where
            that is white space, "head" before the document begins.
        begins: the chunks that begin with it.
        torn: whether a chunk ends with it inside of a sentence.
    """

    text: str
    kind: str
    begins: tuple[ChunkRow, ...] = ()
    torn: bool = False


@dataclass(frozen=True)
class FileView:
    """A file as the page shows it; `pieces` is None where its text is left out for its length."""

    number: int
    cut: CutFile
    median: float
    longest: int
    torn: int
    pieces: tuple[Piece, ...] | None


def cut_page(shown: Shown, title: str) -> str:
    """The page.

    Args:
        title: what was cut, for its head.
    """
    views = tuple(_views(shown))
    bars = bars_of([chunk.tokens for file in shown.report.files for chunk in file.chunks])
    style = (files("raggs.chunking") / "cutpage.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        title=title,
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        sentences=(summary(shown.report), *shown.report.notes),
        views=views,
        left_out=sum(view.pieces is None for view in views),
        bars=tuple(_drawn(bars)),
        high=ROW * len(bars) + 4,
        wide=LABEL + ROOM + COUNT,
    )


def _views(shown: Shown) -> Iterator[FileView]:
    room = MOST
    for number, (file, document) in enumerate(zip(shown.report.files, shown.documents, strict=True), start=1):
        fits = len(document.text) <= room
        room -= len(document.text) if fits else 0
        sizes = [chunk.tokens for chunk in file.chunks] or [0]
        torn = sum(chunk.torn for chunk in file.chunks)
        yield FileView(
            number, file, median(sizes), max(sizes), torn, tuple(pieces_of(document, file.chunks)) if fits else None
        )


def pieces_of(document: Document, chunks: Sequence[ChunkRow]) -> Iterator[Piece]:
    """A document's text in pieces, in order and without a gap, cut wherever a chunk begins or ends."""
    text, begin = document.text, document.begin
    edges = sorted({0, begin, len(text), *(chunk.start for chunk in chunks), *(chunk.end for chunk in chunks)})
    waiting, held = list(reversed(chunks)), list[ChunkRow]()
    for start, end in pairwise(edges):
        held = [chunk for chunk in held if chunk.end > start]
        fresh = []
        while waiting and waiting[-1].start <= start:
            fresh.append(waiting.pop())
        held += fresh
        yield Piece(
            text=visible(text[start:end].replace("\r\n", "\n")),
            kind=_kind(text[start:end], held) if start >= begin else "head",
            begins=tuple(fresh),
            torn=any(chunk.torn and chunk.end == end for chunk in held),
        )


def _kind(text: str, held: Sequence[ChunkRow]) -> str:
    if len(held) > 1:
        return "twice"
    if held:
        return "odd" if held[0].number % 2 else "even"
    return "none" if text.strip() else "gap"


def _drawn(bars: Sequence[Bar]) -> Iterator[dict[str, object]]:
    """Each bar with its place in the picture."""
    most = max((bar.chunks for bar in bars), default=1)
    for number, bar in enumerate(bars):
        width = round(ROOM * bar.chunks / most, 1)
        yield {"bar": bar, "y": number * ROW + 2, "width": width, "x": LABEL, "end": LABEL + width + 5}


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.from_string((files("raggs.chunking") / "cutpage.html").read_text(encoding="utf-8"))
