"""Take the screenshots in docs/start again: the report, one of its queries, and the page for grading.

Run ``python docs/pictures.py`` after a change of these pages. It runs the tutorials, which takes about two minutes, and
needs chromium and the extra `dev`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.browsing import Window, chromium  # noqa: E402
from support.reviewpage import served  # noqa: E402
from test_tutorials import START, Step, prepared, run_steps, steps  # noqa: E402

WIDTH = 1000
READABLE = 200  # characters of a passage
QUERY = "late"  # in the demo
QUICKSTART = (
    "raggs run --config examples/quickstart/raggs.yaml",
    "raggs report examples/quickstart/runs/quickstart --out quickstart.html",
)


def take(browser: Any, address: str, name: str, height: int, *, above: str = "", annotator: str = "") -> None:
    """Save a picture of a page.

    Args:
        height: of the picture.
        above: selector of an element; the picture starts at its top.
        annotator: name that is entered first.
    """
    window = Window(browser, address, viewport={"width": WIDTH, "height": height}, color_scheme="light")
    page = window.page
    if annotator:
        page.get_by_role("textbox").fill(annotator)
        page.keyboard.press("Enter")
        page.wait_for_selector("#work:not([hidden])")
        while len(page.inner_text("#text")) < READABLE:  # some passages of the manual are only a heading
            page.keyboard.press("s")
            page.wait_for_timeout(300)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(500)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
    if above:
        page.evaluate("scrollTo(0, 0); document.querySelector('header').style.position = 'static'")
        clip["y"] = page.locator(above).bounding_box()["y"] - 16
    page.screenshot(path=START / name, clip=clip, full_page=bool(above))
    window.context.close()


def main() -> None:
    """Take all three pictures."""
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        folder = Path(scratch)
        demo, manual = folder / "first", folder / "labels"
        page = prepared("first-golden-set.md", demo)
        run_steps([*steps(page.read_text(encoding="utf-8")), *(Step(each, None) for each in QUICKSTART)], demo)
        take(browser, (demo / "quickstart.html").as_uri(), "report.png", 760)
        take(
            browser,
            f"{(demo / 'report.html').as_uri()}#question={QUERY}",
            "report-query.png",
            970,
            above="#questions-one",
        )
        page = prepared("human-labels.md", manual)
        run_steps(list(steps(page.read_text(encoding="utf-8")))[:1], manual)
        run = manual / "manual" / "runs" / "manual"
        with served(run, plan=manual / "manual" / "plan.jsonl") as address:
            take(browser, address, "review.png", 620, annotator="ada")


if __name__ == "__main__":
    main()
