"""Where a chunk stands, searched for by its text: for parity with code that knows no places.

A chunk's own offsets are better: the first place at which a text stands is another one than its own wherever the
document repeats itself.
"""

from __future__ import annotations

import re

SPACE = re.compile(r"\s+")


def locate(text: str, document: str) -> tuple[int, int] | None:
    """The first place at which `text` stands: without one full stop at its end; failing that, whatever its case and
    its white space. None where it stands nowhere.
    """
    wanted = text.removesuffix(".")
    start = document.find(wanted)
    if start >= 0:
        return start, start + len(wanted)
    words = [re.escape(word) for word in SPACE.split(wanted)]
    found = re.search(r"\s*".join(words), document, re.IGNORECASE)
    return None if found is None else found.span()
