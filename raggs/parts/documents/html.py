"""HTML as text: the visible content of a page, in blocks that are separated by empty lines.

The page is parsed by selectolax (lexbor), as in browsers. Scripts, styles, navigation, media, form controls, hidden
elements and the page footer are skipped. If a page has exactly one `main` element (or role `main`), and it has text,
only this element is read. Entities become characters, and white space becomes one space, except in `pre`. Table cells
are separated by `` | ``. Headings, code, tables and lists are recognised as blocks. A table or list that contains a
heading, or a table that contains a table, is treated as layout. Its content is read as if it were outside the table or
list.

Encoding: UTF-16 if the page starts with its byte order mark. Otherwise UTF-8 is tried first, then the encoding that the
page declares.

Bounds: for most tags, an HTML parser visits all open elements, and it reopens unclosed formatting in each paragraph. A
malicious page can therefore take hours and all memory. The work is estimated from the tags before parsing, and
excessive pages are rejected. A parser also compares each attribute of a tag with all earlier ones, so only the first
`MAX_ATTRIBUTES` attributes of a tag are kept.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.errors import DataError
from raggs.base.files import read_whole
from raggs.parts.documents import Block, BlockKind, DocumentContent, DocumentReader, decode_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

SKIPPED = frozenset(
    re.split(
        r"\s+",
        "head title script style template noscript nav svg canvas iframe object embed audio video select "
        "button input textarea datalist dialog math map frameset",
    )
)
ROLES = frozenset({"navigation", "search", "contentinfo", "dialog", "alert", "menu", "menubar", "toolbar"})
# a footer within these elements is not the page's footer
OWNERS = frozenset({"article", "section", "main", "blockquote"})
# texts of links from a heading to itself, which documentation tools insert
ANCHOR_MARKS = frozenset(re.split(r"\s+", "¶ # § 🔗"))
HEADINGS = {f"h{level}": level for level in range(1, 7)}
ANY_HEADING = ", ".join(HEADINGS)
KIND_BY_TAG: dict[str, BlockKind] = {
    "pre": "code",
    "table": "table",
    "ul": "list",
    "ol": "list",
    "dl": "list",
    "menu": "list",
}
TABLE_ROW_TAGS = frozenset({"tr", "caption"})
TABLE_CELL_TAGS = frozenset({"td", "th"})
LINES = TABLE_ROW_TAGS | frozenset(
    re.split(r"\s+", "br li dt dd option legend summary figcaption")
)  # elements that start on a new line
BLOCKS = frozenset(
    re.split(
        r"\s+",
        "address article aside blockquote body center details dir div dl fieldset figure footer form header "
        "hgroup hr main menu ol p pre section table tbody tfoot thead ul",
    )
) | frozenset(HEADINGS)
GAPS = ("", " ", " | ", "\n", "\n\n")  # separators between words, from the weakest to the strongest
SPACE = re.compile(r"[ \t\n\r\f]+")
PARAGRAPH = re.compile(r"\n\n+")


@dataclass
class _Element:
    """A block under construction; `start` is -1 until its first word."""

    tag: str
    kind: BlockKind | None
    start: int = -1
    end: int = -1


class Page:
    """Text below an element.

    Attributes:
        text: text without white space at both ends, except spaces in `pre`.
        blocks: blocks in order, without overlap; together, they cover every word.
    """

    def __init__(self, start: LexborNode) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._gap = 0
        self._held = ""  # line ends in `pre` that are added only if more text follows
        self._in: dict[BlockKind, int] = {"code": 0, "table": 0, "list": 0}
        self._opened: list[_Element] = []
        self._waiting: list[_Element] = []
        self._found: list[_Element] = []
        self._items: list[int] = []  # starts of the items of outermost lists
        for node, tag, enters in _walk_nodes(start):
            if tag == "-text":
                self._words(node.text_content or "")
            elif enters:
                self._open(node, tag)
            else:
                self._close(tag)
        self.text = "".join(self._parts)
        self.blocks = tuple(self._blocks())

    def _open(self, node: LexborNode, tag: str) -> None:
        self._part(tag)
        if tag == "br" and self._in["code"]:
            self._words("\n")
        if tag in HEADINGS or tag in KIND_BY_TAG or tag in ("li", "dt"):
            element = _Element(tag, _block_kind(node, tag, within=any(self._in.values())))
            self._opened.append(element)
            self._waiting.append(element)
            if element.kind in self._in:
                self._in[element.kind] += 1

    def _close(self, tag: str) -> None:
        if tag in HEADINGS or tag in KIND_BY_TAG or tag in ("li", "dt"):
            element = self._opened.pop()
            element.end = self._length
            if element.kind in self._in:
                self._in[element.kind] -= 1
            if element.start >= 0 and element.kind is not None:
                self._found.append(element)
            elif element.start >= 0 and tag in ("li", "dt") and self._in["list"] == 1:
                self._items.append(element.start)
        if tag == "pre":
            self._held = ""
        self._part(tag)

    def _part(self, tag: str) -> None:
        """Record the separator that the start or end of an element requires."""
        if tag in TABLE_CELL_TAGS and self._in["table"]:
            gap = GAPS.index(" | ")
        elif tag in BLOCKS or tag in TABLE_CELL_TAGS:
            gap = GAPS.index(" " if self._in["table"] else "\n" if self._in["list"] else "\n\n")
        elif tag in LINES:
            gap = GAPS.index("\n" if tag in TABLE_ROW_TAGS or not self._in["table"] else " ")
        else:
            return
        self._gap = max(self._gap, gap)

    def _words(self, text: str) -> None:
        if self._in["code"]:
            body = self._held + text.replace("\r\n", "\n")
            kept = body.rstrip("\n")
            self._held = body[len(kept) :]
            if kept:
                self._put(kept.lstrip("\n") if self._gap else kept)
            return
        words = SPACE.sub(" ", text)
        if words.startswith(" "):
            self._gap = max(self._gap, 1)
        if body := words.strip(" "):
            self._put(body)
        if body and words.endswith(" "):
            self._gap = max(self._gap, 1)

    def _put(self, words: str) -> None:
        if self._length:
            self._parts.append(GAPS[self._gap])
            self._length += len(GAPS[self._gap])
        for element in self._waiting:
            element.start = self._length
        self._waiting.clear()
        self._parts.append(words)
        self._length += len(words)
        self._gap = 0

    def _blocks(self) -> Iterator[Block]:
        """Yield the outermost block elements, and the paragraphs between them."""
        end = 0
        for element in sorted(self._found, key=lambda each: (each.start, -each.end)):
            if element.start >= end and element.kind is not None:
                yield from self._paragraphs(end, element.start)
                yield self._block(element, element.kind)
                end = element.end
        yield from self._paragraphs(end, self._length)

    def _block(self, element: _Element, kind: BlockKind) -> Block:
        start, end = element.start, element.end
        level = HEADINGS.get(element.tag, 0)
        title = " ".join(self.text[start:end].split()) if level else ""
        return Block(start, end, kind, level, title, tuple(self._starts(element)) if kind == "list" else ())

    def _starts(self, element: _Element) -> Iterable[int]:
        """Return the starts of a list's items; the first one is the start of the list."""
        first = bisect_left(self._items, element.start)
        within = self._items[first : bisect_left(self._items, element.end)]
        return sorted({element.start, *within})

    def _paragraphs(self, start: int, end: int) -> Iterator[Block]:
        for found in PARAGRAPH.finditer(self.text, start, end):
            if self.text[start : found.start()].strip():
                yield Block(start, found.start())
            start = found.end()
        if self.text[start:end].strip():
            yield Block(start, end)


def _block_kind(node: LexborNode, tag: str, *, within: bool) -> BlockKind | None:
    """Return the kind of block that an element is; None if the element is not a block, or is only layout.

    Args:
        within: whether the element is inside a block; such an element is never layout.
    """
    if tag in HEADINGS:
        return "heading"
    if within:
        return KIND_BY_TAG.get(tag)
    layout = ANY_HEADING + (", table" if tag == "table" else "")
    mere = tag in KIND_BY_TAG and any(
        child.css_first(layout) is not None for child in _children(node) if child.tag != "-text"
    )
    return None if mere else KIND_BY_TAG.get(tag)


def _walk_nodes(start: LexborNode) -> Iterator[tuple[LexborNode, str, bool]]:
    """Yield every relevant node with its tag: with True at its start and, for elements, with False at its end."""
    stack = [(start, True)]
    while stack:
        node, enters = stack.pop()
        tag = node.tag or ""
        yield node, tag, enters
        if enters and tag != "-text":
            stack.append((node, False))
            stack.extend((child, True) for child in reversed(list(_children(node))))


def _children(node: LexborNode) -> Iterator[LexborNode]:
    child = node.child
    while child is not None:
        if child.tag == "-text" or _counts(child, child.tag or "-"):
            yield child
        child = child.next


def _counts(node: LexborNode, tag: str) -> bool:
    """Return whether an element may contain content of the page."""
    if tag[0] in "-!_" or tag in SKIPPED:
        return False
    if tag == "a":
        only = node.child
        if only is not None and only.next is None and (only.text_content or "").strip() in ANCHOR_MARKS:
            return False
    said = node.attributes
    if "hidden" in said or said.get("aria-hidden") == "true" or said.get("role") in ROLES:
        return False
    return tag != "footer" or _owned(node)


def _owned(node: LexborNode) -> bool:
    above = node.parent
    while above is not None:
        if above.tag in OWNERS:
            return True
        above = above.parent
    return False


CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
KNOWN_ENCODING = re.compile(
    r"(?:windows-|cp)125\d|iso-8859-\d+|latin-?1|us-ascii|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5|macintosh"
)
WESTERN = frozenset({"iso-8859-1", "latin1", "latin-1", "us-ascii"})  # browsers read these as windows-1252
CHARSET_BYTES = 4096  # number of bytes in which a declared encoding is searched for
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*|!--)")
MAX_ATTRIBUTES = 256  # maximum number of attributes per tag
VALUE = r"""\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
ATTRIBUTE = rf"[\s/]*+[^\s/>][^\s/>=]*+(?:{VALUE})?+"
ALL_ATTRIBUTES = re.compile(rf"[^\s/>]*+(?:{ATTRIBUTE})*+")
FIRST_ATTRIBUTES = re.compile(rf"[^\s/>]*+(?:{ATTRIBUTE}){{{MAX_ATTRIBUTES}}}")
RAW_TEXT_ENDS = {
    "!--": re.compile("-->"),
    **{
        name: re.compile(f"</{name}", re.IGNORECASE)
        for name in ("script", "style", "textarea", "title", "xmp", "iframe")
    },
}  # elements that contain only raw text, and the pattern of their end
FORMATTING = frozenset(re.split(r"\s+", "a b big code em font i nobr s small strike strong tt u"))
UNCLOSED_TAGS = frozenset(
    re.split(
        r"\s+",
        "area base br col embed hr img input link meta source track wbr p li dt dd td th tr tbody thead tfoot "
        "option optgroup colgroup html head body",
    )
)  # void elements, and elements whose end tag is optional
MAX_OPEN_ELEMENTS = 300_000_000  # limit of the open elements, summed over all tags; takes one to two seconds of parsing
MAX_OPEN_FORMATTING = 2_000_000  # limit of the open formatting elements, which are copied, summed over all tags


def page_text(data: bytes, path: Path) -> str:
    """Return the decoded source of a page: UTF-16 with a byte order mark, else UTF-8 or the encoding that it declares.

    Raises:
        DataError: the page is binary, or its encoding is unknown.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return decode_text(data, path)
    except DataError:
        declared = CHARSET.search(data, 0, CHARSET_BYTES)
        name = "" if declared is None else declared[1].decode("ascii", "replace").lower()
        if b"\0" in data or not KNOWN_ENCODING.fullmatch(name):
            raise
        return data.decode("cp1252" if name in WESTERN else name, "replace")


def without_many_attributes(page: str) -> str:
    """Return the page with at most `MAX_ATTRIBUTES` attributes per tag."""
    kept, end = [], 0
    for found, close in _tags(page):
        first = FIRST_ATTRIBUTES.match(page, found.end(), close) if close - found.end() > 2 * MAX_ATTRIBUTES else None
        if first is not None:
            kept.append(page[end : first.end()])
            end = close
    return "".join((*kept, page[end:])) if kept else page


def check_depth(page: str, path: Path) -> None:
    """Raise an error if parsing the page would take too much time or memory.

    Raises:
        DataError: too many elements are nested or left open.
    """
    opened = formatting = total = copies = 0
    for found, _ in _tags(page):
        name = found[2].lower()
        step = 0 if name in UNCLOSED_TAGS else -1 if found[1] else 1
        if name in FORMATTING:
            formatting = max(0, formatting + step)
        opened = max(0, opened + step)
        total += opened
        copies += formatting
        if total > MAX_OPEN_ELEMENTS or copies > MAX_OPEN_FORMATTING:
            line = page.count("\n", 0, found.start()) + 1
            remedy = "repair the file, or exclude it with corpus.exclude"
            raise DataError("too many nested or unclosed elements", where=path, line=line, remedy=remedy)


def _tags(page: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the tags outside of scripts and comments, each with the end of its attributes."""
    found = TAG.search(page)
    while found is not None:
        at, raw = found.end(), None if found[1] else RAW_TEXT_ENDS.get(found[2].lower())
        if found[2] != "!--" and (attributes := ALL_ATTRIBUTES.match(page, at)):
            at = attributes.end()
        if raw is None:
            yield found, at
        closed = None if raw is None else raw.search(page, at)
        found = None if raw is not None and closed is None else TAG.search(page, closed.end() if closed else at)


class HtmlReader(DocumentReader):
    """HTML pages: text without scripts, styles and navigation."""

    PACKAGES = ("selectolax",)
    EXTRACTS = True

    def read(self, path: Path) -> DocumentContent:
        source = without_many_attributes(page_text(read_whole(path), path))
        check_depth(source, path)
        from selectolax.lexbor import LexborHTMLParser

        tree = LexborHTMLParser(source)
        start = _start(tree)
        if start is None:
            return DocumentContent("", blocks=tuple)
        page = Page(start)
        return DocumentContent(page.text, blocks=lambda: page.blocks, name=_title(tree), unmarked=True)


def _start(tree: LexborHTMLParser) -> LexborNode | None:
    """Return the element that contains the content of the page."""
    mains = tree.css("main, [role=main]")
    return mains[0] if len(mains) == 1 and mains[0].text().strip() else tree.body or tree.root


def _title(tree: LexborHTMLParser) -> str:
    found = tree.css_first("head > title")
    return "" if found is None else " ".join(found.text().split())
