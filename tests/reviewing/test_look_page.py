"""Look in a real Chromium: by keyboard alone, by deep links, in French, with passages that would rather be markup."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import XSS, Window, chromium
from support.golden import change
from support.project import make_project
from support.reviewpage import serving

from raggs import load_config, run
from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord, RankRecord
from raggs.base.jsonl import read_records

OURS = frozenset(
    re.findall(r"\w+", "mark p h2 h3 div details summary span bdi small svg line dl dt dd ol li button strong")
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sections = {"rank": {"top": 3, "max_calls": 3}, "prune": {"min_keep": 8, "max_keep": 20}}
    project = make_project(tmp_path_factory.mktemp("looked"), queries=12, corpus=30, **sections)
    folder = run(load_config(project.config)).store.folder
    change(folder, "judge", JudgeRecord, lambda record: record.model_copy(update={"reason": "names the limit"}))
    return folder


@pytest.fixture(scope="module")
def address(made: Path) -> Iterator[str]:
    with serving(made, "--look") as (found, _):
        yield found


def deep(address: str, path: str) -> str:
    return address.replace("/?", f"{path}?")


def ids(window: Window) -> list[str]:
    return [str(each) for each in window.page.eval_on_selector_all("#questions a", "all => all.map(a => a.dataset.id)")]


def heading(window: Window) -> str:
    window.page.wait_for_selector("#question:not([hidden])")
    return str(window.page.inner_text("#id"))


def test_by_keyboard_alone(browser: Any, made: Path, address: str) -> None:
    window = Window(browser, deep(address, "/look/q03"))
    assert heading(window) == "q03"
    window.press("j")
    window.told("#id", "q04")
    assert window.page.url.endswith("/look/q04")
    order = window.page.locator(".sheet-heading").all_inner_texts()
    assert order.index("What systems returned") < order.index("Best order")
    window.press("Tab", "Enter")  # the first system, opened
    assert window.page.locator(".sheet-system[open]").count() == 1
    window.page.locator(".sheet-passage summary").first.focus()
    window.press("Enter")
    assert window.page.locator(".sheet-passage[open]").count() == 1
    best = next(record for record in read_records(made / "rank.jsonl", RankRecord) if record.qid == "q04")
    first = window.page.locator(".sheet-passage").first
    assert best.doc_id in first.inner_text()
    assert "names the limit" in first.inner_text()
    window.press("Escape")
    assert window.page.evaluate("document.activeElement.dataset.id") == "q04"
    assert window.page.url.endswith("/look")
    window.press("/")
    window.page.keyboard.type("AMBER flint")
    assert 0 < len(ids(window)) < 12
    found = ids(window)
    window.press("ArrowDown", "Enter")
    assert heading(window) == found[0]
    window.page.go_back()
    window.page.wait_for_selector("#question[hidden]", state="attached")
    assert window.complaints == []


def test_a_hit_leads_to_its_passage_and_the_list_can_be_sorted(browser: Any, address: str) -> None:
    window = Window(browser, deep(address, "/look/q01"))
    heading(window)
    window.page.locator(".sheet-system summary").last.click()
    hit = window.page.locator(".sheet-hits .sheet-link").last
    wanted = hit.inner_text()
    hit.click()
    opened = window.page.locator(".sheet-passage[open]")
    assert opened.count() == 1
    assert wanted in opened.inner_text()
    doubts = "all => all.map(a => Number(/([0-9.]+) pairs of passages in the wrong/.exec(a.textContent)[1]))"
    window.page.select_option("#sort", "doubt")
    shown = window.page.eval_on_selector_all("#questions a", doubts)
    assert shown == sorted(shown, reverse=True)
    assert len(shown) == 12
    unknown = Window(browser, deep(address, "/look/q%3F99"))
    unknown.page.wait_for_selector("#trouble:not([hidden])")
    assert unknown.page.inner_text("#trouble") == "This run has no query “q?99”. Choose one from the list."


def test_filters_are_remembered_and_a_link_is_copied(browser: Any, address: str) -> None:
    window = Window(browser, deep(address, "/look"), permissions=["clipboard-read", "clipboard-write"])
    window.page.wait_for_selector("#questions a")
    window.press("/")
    window.page.keyboard.type("amber")
    window.page.select_option("#sort", "few")
    found = ids(window)
    assert 0 < len(found) < 12
    window.page.reload()
    window.page.wait_for_selector("#questions a")
    now = (ids(window), window.page.input_value("#search"), window.page.input_value("#sort"))
    assert now == (found, "amber", "few")
    window.press("j")
    assert heading(window) == found[0]
    window.press("?")
    window.page.wait_for_selector("dialog[open]")
    named = set(window.page.locator("#keys-list kbd").all_inner_texts())
    assert named == {"j", "k", "o", "/", "↑", "↓", "Enter", "Esc", "?"}
    window.press("Enter")
    window.page.wait_for_selector("dialog[open]", state="hidden")
    window.page.get_by_role("button", name="Copy link").focus()
    window.press("Enter")
    window.told("#link", "Link copied")
    assert window.page.evaluate("navigator.clipboard.readText()").endswith(f"/look/{found[0]}")
    window.page.get_by_role("button", name="System theme").click()
    window.page.get_by_role("button", name="Light theme").click()
    assert window.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert window.complaints == []


def test_hostile_texts_are_text(browser: Any, made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "runs" / "copy")
    texts = iter(XSS * 100)
    change(copy, "queries", QueryRecord, lambda record: record.model_copy(update={"text": next(texts)}))
    words = {"title": "", "text": ""}
    change(copy, "merge", MergeRecord, lambda record: record.model_copy(update={name: next(texts) for name in words}))
    change(copy, "judge", JudgeRecord, lambda record: record.model_copy(update={"reason": next(texts)}))
    with serving(copy, "--look") as (address, _):
        window = Window(browser, deep(address, "/look"))
        window.page.wait_for_selector("#questions a")
        seen = ""
        for qid in ids(window)[:3]:
            window.press("j")
            window.told("#id", qid)
            window.page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
            window.page.wait_for_selector(".sheet-body >> nth=15")
            made_of = "all => [...new Set(all.map(each => each.tagName.toLowerCase()))]"
            tags = set(window.page.eval_on_selector_all("#question *", made_of))
            assert tags <= OURS
            seen += window.page.inner_text("#question")
        assert sum(text in seen for text in XSS) == len(XSS)
        assert window.unharmed()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_it_looks_well(browser: Any, address: str, width: int, scheme: str) -> None:
    size = {"width": width, "height": 844}
    window = Window(browser, deep(address, "/look"), viewport=size, color_scheme=scheme, locale="fr-FR")
    window.page.wait_for_selector("#questions a")
    assert "contrôle du juge" in window.page.inner_text("#seen")
    window.look(f"look-list-{width}-{scheme}")
    window.press("j")
    heading(window)
    window.page.locator(".sheet-passage summary").first.click()
    window.page.locator(".sheet-system summary").first.click()
    assert "rangs possibles" in window.page.inner_text("#parts")
    window.look(f"look-{width}-{scheme}")
    assert window.page.locator("#back").is_visible() == (width == 390)
    assert window.complaints == []


def test_the_words_of_the_query_are_marked_and_a_key_opens_one_passage_after_the_other(
    browser: Any, made: Path, tmp_path: Path
) -> None:
    with serving(made, "--look", "--reviews", tmp_path) as (address, _):
        window = Window(browser, deep(address, "/look"))
        window.page.wait_for_selector("#questions a")
        window.press("j")
        window.page.wait_for_selector(".sheet-passage")
        for place in (0, 1):
            window.press("o")
            opened = "all => all.map((each, place) => each.open ? place : -1).filter((place) => place >= 0)"
            assert window.page.eval_on_selector_all(".sheet-passage", opened) == [place]
        terms = window.page.inner_text("#text").lower()
        marked = window.page.locator("#parts mark").all_inner_texts()
        assert marked and all(each.lower()[:4] in terms for each in marked)
        assert window.complaints == []
        window.context.close()
