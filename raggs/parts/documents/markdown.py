"""Readers of Markdown and reStructuredText, and front matter.

Markdown is parsed by markdown-it (CommonMark with tables). A ``#`` within a fence, a list or a quotation is not a
heading. Blocks are in order, cover every word of the text, and do not overlap. Text that the parser does not report as
a block (link definitions) becomes a text block.

Front matter is metadata at the top of a document: YAML between ``---`` or TOML between ``+++``. It must be a mapping
and end with such a separator line (YAML also with ``...``) within `MAX_FRONT_MATTER_CHARS` characters. A horizontal
rule at the top of a document therefore does not start front matter. Front matter that cannot be parsed, but starts with
a key, is still removed from the text, and `warning` gives the reason. The limits of `raggs.base.plainyaml` apply.

reStructuredText is parsed by docutils to find sections. Nothing is included, executed or resolved, and errors about
unknown directives and roles are ignored. If parsing fails, the document has no sections. Between headings, a block
starts at each unindented line after an empty line, so that code, directives and notes stay with the text before them.
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
MAX_FRONT_MATTER_CHARS = 1 << 16  # maximum length of front matter
FRONT_MATTER_START = re.compile(r"(---|\+\+\+)[ \t]*(\r?\n|\r)")
CLOSE = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\r|\Z)", re.MULTILINE),
}
# comment lines, followed by a key
KEYED = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?[\r\n]+)*[\"']?\w[\w .-]*[\"']?[ \t]*[:=]")


@dataclass(frozen=True)
class Matter:
    """Front matter of a document.

    Attributes:
        end: offset of the first character after the front matter; 0 if there is none.
        title: title, on one line; empty if missing.
        metadata: all other keys.
        warning: why the front matter could not be parsed.
        line: line of the error.
    """

    end: int = 0
    title: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    warning: str = ""
    line: int = 0


def split_matter(text: str) -> Matter:
    """Return the front matter of a text."""
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
    """Parse TOML.

    Raises:
        DataError: the text is not TOML, or exceeds the limits.
    """
    try:
        return _as_json(tomllib.loads(text.replace("\r\n", "\n")))
    # Python raises ValueError for a number of 5,000 digits
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else shorten(str(error), 160)
        line = re.search(r"at line (\d+)", str(error))
        raise DataError(f"not valid TOML ({said})", line=int(line[1]) if line else None) from error


def _as_json(value: object, depth: int = 0) -> Json:
    """Convert a YAML or TOML value to JSON; times, infinity and NaN become strings."""
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
    if isinstance(value, float) and value - value != 0:  # JSON cannot represent infinity and NaN
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None


LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
MAX_HEADING_CHARS = 1000  # longest heading that is parsed; limits the time of the inline parser
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
    """Markdown files; title and metadata are read from front matter."""

    PACKAGES = ("markdown-it-py",)

    def marks(self, path: Path) -> Sequence[str]:
        """Return a marker for files that may have front matter, because earlier versions read it as text."""
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
    """Return the parser's blocks, and a text block for each gap between them."""
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
    """Yield the first lines of the items of the list at `place`."""
    for token in islice(tokens, place + 1, None):
        if token.level == 0:
            return
        if token.level == 1 and token.type == "list_item_open" and token.map is not None:
            yield token.map[0]


def _title(parser: MarkdownIt, content: str, env: dict[str, object]) -> str:
    """Return the text of a heading without markup; very long headings keep their markup."""
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
    "report_level": 5,  # above all levels of docutils, so that nothing is reported
    "halt_level": 6,
    "syntax_highlight": "none",
}


class RstReader(DocumentReader):
    """reStructuredText files, read unchanged; docutils finds the sections."""

    PACKAGES = ("docutils",)
    SECTIONS = True

    def read(self, path: Path) -> DocumentContent:
        text = read_text(path)
        return DocumentContent(text, blocks=partial(rst_blocks, text))


def rst_blocks(text: str) -> tuple[Block, ...]:
    """Return headings, and the blocks of text between them."""
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
    """Yield the section titles with their underlines and overlines, in order."""
    lines = VERTICAL.sub(" ", text).splitlines(keepends=True)  # docutils counts lines in the same way
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
    """Yield, for each section, the title, its depth, and the number (from 0) of the line below the title."""
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
    except Exception:  # noqa: BLE001 - third-party code on arbitrary text may raise anything
        return
    depths: dict[nodes.Node, int] = {}
    for section in document.findall(nodes.section):
        depths[section] = depths.get(section.parent, 0) + 1
        title = section.next_node(nodes.title, descend=True)
        if title is not None and title.parent is section and title.line:
            yield " ".join(title.astext().split()), depths[section], title.line - 1
