"""reStructuredText: the file's own text, with the sections that docutils finds in it.

docutils parses and no more: no file is included, nothing raw is taken over, no reference is resolved, and what it would
complain about (directives and roles of other tools) is left alone. Where it fails the document has no sections.
Between headings a block begins at each line without indentation that follows an empty line, so that code, directives
and notes stay with the words that lead to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path

from raggs.parts.documents.base import Block, DocumentReader, Kind, Reading, read_text

VERTICAL = re.compile(r"[\v\f]")
BREAK = re.compile(r"\n[^\S\n]*\n(?=\S)")
TABLE = re.compile(r"\s*(?:\+[-=+]{3,}|={2,} +=)")
INDENTED = re.compile(r"\n[^\S\n]*\n[^\S\n]+\S")
SETTINGS = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,  # above all that there are
    "halt_level": 6,
    "syntax_highlight": "none",
}


class RstReader(DocumentReader):
    """reStructuredText, as it is; its sections by docutils."""

    PACKAGES = ("docutils",)
    SECTIONS = True

    def read(self, path: Path) -> Reading:
        text = read_text(path)
        return Reading(text, blocks=partial(rst_blocks, text))


def rst_blocks(text: str) -> tuple[Block, ...]:
    """Headings, and blocks of what stands between them."""
    return tuple(_between(text, _headings(text)))


def _between(text: str, headings: Iterator[Block]) -> Iterator[Block]:
    end = 0
    for heading in headings:
        yield from _blocks(text, end, heading.start)
        yield heading
        end = heading.end
    yield from _blocks(text, end, len(text))


def _blocks(text: str, start: int, end: int) -> Iterator[Block]:
    for found in BREAK.finditer(text, start, end):
        yield from _block(text, start, found.end())
        start = found.end()
    yield from _block(text, start, end)


def _block(text: str, start: int, end: int) -> Iterator[Block]:
    if text[start:end].strip():
        kind: Kind = "table" if TABLE.match(text, start, end) else "text"
        yield Block(start, end, "code" if INDENTED.search(text, start, end) else kind)


def _headings(text: str) -> Iterator[Block]:
    """The sections' titles with their lines above and below, in order."""
    lines = VERTICAL.sub(" ", text).splitlines(keepends=True)  # as docutils counts them
    starts = [0, *accumulate(map(len, lines))]
    reached = 0
    for words, level, below in _titles(text):
        if reached < below < len(lines):
            rule = lines[below].strip()
            above = below >= reached + 2 and lines[below - 2].strip() == rule
            first = below - 2 if above else below - 1
            yield Block(starts[first], starts[below + 1], "heading", level, words or lines[below - 1].strip())
            reached = below + 1


def _titles(text: str) -> Iterator[tuple[str, int, int]]:
    """Of each section the words of its title, its depth, and the number of the line below the title, from 0."""
    from docutils import nodes
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser
    from docutils.utils import new_document

    settings = get_default_settings(Parser)
    for name, value in SETTINGS.items():
        setattr(settings, name, value)
    document = new_document("", settings)
    try:
        Parser().parse(text, document)
    except Exception:  # noqa: BLE001 - foreign code over any text; RecursionError is the least of it
        return
    depths: dict[nodes.Node, int] = {}
    for section in document.findall(nodes.section):
        depths[section] = depths.get(section.parent, 0) + 1
        title = section.next_node(nodes.title, descend=True)
        if title is not None and title.parent is section and title.line:
            yield " ".join(title.astext().split()), depths[section], title.line - 1
