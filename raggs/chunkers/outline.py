"""What stands where in a Markdown document: its blocks, its headings, and the path of sections to any place in it.

The document is read by markdown-it (CommonMark with tables): a ``#`` within a fence is no heading, and neither is one
in a list or a quotation. Blocks come in order, do not overlap and hold every word of the text: what the parser takes
for no block (definitions of links, front matter) is a block of text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal["heading", "text", "code", "table", "list"]
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
MATTER = re.compile(r"\A---[ \t]*\r?\n(?:(?!---|\.\.\.)[^\n]*\n)*(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)")
LONG = 1000  # characters; marks within marks take their time
LISTS = ("bullet_list_open", "ordered_list_open")
KINDS: dict[str, Kind] = {
    "fence": "code",
    "code_block": "code",
    "html_block": "code",
    "table_open": "table",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "heading_open": "heading",
}


@dataclass(frozen=True)
class Block:
    """A block of the document's own level, in whole lines.

    Attributes:
        start, end: its characters.
        kind: what it is; whatever is not told apart is text.
        level, title: of a heading: 1 to 6, and its words without marks.
        items: where the items of a list begin.
    """

    start: int
    end: int
    kind: Kind = "text"
    level: int = 0
    title: str = ""
    items: tuple[int, ...] = ()


Path = tuple[Block, ...]


class Outline:
    """A document's blocks, and which section a place belongs to."""

    def __init__(self, text: str) -> None:
        self.blocks = tuple(_blocks(text))
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


def _blocks(text: str) -> Iterator[Block]:
    """The parser's blocks, and what lies between them as blocks of text."""
    end = 0
    for block in _parsed(text):
        if text[end : block.start].strip():
            yield Block(end, block.start)
        yield block
        end = block.end
    if text[end:].strip():
        yield Block(end, len(text))


def _parsed(text: str) -> Iterator[Block]:
    matter = MATTER.match(text)
    lines = [found.start() for found in LINE.finditer(text)]
    lines += [len(text)] * 2
    skipped = 0 if matter is None else bisect_right(lines, matter.end() - 1)
    env: dict[str, object] = {}
    parser = _parser()
    tokens = parser.parse(text[lines[skipped] :] if skipped else text, env)
    for place, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        first, last = (lines[min(line + skipped, len(lines) - 1)] for line in token.map)
        if first < last:
            heading = token.type == "heading_open"
            yield Block(
                first,
                last,
                KINDS.get(token.type, "text"),
                int(token.tag[1]) if heading else 0,
                _title(parser, tokens[place + 1].content, env) if heading else "",
                tuple(lines[line + skipped] for line in _items(tokens, place)) if token.type in LISTS else (),
            )


def _items(tokens: Sequence[Token], place: int) -> Iterator[int]:
    """The first lines of the items of the list that begins at a place."""
    for token in islice(tokens, place + 1, None):
        if token.level == 0:
            return
        if token.level == 1 and token.type == "list_item_open" and token.map is not None:
            yield token.map[0]


def _title(parser: MarkdownIt, content: str, env: dict[str, object]) -> str:
    """The words of a heading, without marks, unless it is too long to be one."""
    if len(content) > LONG:
        return " ".join(content.split())
    found: list[Token] = []
    parser.inline.parse(content, parser, env, found)
    words = " ".join("".join(token.content if token.content else _space(token) for token in found).split())
    return words or " ".join(content.split())


def _space(token: Token) -> str:
    return " " if token.type in ("softbreak", "hardbreak") else ""


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")
