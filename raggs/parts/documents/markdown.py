"""Markdown: the file's own text, its front matter apart, and what stands where in it.

The document is read by markdown-it (CommonMark with tables): a ``#`` within a fence is no heading, and neither is one
in a list or a quotation. Blocks come in order, do not overlap and hold every word of the text: what the parser takes
for no block (definitions of links) is a block of text.

Front matter: what a document says about itself at its top, in YAML between ``---`` or TOML between ``+++``.

A document that merely begins with a rule has none: front matter is closed by a line of its own and is a mapping.
What is closed and looks like one, but cannot be read, is taken for front matter all the same, and `warning` says why:
it is no part of the text, whatever is wrong with it. It is read with the limits of `raggs.base.plainyaml`.

reStructuredText: the file's own text, with the sections that docutils finds in it.

docutils parses and no more: no file is included, nothing raw is taken over, no reference is resolved, and what it would
complain about (directives and roles of other tools) is left alone. Where it fails the document has no sections.
Between headings a block begins at each line without indentation that follows an empty line, so that code, directives
and notes stay with the words that lead to them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import cache, partial
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.errors import DataError
from raggs.base.files import regular_file, unreadable
from raggs.base.plainyaml import MAX_NUMBER_CHARS, MAX_YAML_DEPTH, load_plain
from raggs.base.text import shorten
from raggs.base.types import Json
from raggs.parts.documents import Block, BlockKind, DocumentContent, DocumentReader, fill_gaps, read_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

OPENINGS = (b"---", b"+++")
MAX_FRONT_MATTER_CHARS = 1 << 16  # characters in which front matter ends
FRONT_MATTER_START = re.compile(r"(---|\+\+\+)[ \t]*(\r?\n|\r)")
CLOSE = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\r|\Z)", re.MULTILINE),
}
KEYED = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?[\r\n]+)*[\"']?\w[\w .-]*[\"']?[ \t]*[:=]")  # comments, then a key


@dataclass(frozen=True)
class Matter:
    """What a document says about itself.

    Attributes:
        end: the first character after it; 0 where there is none.
        title: its title, on one line; empty where it has none.
        metadata: all else.
        warning: why it could not be read; `line`: in which line that shows.
    """

    end: int = 0
    title: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    warning: str = ""
    line: int = 0


def split_matter(text: str) -> Matter:
    """The front matter of a text."""
    opened = FRONT_MATTER_START.match(text)
    closed = (
        None if opened is None else CLOSE[opened[1]].search(text, opened.end(), opened.end() + MAX_FRONT_MATTER_CHARS)
    )
    if opened is None or closed is None:
        return Matter()
    inner = text[opened.end() : closed.start()]
    try:
        found = _as_json(load_plain(inner)) if opened[1] == "---" else _toml(inner)
    except DataError as error:
        if not KEYED.match(inner):
            return Matter()
        return Matter(closed.end(), warning=error.message, line=1 + (error.line or 1))
    if not isinstance(found, dict):
        return Matter()
    title = found.get("title")
    named = isinstance(title, str | int | float) and not isinstance(title, bool)
    rest = {key: value for key, value in found.items() if not (named and key == "title")}
    return Matter(closed.end(), " ".join(str(title).split()) if named else "", rest)


def _toml(text: str) -> Json:
    """
    Raises:
        DataError: it is not TOML, or beyond the limits.
    """
    try:
        return _as_json(tomllib.loads(text.replace("\r\n", "\n")))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:  # ValueError: a number of 5,000 digits
        said = "nested too deep" if isinstance(error, RecursionError) else shorten(str(error), 160)
        line = re.search(r"at line (\d+)", str(error))
        raise DataError(f"not valid TOML ({said})", line=int(line[1]) if line else None) from error


def _as_json(value: object, depth: int = 0) -> Json:
    """A value of YAML or TOML as JSON has it; a time and what is no finite number as they are written."""
    if depth > MAX_YAML_DEPTH:
        raise ValueError(f"nested more than {MAX_YAML_DEPTH} levels deep")
    if isinstance(value, dict):
        return {str(key): _as_json(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner, depth + 1) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**MAX_NUMBER_CHARS:
        raise ValueError(f"a number of more than {MAX_NUMBER_CHARS} digits")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value - value != 0:  # JSON knows neither
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None


LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
MAX_HEADING_CHARS = 1000  # characters; marks within marks take their time
LISTS = ("bullet_list_open", "ordered_list_open")
KINDS: dict[str, BlockKind] = {
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

    def read(self, path: Path) -> DocumentContent:
        text = read_text(path)
        matter = split_matter(text)
        body = text[matter.end :]
        return DocumentContent(
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
    return tuple(fill_gaps(text, _parsed(text)))


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
    if len(content) > MAX_HEADING_CHARS:
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

    def read(self, path: Path) -> DocumentContent:
        text = read_text(path)
        return DocumentContent(text, blocks=partial(rst_blocks, text))


def rst_blocks(text: str) -> tuple[Block, ...]:
    """Headings, and blocks of what stands between them."""
    return tuple(_blocks_between(text, _headings(text)))


def _blocks_between(text: str, headings: Iterator[Block]) -> Iterator[Block]:
    end = 0
    for heading in headings:
        yield from _blocks(text, end, heading.start)
        yield heading
        end = heading.end
    yield from _blocks(text, end, len(text))


def _blocks(text: str, start: int, end: int) -> Iterator[Block]:
    for found in BREAK.finditer(text, start, end):
        yield from _text_block(text, start, found.end())
        start = found.end()
    yield from _text_block(text, start, end)


def _text_block(text: str, start: int, end: int) -> Iterator[Block]:
    if text[start:end].strip():
        kind: BlockKind = "table" if TABLE.match(text, start, end) else "text"
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
