"""Markdown: the file's own text, its front matter apart, and what stands where in it.

The document is read by markdown-it (CommonMark with tables): a ``#`` within a fence is no heading, and neither is one
in a list or a quotation. Blocks come in order, do not overlap and hold every word of the text: what the parser takes
for no block (definitions of links) is a block of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.inputs import regular_file, unreadable
from raggs.parts.documents.base import Block, DocumentReader, Kind, Reading, filled, read_text
from raggs.parts.documents.matter import OPENINGS, split_matter

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
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


class MarkdownReader(DocumentReader):
    """Markdown with its front matter: title and metadata."""

    PACKAGES = ("markdown-it-py",)

    def marks(self, path: Path) -> Sequence[str]:
        """Files that may begin with front matter, which once was read as text."""
        try:
            with regular_file(path).open("rb") as file:
                head = file.read(6).removeprefix(b"\xef\xbb\xbf")
        except OSError as error:
            raise unreadable(error, path) from error
        return ("front matter",) if head.startswith(OPENINGS) else ()

    def read(self, path: Path) -> Reading:
        text = read_text(path)
        matter = split_matter(text)
        body = text[matter.end :]
        return Reading(
            text,
            begin=matter.end,
            blocks=partial(markdown_blocks, body),
            title=matter.title,
            metadata=matter.metadata,
            warning=matter.warning,
            line=matter.line,
        )


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The parser's blocks, and what lies between them as blocks of text."""
    return tuple(filled(text, _parsed(text)))


def _parsed(text: str) -> Iterator[Block]:
    lines = [found.start() for found in LINE.finditer(text)]
    lines += [len(text)] * 2
    env: dict[str, object] = {}
    parser = _parser()
    tokens = parser.parse(text, env)
    for place, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        first, last = (lines[min(line, len(lines) - 1)] for line in token.map)
        if first < last:
            heading = token.type == "heading_open"
            yield Block(
                first,
                last,
                KINDS.get(token.type, "text"),
                int(token.tag[1]) if heading else 0,
                _title(parser, tokens[place + 1].content, env) if heading else "",
                tuple(lines[line] for line in _items(tokens, place)) if token.type in LISTS else (),
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
