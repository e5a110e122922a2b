"""The sections of a document, and the path of titles that leads to any place in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

from raggs.parts.chunkers.base import Document
from raggs.parts.documents.base import Block
from raggs.parts.documents.markdown import markdown_blocks

Path = tuple[Block, ...]


class Outline:
    """A document's blocks, and which section a place belongs to; a text is read as Markdown."""

    def __init__(self, document: str | Iterable[Block]) -> None:
        self.blocks = markdown_blocks(document) if isinstance(document, str) else tuple(document)
        self._edges = [block.start for block in self.blocks]
        headings = [block for block in self.blocks if block.kind == "heading"]
        self._headings = headings
        self._starts = [block.start for block in headings]
        start: Path = ()
        self._paths = list(accumulate(headings, _below, initial=start))

    def path(self, start: int, end: int) -> tuple[str, ...]:
        """The titles from the topmost section down to the deepest that holds all of a place but headings at its top.

        Empty where the place stands before the first heading, or reaches from one topmost section into another.
        """
        last = bisect_right(self._starts, self._below_headings(start, end))
        path = self._paths[last]
        for heading in islice(self._headings, last, bisect_left(self._starts, end)):
            path = _above(path, heading.level)
        return tuple(block.title for block in path if block.title)

    def sections(self) -> Iterator[tuple[tuple[str, ...], int, int]]:
        """The path of each heading, and where what stands below it and no other begins and ends.

        What stands before the first heading comes first, under an empty path.
        """
        edges = [*self._starts, self.blocks[-1].end if self.blocks else 0]
        if edges[0]:
            yield (), 0, edges[0]
        for heading, end in zip(self._headings, edges[1:], strict=True):
            yield self.path(heading.start, heading.end), heading.end, end

    def _below_headings(self, start: int, end: int) -> int:
        """The first place after the headings at the top of a place; the last of these where there is nothing else."""
        at = start
        first = max(0, bisect_right(self._edges, start) - 1)
        for block in islice(self.blocks, first, bisect_left(self._edges, end)):
            if block.end > start:
                at = max(start, block.start)
                if block.kind != "heading":
                    break
        return at


def _above(path: Path, level: int) -> Path:
    return tuple(block for block in path if block.level < level)


def _below(path: Path, heading: Block) -> Path:
    return (*_above(path, heading.level), heading)


def blocks_of(document: Document) -> Sequence[Block]:
    """What stands where in a document; one of which nobody knows is read as Markdown."""
    return markdown_blocks(document.text) if document.blocks is None else document.blocks()
