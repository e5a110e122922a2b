"""Chunking at headings (Markdown, HTML, rst): a chunk is one section, or a part of a section that is too long.

Code fences, tables and lists stay whole up to `whole` times the size. Longer lists are split between items, longer code
and tables between lines. Paragraphs that do not fit are split at sentence ends, then at lines, words and characters. A
heading without text is kept with the section that follows it. A heading stays with the first words below it, unless it
fills more than half of a chunk.

`Outline` is the list of a document's sections, with the path of headings to any position in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Literal

from pydantic import Field

from raggs.parts.chunkers import Document, TextRange
from raggs.parts.chunkers.sizes import (
    LINES,
    WORD_BREAK,
    SizedChunker,
    SizedConfig,
    join_to_fit,
    split_to_fit,
    trim_range,
)
from raggs.parts.documents import Block
from raggs.parts.documents.markdown import markdown_blocks

Path = tuple[Block, ...]


class Outline:
    """Blocks of a document, and the section of each position; if `blocks` is a string, it is parsed as Markdown."""

    def __init__(self, document: str | Iterable[Block]) -> None:
        self.blocks = markdown_blocks(document) if isinstance(document, str) else tuple(document)
        self._edges = [block.start for block in self.blocks]
        headings = [block for block in self.blocks if block.kind == "heading"]
        self._headings = headings
        self._starts = [block.start for block in headings]
        start: Path = ()
        self._paths = list(accumulate(headings, _path_below, initial=start))

    def path(self, start: int, end: int) -> tuple[str, ...]:
        """Return the titles from the top section down to the deepest section that contains the range.

        Headings at the start of the range are ignored: the section is that of the text below them. The path is empty
        before the first heading, and for a range that spans several top sections.
        """
        last = bisect_right(self._starts, self._below_headings(start, end))
        path = self._paths[last]
        for heading in islice(self._headings, last, bisect_left(self._starts, end)):
            path = _headings_above(path, heading.level)
        return tuple(block.title for block in path if block.title)

    def sections(self) -> Iterator[tuple[tuple[str, ...], int, int]]:
        """Yield the path of each heading, with start and end of the text directly below it.

        Text before the first heading comes first, with an empty path.
        """
        edges = [*self._starts, self.blocks[-1].end if self.blocks else 0]
        if edges[0]:
            yield (), 0, edges[0]
        for heading, end in zip(self._headings, edges[1:], strict=True):
            yield self.path(heading.start, heading.end), heading.end, end

    def _below_headings(self, start: int, end: int) -> int:
        """Return the first position after the headings at the start of a range; the last heading if no text follows."""
        at = start
        first = max(0, bisect_right(self._edges, start) - 1)
        for block in islice(self.blocks, first, bisect_left(self._edges, end)):
            if block.end > start:
                at = max(start, block.start)
                if block.kind != "heading":
                    break
        return at


def _headings_above(path: Path, level: int) -> Path:
    return tuple(block for block in path if block.level < level)


def _path_below(path: Path, heading: Block) -> Path:
    return (*_headings_above(path, heading.level), heading)


def blocks_of(document: Document) -> Sequence[Block]:
    """Return the blocks of a document; a document without a block parser is parsed as Markdown."""
    return markdown_blocks(document.text) if document.blocks is None else document.blocks()


Section = list[Block]


class MarkdownChunker(SizedChunker):
    """Splits Markdown, HTML and rst at headings; code, tables and lists stay whole if possible."""

    PACKAGES = ("markdown-it-py",)

    class Config(SizedConfig):
        type: Literal["markdown"] = "markdown"
        whole: int = Field(
            4, ge=1, le=1000, description="code, tables and lists stay whole up to this multiple of `size`"
        )

    config: Config

    def places(self, document: Document) -> Iterator[TextRange]:
        text = document.text
        for section in _sections(blocks_of(document)):
            for place in self._chunks(text, _fill_section(section)):
                yield trim_range(text, place)

    def _chunks(self, text: str, section: Section) -> Iterator[TextRange]:
        """Yield a section whose blocks are adjacent, or its parts if it is too long."""
        size = self.config.size
        whole = section[0].start, section[-1].end
        if self._length(text, whole) <= size:
            yield whole
            return
        heads = next((number for number, block in enumerate(section) if block.kind != "heading"), len(section))
        head = whole[0], section[heads].start if heads < len(section) else whole[1]
        taken = self._length(text, head) if heads else 0
        tied = heads and heads < len(section) and taken <= size // 2
        parts = [] if tied else list(split_to_fit(text, head, size, self.ruler))
        body = [
            part
            for number, block in enumerate(section[heads:])
            for part in self._parts(text, block, size - taken if tied and not number else size)
        ]
        if tied:
            body[0] = head[0], body[0][1]
        yield from join_to_fit([*parts, *body], text, size, self.ruler)

    def _parts(self, text: str, block: Block, room: int) -> Iterator[TextRange]:
        """Yield a block if it fits or must stay whole, otherwise its parts."""
        place = block.start, block.end
        most = self.config.size * (self.config.whole - 1) + room
        if block.kind in ("text", "heading"):
            yield from split_to_fit(text, place, room, self.ruler)
        elif self._length(text, place) <= most:
            yield place
        elif block.kind == "list":
            for item in pairwise((*block.items, block.end)):
                yield from self._lines(text, item, room, most)
        else:
            yield from self._lines(text, place, room, most)

    def _lines(self, text: str, place: TextRange, room: int, most: int) -> Iterator[TextRange]:
        """Yield the range as a whole if it is at most `most` long, otherwise its lines."""
        if self._length(text, place) <= most:
            yield place
        else:
            yield from split_to_fit(text, place, room, self.ruler, (LINES, WORD_BREAK))

    def _length(self, text: str, place: TextRange) -> int:
        return self.ruler.lengths([text[slice(*place)]])[0]


def _sections(blocks: Sequence[Block]) -> Iterator[Section]:
    """Yield the blocks from one heading to the next; a heading without text is joined with the next section."""
    section: Section = []
    for block in blocks:
        if block.kind == "heading" and section and section[-1].kind != "heading":
            yield section
            section = []
        section.append(block)
    if section:
        yield section


def _fill_section(section: Section) -> Section:
    """Return the section with each block extended to the start of the next block."""
    nexts = [block.start for block in section[1:]] + [section[-1].end]
    return [
        Block(block.start, end, block.kind, block.level, block.title, block.items)
        for block, end in zip(section, nexts, strict=True)
    ]
