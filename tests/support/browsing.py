"""A real Chromium for the tests of pages: messages of its console are kept, and axe-core checks the accessibility.

axe-core is read from the file in RAGGS_AXE, or from the package axe-playwright-python. RAGGS_SHOTS names a folder for
screenshots.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.screens import faults


def _find_axe() -> str | None:
    """Return the path of axe-core's script."""
    package = importlib.util.find_spec("axe_playwright_python")
    packaged = str(Path(package.origin).with_name("axe.min.js")) if package and package.origin else None
    return os.environ.get("RAGGS_AXE") or packaged


# The headless shell opens a window in an eighth of the time of the whole browser.
CHROMIUM = os.environ.get("RAGGS_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
AXE, SHOTS = _find_axe(), os.environ.get("RAGGS_SHOTS")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Only violations are read: selectors and what passes would cost a quarter of the time.
LOOK = """axe.run({ resultTypes: ['violations'], selectors: false }).then(
  r => r.violations.map(v => v.impact + ' ' + v.id + ' ' + v.nodes.map(n => n.html).join(' ')))"""
# What would run, or load, or leave the page, were it ever taken for markup.
XSS = (
    "<script>window.owned = 1</script>",
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror=window.owned=1>",
    '<img src=x:x onerror="window.owned=1">',
    "<svg onload=window.owned=1>",
    "<svg><script>window.owned=1</script></svg>",
    "<svg><animate onbegin=window.owned=1 attributeName=x dur=1s>",
    "<body onload=window.owned=1>",
    '<iframe src="javascript:parent.owned=1"></iframe>',
    '<iframe srcdoc="<script>parent.owned=1</script>"></iframe>',
    '<a href="javascript:window.owned=1">click</a>',
    "<details open ontoggle=window.owned=1>",
    "<video><source onerror=window.owned=1></video>",
    "<audio src=x onerror=window.owned=1>",
    "<input autofocus onfocus=window.owned=1>",
    "<select autofocus onfocus=window.owned=1>",
    "<marquee onstart=window.owned=1>",
    '<object data="javascript:window.owned=1"></object>',
    '<embed src="javascript:window.owned=1">',
    '<form action="javascript:window.owned=1"><button>go</button></form>',
    "<math><mtext><table><mglyph><style><img src=x onerror=window.owned=1></style></mglyph></table></mtext></math>",
    "<style>@import 'http://evil.example/x.css'; * { display: none }</style>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    '<meta http-equiv=refresh content="0;url=http://evil.example">',
    "<base href=http://evil.example/>",
    '"><script>window.owned=1</script>',
    "' onmouseover='window.owned=1",
    "`${window.owned=1}`",
    "{{ 7 * 7 }}{% raw %}{{ [].__class__ }}{% endraw %}",
    "<!--><img src=x onerror=window.owned=1>-->",
    "]]><script>window.owned=1</script>",
    "<textarea></textarea><script>window.owned=1</script>",
    "&lt;script&gt;window.owned=1&lt;/script&gt;",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pages are tested where playwright is installed")
    if CHROMIUM is None:
        pytest.skip("pages are tested where chromium is installed")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield found
        found.close()


class Window:
    """A page of the browser."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.context = browser.new_context(**{"locale": "en-US", **context})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: message.type in ("error", "warning") and self._hear(message.text))
        self.page.on("pageerror", lambda error: self._hear(str(error)))
        self.page.on("dialog", lambda dialog: (self._hear("a dialog"), dialog.dismiss()))
        self.page.goto(address)

    def _hear(self, text: str) -> None:
        self.complaints.append(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def told(self, selector: str, text: str) -> None:
        """Wait until an element says a text."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_text(text)

    def unharmed(self) -> bool:
        """Whether nothing that somebody wrote has run."""
        return bool(self.page.evaluate("window.owned === undefined")) and not self.complaints

    def look(self, name: str) -> None:
        """Assert that the layout has no faults and that axe-core finds no violations; keep a screenshot."""
        assert not (found := faults(self.page)), "\n".join(found)
        if SHOTS:
            self.page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)
        if AXE:  # through the protocol of the developer tools, because the pages' policy forbids foreign scripts
            session = self.context.new_cdp_session(self.page)
            session.send("Runtime.evaluate", {"expression": Path(AXE).read_text(encoding="utf-8")})
            command = {"expression": LOOK, "awaitPromise": True, "returnByValue": True}
            violations = session.send("Runtime.evaluate", command)["result"]["value"]
            assert not violations, "\n".join(violations)
