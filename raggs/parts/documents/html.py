"""HTML as text: what a reader of the page would read, in blocks that empty lines separate.

The page is read by selectolax (lexbor), as browsers read it. Scripts, styles, navigation, controls of forms, what is
hidden and the page's own footer are left out; where a page has one `main`, that alone is read. Entities are characters,
white space is one space, but as written in `pre`; the cells of a row are parted by `` | ``. Headings, code, tables and
lists are known as such. A table or list with a heading in it is layout, and counts as what it holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.inputs import read_whole
from raggs.parts.documents.base import DocumentReader, Reading
from raggs.parts.documents.markup import check_depth, page_text, without_many_attributes
from raggs.parts.documents.page import Page

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


class HtmlReader(DocumentReader):
    """HTML pages: their text without scripts, styles and navigation."""

    PACKAGES = ("selectolax",)
    EXTRACTS = True

    def read(self, path: Path) -> Reading:
        source = without_many_attributes(page_text(read_whole(path), path))
        check_depth(source, path)
        from selectolax.lexbor import LexborHTMLParser

        tree = LexborHTMLParser(source)
        start = _start(tree)
        if start is None:
            return Reading("", blocks=tuple)
        page = Page(start)
        return Reading(page.text, blocks=lambda: page.blocks, name=_title(tree), unmarked=True)


def _start(tree: LexborHTMLParser) -> LexborNode | None:
    """The element whose text is the page's."""
    mains = tree.css("main, [role=main]")
    return mains[0] if len(mains) == 1 and mains[0].text().strip() else tree.body or tree.root


def _title(tree: LexborHTMLParser) -> str:
    found = tree.css_first("head > title")
    return "" if found is None else " ".join(found.text().split())
