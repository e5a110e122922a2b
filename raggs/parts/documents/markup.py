"""Bytes of a page as characters, and whether a parser may be given them.

A page says in which encoding it is written; UTF-8 is tried first. A parser of HTML walks through all elements that are
open at most tags, and sets formatting that nobody closed anew in each paragraph: a page made to harm takes it hours and
all memory, so that the work is bounded from the tags alone before it is parsed. A parser also compares each attribute
of a tag with all that come before it. A tag keeps its first attributes, up to `MOST_ATTRIBUTES`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from raggs.base.errors import DataError
from raggs.parts.documents.base import decoded

CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
KNOWN = re.compile(
    r"(?:windows-|cp)125\d|iso-8859-\d+|latin-?1|us-ascii|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5|macintosh"
)
WESTERN = frozenset({"iso-8859-1", "latin1", "latin-1", "us-ascii"})  # which browsers read as windows-1252
HEAD = 4096  # bytes in which a page says its encoding
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*|!--)")
MOST_ATTRIBUTES = 256  # of a tag
VALUE = r"""\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
ATTRIBUTE = rf"[\s/]*+[^\s/>][^\s/>=]*+(?:{VALUE})?+"
ALL_ATTRIBUTES = re.compile(rf"[^\s/>]*+(?:{ATTRIBUTE})*+")
FIRST_ATTRIBUTES = re.compile(rf"[^\s/>]*+(?:{ATTRIBUTE}){{{MOST_ATTRIBUTES}}}")
RAW = {
    "!--": re.compile("-->"),
    **{
        name: re.compile(f"</{name}", re.IGNORECASE)
        for name in ("script", "style", "textarea", "title", "xmp", "iframe")
    },
}  # what holds no elements, and ends there
FORMATTING = frozenset(re.split(r"\s+", "a b big code em font i nobr s small strike strong tt u"))
ALONE = frozenset(
    re.split(
        r"\s+",
        "area base br col embed hr img input link meta source track wbr p li dt dd td th tr tbody thead tfoot "
        "option optgroup colgroup html head body",
    )
)  # elements without content, and those that end by themselves
MOST_OPEN = 300_000_000  # open elements, summed over all tags: a second or two of a parser
MOST_FORMATTING = 2_000_000  # the same of open formatting, of which copies are made


def page_text(data: bytes, path: Path) -> str:
    """A page's characters, in the encoding that it says.

    Raises:
        DataError: binary, or written in no encoding that is known.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return decoded(data, path)
    except DataError:
        declared = CHARSET.search(data, 0, HEAD)
        name = "" if declared is None else declared[1].decode("ascii", "replace").lower()
        if b"\0" in data or not KNOWN.fullmatch(name):
            raise
        return data.decode("cp1252" if name in WESTERN else name, "replace")


def without_many_attributes(page: str) -> str:
    """A page whose tags have at most `MOST_ATTRIBUTES` attributes."""
    kept, end = [], 0
    for found, close in _tags(page):
        first = FIRST_ATTRIBUTES.match(page, found.end(), close) if close - found.end() > 2 * MOST_ATTRIBUTES else None
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
        step = 0 if name in ALONE else -1 if found[1] else 1
        if name in FORMATTING:
            formatting = max(0, formatting + step)
        opened = max(0, opened + step)
        total += opened
        copies += formatting
        if total > MOST_OPEN or copies > MOST_FORMATTING:
            line = page.count("\n", 0, found.start()) + 1
            remedy = "repair it, or leave it out by corpus.exclude"
            raise DataError("elements are nested or left open beyond any page", where=path, line=line, remedy=remedy)


def _tags(page: str) -> Iterator[tuple[re.Match[str], int]]:
    """The tags of elements, each with the end of its attributes, without those that scripts and comments hold."""
    found = TAG.search(page)
    while found is not None:
        at, raw = found.end(), None if found[1] else RAW.get(found[2].lower())
        if found[2] != "!--" and (attributes := ALL_ATTRIBUTES.match(page, at)):
            at = attributes.end()
        if raw is None:
            yield found, at
        closed = None if raw is None else raw.search(page, at)
        found = None if raw is not None and closed is None else TAG.search(page, closed.end() if closed else at)
