"""Text as it should be before anything compares it: Unicode hygiene and small helpers on words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

WHITESPACE = re.compile(r"\s+")
KEPT_CONTROLS = frozenset("\n\t")
# Format characters (category Cf) that change the meaning of a text rather than its looks: joiners between
# letters of Indic and Arabic scripts and inside emoji.
KEPT_FORMATS = frozenset("\u200c\u200d")


def clean_unicode(text: str) -> str:
    """NFKC, without control, zero-width and unassigned-surrogate characters, odd spaces made plain.

    Line breaks and tabs stay. Joiners (U+200C, U+200D) stay only between two non-space characters outside
    Latin script, where they carry meaning.

    Returns:
        A text that `clean_unicode` leaves as it is.
    """
    normal = unicodedata.normalize("NFKC", text).replace("\r\n", "\n").replace("\r", "\n")
    kept = []
    for position, char in enumerate(normal):
        category = unicodedata.category(char)
        if category == "Zs":
            kept.append(" ")
        elif category in ("Zl", "Zp"):
            kept.append("\n")
        elif category in ("Cc", "Cf", "Cs"):
            if char in KEPT_CONTROLS or (char in KEPT_FORMATS and _joins(normal, position)):
                kept.append(char)
        else:
            kept.append(char)
    return unicodedata.normalize("NFKC", "".join(kept))


def _joins(text: str, position: int) -> bool:
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    return bool(before) and bool(after) and ord(before) > 0x24F and ord(after) > 0x24F


def one_line(text: str) -> str:
    """`text` with every run of white space folded to one blank, trimmed."""
    return WHITESPACE.sub(" ", text).strip()


def shorten(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that resembles `name` most, or None when nothing does."""
    from rapidfuzz import fuzz, process  # late: only a mistake needs it

    found = process.extractOne(name, list(known), scorer=fuzz.WRatio, score_cutoff=60)
    return None if found is None else str(found[0])


def plural(count: int, noun: str) -> str:
    """``1 query``, ``2 queries``, ``1,400 passages``."""
    if count == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"
    return f"{count:,} {ending}"
