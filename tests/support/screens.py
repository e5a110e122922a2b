"""Faults in the layout of a page, and comparison of its screenshots with approved ones.

`faults` needs no picture. It works on all machines, because it compares boxes and colours with each other.
`compare` needs the fonts of the approved pictures. Where the fonts differ, the tests of pictures are skipped.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

APPROVE = bool(os.environ.get("RAGGS_APPROVE"))  # store the current pictures as approved
SCALE = 4  # pictures are stored at a quarter of their size, so that the edges of letters do not matter
FAR = 48  # smallest difference of a colour channel, of 255, at which two pixels are different
MAX_SHARE = 0.01  # largest share of different pixels
MAX_HEIGHT = 0.02  # largest difference in height, as a share
WIDTHS, SCHEMES = (390, 1024, 1600), ("light", "dark")

FONTS = """() => ['system-ui, sans-serif', 'ui-monospace, monospace'].map((family) => {
  const context = document.createElement('canvas').getContext('2d');
  context.font = '32px ' + family;
  return ['The quick brown fox 0123456789', 'jumps', '→✓×'].map((text) => Math.round(context.measureText(text).width));
})"""
HERE = Path(__file__).parent
FAULTS, COMPARE = ((HERE / f"{name}.js").read_text(encoding="utf-8") for name in ("faults", "compare"))


def faults(page: Any) -> list[str]:
    """Return the faults in the layout and the colours of a page, in the current window."""
    found: list[str] = page.evaluate(FAULTS)
    return found


def compare(browser: Any, picture: bytes, approved: Path) -> str:
    """Return how a picture differs from the approved one; empty if it does not.

    With RAGGS_APPROVE, the picture becomes the approved one.
    """
    blank = browser.new_page()
    fonts = approved.with_name("fonts.json")
    try:
        metrics = blank.evaluate(FONTS)
        current = base64.b64encode(picture).decode()
        if APPROVE:
            stored = blank.evaluate(COMPARE, [current, None, SCALE, FAR])["picture"]
            approved.write_bytes(base64.b64decode(stored))
            fonts.write_text(json.dumps(metrics) + "\n", encoding="utf-8")
            return ""
        if metrics != json.loads(fonts.read_text(encoding="utf-8")):
            pytest.skip("the fonts of this machine are not those of the approved pictures")
        before = base64.b64encode(approved.read_bytes()).decode()
        found = blank.evaluate(COMPARE, [current, before, SCALE, FAR])
    finally:
        blank.close()
    (_, height), (_, earlier) = found["size"], found["before"]
    if found["size"][0] != found["before"][0] or abs(height - earlier) > MAX_HEIGHT * earlier + 1:
        return f"size {found['before']} is now {found['size']}"
    return f"{found['share']:.1%} of the pixels differ" if found["share"] > MAX_SHARE else ""
