"""HTML as text: what a reader of the page would read, in blocks that empty lines separate.

The page is read by selectolax (lexbor), as browsers read it. Scripts, styles, navigation, controls of forms, what is
hidden and the page's own footer are left out; where a page has one `main`, that alone is read. Entities are characters,
white space is one space, but as written in `pre`; the cells of a row are parted by `` | ``. Headings, code, tables and
lists are known as such. A table or list with a heading in it is layout, and counts as what it holds.

The text of a parsed page and its blocks, in one walk over its elements (see `html`).

Bytes of a page as characters, and whether a parser may be given them.

A page says in which encoding it is written; UTF-8 is tried first. A parser of HTML walks through all elements that are
open at most tags, and sets formatting that nobody closed anew in each paragraph: a page made to harm takes it hours and
all memory, so that the work is bounded from the tags alone before it is parsed. A parser also compares each attribute
of a tag with all that come before it. A tag keeps its first attributes, up to `MAX_ATTRIBUTES`.
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
OWNERS = frozenset({"article", "section", "main", "blockquote"})  # whose footer is theirs, not the page's
ANCHOR_MARKS = frozenset(re.split(r"\s+", "¶ # § 🔗"))  # links to themselves that tools set beside headings
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
)  # on lines of their own
BLOCKS = frozenset(
    re.split(
        r"\s+",
        "address article aside blockquote body center details dir div dl fieldset figure footer form header "
        "hgroup hr main menu ol p pre section table tbody tfoot thead ul",
    )
) | frozenset(HEADINGS)
GAPS = ("", " ", " | ", "\n", "\n\n")  # what may stand between words, the weakest first
SPACE = re.compile(r"[ \t\n\r\f]+")
PARAGRAPH = re.compile(r"\n\n+")


@dataclass
class _Element:
    """A block that is being read; `start` is -1 until its first word."""

    tag: str
    kind: BlockKind | None
    start: int = -1
    end: int = -1


class Page:
    """What stands below an element.

    Attributes:
        text: without white space at its ends.
        blocks: in order, without overlap, holding every word.
    """

    def __init__(self, start: LexborNode) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._gap = 0
        self._held = ""  # line ends in `pre`, until more follows
        self._in: dict[BlockKind, int] = {"code": 0, "table": 0, "list": 0}
        self._opened: list[_Element] = []
        self._waiting: list[_Element] = []
        self._found: list[_Element] = []
        self._items: list[int] = []  # where those of outermost lists begin
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
        """The gap that an element's border makes."""
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
        """The outermost of the elements that were found, and the paragraphs between them."""
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
        """Where the items of a list begin; the first of them where it does itself."""
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
    """What an element is; None of one that is no block by itself, or is mere layout.

    Args:
        within: whether it stands in one that is not layout, and so is none itself.
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
    """Every node that counts, its tag, and whether it begins; elements once more when they end."""
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
    """Whether an element holds words of the page's own."""
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
WESTERN = frozenset({"iso-8859-1", "latin1", "latin-1", "us-ascii"})  # which browsers read as windows-1252
CHARSET_BYTES = 4096  # bytes in which a page says its encoding
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*|!--)")
MAX_ATTRIBUTES = 256  # of a tag
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
}  # what holds no elements, and ends there
FORMATTING = frozenset(re.split(r"\s+", "a b big code em font i nobr s small strike strong tt u"))
UNCLOSED_TAGS = frozenset(
    re.split(
        r"\s+",
        "area base br col embed hr img input link meta source track wbr p li dt dd td th tr tbody thead tfoot "
        "option optgroup colgroup html head body",
    )
)  # elements without content, and those that end by themselves
MAX_OPEN_ELEMENTS = 300_000_000  # open elements, summed over all tags: a second or two of a parser
MAX_OPEN_FORMATTING = 2_000_000  # the same of open formatting, of which copies are made


def page_text(data: bytes, path: Path) -> str:
    """A page's characters, in the encoding that it says.

    Raises:
        DataError: binary, or written in no encoding that is known.
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
    """A page whose tags have at most `MAX_ATTRIBUTES` attributes."""
    kept, end = [], 0
    for found, close in _tags(page):
        first = FIRST_ATTRIBUTES.match(page, found.end(), close) if close - found.end() > 2 * MAX_ATTRIBUTES else None
        if first is not None:
            kept.append(page[end : first.end()])
            end = close
    return "".join((*kept, page[end:])) if kept else page


def check_depth(page: str, path: Path) -> None:
    """
    Raises:
        DataError: elements are nested, or left open, beyond what a parser can be given.
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
            remedy = "repair it, or leave it out by corpus.exclude"
            raise DataError("elements are nested or left open beyond any page", where=path, line=line, remedy=remedy)


def _tags(page: str) -> Iterator[tuple[re.Match[str], int]]:
    """The tags of elements, each with the end of its attributes, without those that scripts and comments hold."""
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
    """HTML pages: their text without scripts, styles and navigation."""

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
    """The element whose text is the page's."""
    mains = tree.css("main, [role=main]")
    return mains[0] if len(mains) == 1 and mains[0].text().strip() else tree.body or tree.root


def _title(tree: LexborHTMLParser) -> str:
    found = tree.css_first("head > title")
    return "" if found is None else " ".join(found.text().split())
