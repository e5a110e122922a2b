"""The report on the screen: three widths, light and dark; boxes, colours, pictures, the keyboard.

``RAGGS_APPROVE=1 pytest tests/reporting/test_screens.py`` stores the current pictures in ``screens`` as approved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.browsing import Window, chromium
from support.project import make_project
from support.screens import SCHEMES, WIDTHS, compare, faults
from support.sweeping import make_sweep

import raggs
from raggs.app.report import ReportRequest, write_report_page
from raggs.sweeps import timing

SCREENS = Path(__file__).with_name("screens")
VIEWS = ("decision", "systems", "sweeps", "questions")
SIZES = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three systems and a sweep, without measured times."""
    folder = tmp_path_factory.mktemp("screens")
    project = make_project(folder / "project", queries=12)
    with pytest.MonkeyPatch.context() as patch:
        clock = itertools.count()
        patch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: (at := next(clock)) * 0.004 + at % 7 * 1e-3))
        patch.chdir(folder)
        raggs.run(project.config)
        swept = make_sweep(folder / "sweep", count=12, golden="../project/runs/demo")
        swept.sweep()
        request = ReportRequest(
            Path("project/runs/demo"), sweeps=(swept.out.relative_to(folder),), out=folder / "report.html"
        )
        return write_report_page(request).resolve()


def opened(browser: Any, page: Path, width: int, scheme: str, hash_: str = "") -> Window:
    """Return a window with the report."""
    size = {"width": width, "height": 900}
    window = Window(
        browser, page.as_uri() + hash_, viewport=size, color_scheme=scheme, offline=True, reduced_motion="reduce"
    )
    window.page.wait_for_selector("#questions-table tbody tr")
    return window


# The layout does not depend on the theme, and a folded page is a part of the unfolded one.
LAYOUTS = [
    (390, "light", True),
    (390, "dark", False),
    (1024, "dark", True),
    (1600, "light", True),
    (1600, "dark", False),
]


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(("width", "scheme", "unfolded"), LAYOUTS)
def test_nothing_overlaps_or_is_cut_and_all_colours_are_of_the_theme(
    browser: Any, page: Path, width: int, scheme: str, unfolded: bool
) -> None:
    window = opened(browser, page, width, scheme, "#question=q03")
    if unfolded:
        window.page.evaluate(OPEN)
    window.look(f"screen-{width}-{scheme}{'-unfolded' * unfolded}")
    assert window.unharmed(), window.complaints
    window.context.close()


BROKEN = {
    "overlap": "#decision h2 { margin-bottom: -1.6rem }",
    "sideways": "#systems { width: 120vw }",
    "colour": "#decision p { color: #123456 }",
    "empty figure": "figure svg path, figure svg circle, figure svg rect { display: none }",
    "outside of its figure": "figure svg text { transform: translate(-2000px, 0) }",
    "empty section": "#decision > :not(h2) { display: none }",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_layout_is_found(browser: Any, page: Path, fault: str) -> None:
    window = opened(browser, page, 1024, "light")
    sheet = "css => { const s = new CSSStyleSheet(); s.replaceSync(css); document.adoptedStyleSheets = [s]; }"
    window.page.evaluate(sheet, BROKEN[fault])
    assert any(fault in each for each in faults(window.page))
    window.context.close()


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_pictures_are_the_approved_ones(browser: Any, page: Path, width: int, scheme: str) -> None:
    window = opened(browser, page, width, scheme, "#question=q03")
    window.page.evaluate("document.activeElement.blur(); document.querySelector('header').style.position = 'static'")
    differences = {}
    for view in VIEWS:
        picture = window.page.locator(f"#{view}").screenshot(animations="disabled")
        differences[view] = compare(browser, picture, SCREENS / f"{view}-{width}-{scheme}.png")
    assert not any(differences.values()), f"{differences}; RAGGS_APPROVE=1 stores the current pictures"
    window.context.close()


def test_approved_pictures_are_few_and_small() -> None:
    pictures = list(SCREENS.glob("*.png"))
    assert len(pictures) == len(VIEWS) * len(SIZES)
    assert sum(path.stat().st_size for path in pictures) <= 1_500_000


FOCUS = """() => {
  const e = document.activeElement;
  if (e === document.body) return null;
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  const x = Math.min(Math.max(box.left + Math.min(box.width, 40) / 2, 0), innerWidth - 1);
  const y = Math.min(Math.max(box.top + Math.min(box.height, 20) / 2, 0), innerHeight - 1);
  const top = document.elementFromPoint(x, y);
  e.dataset.visited = '1';
  return {
    name: `${e.localName} ${e.id} ${e.textContent.trim().slice(0, 40)}`,
    ringed: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    seen: box.bottom > 0 && box.top < innerHeight && top !== null && (e.contains(top) || top.contains(e)),
  };
}"""
LEFT = """() => [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.dataset.visited && !e.disabled)
  .map((e) => `${e.localName} ${e.id} ${e.textContent.trim().slice(0, 40)}`)"""


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("width", [390, 1600])
def test_tab_reaches_everything_and_shows_where_it_is(browser: Any, page: Path, width: int) -> None:
    window = opened(browser, page, width, "light")
    stops = []
    for _ in range(600):
        window.press("Tab")
        stop = window.page.evaluate(FOCUS)
        if stop is None:
            break
        stops.append(stop)
    assert 30 < len(stops) < 600
    assert not [stop["name"] for stop in stops if not stop["ringed"]], "without a ring"
    assert not [stop["name"] for stop in stops if not stop["seen"]], "covered or outside of the window"
    assert window.page.evaluate(LEFT) == []
    window.context.close()


def test_the_keys_that_the_page_names_work(browser: Any, page: Path) -> None:
    window = opened(browser, page, 1024, "light")
    found = window.page
    window.press("?")
    help_ = found.locator("#questions-help")
    assert help_.is_visible()
    named = set(help_.locator("kbd").all_inner_texts())
    assert named == {"j", "k", "↓", "↑", "Enter", "Esc", "/", "?"}, "each key below is tested"
    window.press("Escape")
    assert not help_.is_visible()
    rows = found.locator("#questions-table tbody tr a").all_inner_texts()
    window.press("j", "j", "k", "Enter")
    window.told("#questions-id", rows[0])
    window.press("j")
    window.told("#questions-id", rows[1])
    window.press("k")
    window.told("#questions-id", rows[0])
    window.press("Escape")
    assert found.evaluate("document.activeElement.closest('#questions-table') !== null")
    window.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    window.told("#questions-id", rows[1])
    window.press("/")
    assert found.evaluate("document.activeElement.id") == "questions-find"
    assert window.unharmed(), window.complaints
    window.context.close()
