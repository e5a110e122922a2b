"""The page in a real Chromium: grade, undo, reload, order, decide, two people, a server that is gone, hostile passages.

Skipped where playwright or Chromium is missing; axe-core looks and pictures are kept as `support.browsing` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import Window, chromium
from support.hostile import ORDERS, hostile
from support.reviewpage import judge_run, served, write_run

from raggs.parts.reviews import GradeReview, ReviewStore, Withdrawal

LONG = "The otter dives for what lies on the bottom of the inlet, and brings up what it can carry.\n" * 6

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested where playwright is installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Reviewer(Window):
    """Somebody at the page; whatever the browser complains of is kept."""

    def __init__(self, browser: Any, address: str, who: str | None, **context: Any) -> None:
        super().__init__(browser, address, **context)
        if who is not None:
            self.page.get_by_role("textbox").fill(who)
            self.page.keyboard.press("Enter")
            self.page.wait_for_selector("#work:not([hidden])")

    def press(self, *keys: str) -> None:
        """Press keys, the same grade twice only after the time of a double press."""
        for key in keys:
            if key == getattr(self, "_last", None):
                self.page.wait_for_timeout(270)
            super().press(key)
            self._last = key

    @property
    def text(self) -> str:
        return str(self.page.inner_text("#text"))

    def saved(self) -> None:
        sync_api.expect(self.page.locator("#saved")).to_have_text("saved", timeout=15_000)


def lines(folder: Path) -> list[Any]:
    return list(ReviewStore(folder).read())


def test_grade_undo_note_skip_and_reload(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo")
    with served(run, overlap=0) as address:
        ada = Reviewer(browser, address, "ada")
        assert "token" not in ada.page.url
        first = ada.text
        ada.press("4")
        second = ada.text
        assert second != first
        ada.saved()
        ada.press("u")
        sync_api.expect(ada.page.locator("#text")).to_have_text(first)
        ada.press("n")
        ada.page.keyboard.type("weak, 5 of them?")
        ada.press("Enter", "2")
        ada.saved()
        sync_api.expect(ada.page.locator("#text")).to_have_text(second)
        ada.page.reload()
        ada.page.wait_for_selector("#work:not([hidden])")
        assert ada.text == second, "the same again after a reload"
        ada.press("s")
        ada.press("0")
        ada.saved()
        said = lines(tmp_path / "reviews")
        assert [type(line) for line in said] == [GradeReview, Withdrawal, GradeReview, GradeReview]
        assert [(line.grade, line.note) for line in said if isinstance(line, GradeReview)] == [
            (4, ""),
            (2, "weak, 5 of them?"),
            (None, ""),
        ]
        assert said[2].seconds is not None
        for number in range(10):
            ada.saved()
            ada.press(str(number % 5 + 1))
        sync_api.expect(ada.page.locator("#ended")).to_have_text("All done")
        ada.look("done")
        ada.press("u")
        ada.page.wait_for_selector("#work:not([hidden])")
        assert ada.complaints == []


def test_two_people_at_once_see_only_their_own(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 6)
    with served(run, overlap=0) as address:
        ada, bo = Reviewer(browser, address, "ada"), Reviewer(browser, address, "bo")
        for each in (ada, bo, ada, bo, ada, bo):
            each.page.wait_for_selector("#work:not([hidden])")
            each.press("5" if each is ada else "1")
            each.saved()
        said = lines(tmp_path / "reviews")
        assert len({(line.query, line.passage) for line in said}) == 6
        assert {line.who for line in said} == {"ada", "bo"}
        sync_api.expect(ada.page.locator("#ended")).to_have_text("All done")
        late = Reviewer(browser, address, None)
        late.page.get_by_role("textbox").fill("cy")
        late.press("Enter")
        sync_api.expect(late.page.locator("#ended")).to_have_text("Nothing to grade")
        sync_api.expect(late.page.locator("#why")).to_contain_text("graded every passage as often as planned")
        sync_api.expect(late.page.locator("#last")).to_be_hidden()
        other = Reviewer(browser, address, None)
        other.page.get_by_role("textbox").fill("ada")
        other.press("Enter")
        sync_api.expect(other.page.locator("#known")).to_contain_text("ada has 3 grades here already")
        assert ada.complaints + bo.complaints + late.complaints + other.complaints == []


def test_a_server_that_is_gone_loses_nothing(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo")
    with served(run, overlap=0) as address:
        ada = Reviewer(browser, address, "ada")
        ada.press("1")
        ada.saved()
    ada.press("2", "3")
    sync_api.expect(ada.page.locator("#saved")).to_have_text("2 not saved yet")
    sync_api.expect(ada.page.locator("#trouble")).to_contain_text("kept in this browser")
    ada.look("offline")
    with served(run, port=int(address.split(":")[2].split("/")[0]), overlap=0):
        ada.saved()
        sync_api.expect(ada.page.locator("#trouble")).to_be_hidden()
        assert [line.grade for line in lines(tmp_path / "reviews")] == [1, 2, 3]
        assert all("ERR_CONNECTION" in each or "ERR_EMPTY" in each for each in ada.complaints)


MARKUP = (
    "<img src=x onerror=alert(1)><b>bold</b>",
    "<script>document.title = 'owned'</script> & <style>*{display:none}</style>",
)


def test_hostile_passages_are_text(browser: Any, tmp_path: Path) -> None:
    texts = [*(hostile(number, "otters") for number in range(len(ORDERS))), *MARKUP]
    run = write_run(tmp_path / "runs" / "demo", 1, texts=texts)
    with served(run, repeats=0) as address:
        ada = Reviewer(browser, address, "<b>ada</b> & co")
        seen = []
        ada.press("h")
        for _ in texts:
            ada.page.wait_for_selector("#work:not([hidden])")
            assert ada.page.locator("#text *:not(mark, .code)").count() == 0
            seen.append(ada.text)
            ada.press("1")
            ada.saved()
        assert any("<img src=x onerror" in text for text in seen)
        assert ada.page.title() == "raggs review: demo"
        assert ada.page.locator("#who b").count() == 0
        assert ada.complaints == []


def test_hostile_words_are_text_in_every_view(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, texts=MARKUP)
    judge_run(run, lambda each: 5, judge=MARKUP[0])
    with served(run, overlap=0, reveal=True) as address:
        ada = Reviewer(browser, address, MARKUP[0])
        page = ada.page
        ada.press("n")
        page.keyboard.type(MARKUP[1])
        ada.press("Enter", "1")
        ada.saved()
        ada.press("m")
        sync_api.expect(page.locator(".voices li")).to_have_count(2)
        ada.press("Enter")
        for view, mark in (("Order", ".row"), ("Decide", ".voices"), ("Agreement", "table")):
            page.get_by_role("button", name=view).click()
            sync_api.expect(page.locator(mark).first).to_be_visible()
            assert page.locator("main img, main b, main script, main style").count() == 0
            assert "<img src=x" in page.inner_text("#view")
        assert page.title() == "raggs review: demo"
        assert ada.complaints == []


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1024, 1600])
def test_it_looks_well(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    run = write_run(tmp_path / "runs" / "demo", 2, texts=[LONG, "The inlet.\n" + LONG, "A subject of its own."])
    judge_run(run, lambda each: 2 + each.rank)
    name = f"{width}-{scheme}"
    with served(run, overlap=0, reveal=True) as address:
        size = {"width": width, "height": 844}
        ada = Reviewer(browser, address, None, viewport=size, color_scheme=scheme, locale="fr-FR")
        page = ada.page
        sync_api.expect(page.locator("h1").first).to_have_text("Noter des passages")
        ada.look(f"hello-{name}")
        page.get_by_role("textbox").fill("Ada")
        page.get_by_role("button", name="Commencer").click()
        page.wait_for_selector("#work:not([hidden])")
        ada.press("h", "c", "n")
        assert set(page.locator("mark").all_inner_texts()) <= {"subject", "0", "1"}
        page.wait_for_selector("#before:not([hidden]), #after:not([hidden])")
        ada.look(f"grade-{name}")
        ada.press("Escape")
        page.locator("#language").click()
        sync_api.expect(page.locator("#rubric summary")).to_have_text("What the grades mean")
        page.get_by_role("button", name="1: Not relevant").click()
        ada.saved()
        page.get_by_role("button", name="Model").click()
        page.wait_for_selector(".voices")
        ada.look(f"model-{name}")
        page.get_by_role("button", name="Continue").click()
        ada.look(f"english-{name}")
        ada.press("k", "?")
        ada.look(f"keys-{name}")
        ada.press("Escape")
        for view, mark in (("My labels", ".label"), ("Order", ".row"), ("Decide", ".voices"), ("Agreement", "table")):
            page.get_by_role("button", name=view).click()
            sync_api.expect(page.locator(mark).first).to_be_visible()
            ada.look(f"{view.lower()}-{name}")
        assert ada.complaints == []


def test_the_models_word_comes_after_ones_own(browser: Any, tmp_path: Path) -> None:
    run = judge_run(write_run(tmp_path / "runs" / "demo"), lambda each: 2)
    with served(run, overlap=0, reveal=True) as address:
        ada = Reviewer(browser, address, "ada")
        ada.press("m")
        sync_api.expect(ada.page.locator("#trouble")).to_contain_text("grade the passage first")
        ada.press("4")
        ada.saved()
        second = ada.text
        ada.press("m")
        sync_api.expect(ada.page.locator(".voices")).to_contain_text("because of")
        ada.press("3")
        sync_api.expect(ada.page.locator(".voices .grade").first).to_have_text("3")
        ada.press("Enter")
        sync_api.expect(ada.page.locator("#text")).to_have_text(second)
        ada.press("u")
        sync_api.expect(ada.page.locator("#text")).not_to_have_text(second)
        ada.saved()
        said = lines(tmp_path / "reviews")
        assert [(line.kind, line.blind) for line in said] == [("grade", True), ("grade", False), ("withdrawal", True)]
        assert said[2].replaces == said[1].id
        assert all("400" in each for each in ada.complaints), "asked too early"


def test_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo")
    with served(run) as address:
        ada = Reviewer(browser, address, "ada")
        reached = set()
        for _ in range(26):
            Window.press(ada, "Tab")
            reached.add(ada.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        assert {
            "help",
            "theme",
            "leave",
            "link",
            "mark",
            "1",
            "5",
            "?0",
            "back",
            "note",
            "undo",
            "skip",
        } <= reached
        assert ada.page.locator("#next").is_hidden(), "a passage without a grade is skipped"
        assert ada.complaints == []


def test_people_who_differ_are_settled(browser: Any, tmp_path: Path) -> None:
    run = judge_run(write_run(tmp_path / "runs" / "demo", 1, 3), lambda each: 5)
    with served(run, overlap=1) as address:
        ada, bo = Reviewer(browser, address, "ada"), Reviewer(browser, address, "bo")
        for each, grades in ((ada, "111"), (bo, "550")):
            for grade in grades:
                each.press(grade)
                each.saved()
        for each in (ada, bo):
            each.page.get_by_role("button", name="Decide").click()
        counts = bo.page.locator("[aria-pressed=true]:visible")
        said = {
            page.locator(".voices").inner_text() for page in (ada.page, bo.page) if page.wait_for_selector(".voices")
        }
        assert len(said) == 1, "both see the same"
        sync_api.expect(counts).to_have_text("All (3)")
        sync_api.expect(bo.page.locator("#view details[open] dl")).to_contain_text("Not relevant to the question.")
        bo.press("n")
        bo.page.keyboard.type("the limit is named")
        bo.press("Escape", "4")
        sync_api.expect(counts).to_have_text("All (2)")
        ada.press("2")
        sync_api.expect(ada.page.locator("#trouble")).to_contain_text("already adjudicated by bo: 4")
        bo.press("u")
        sync_api.expect(counts).to_have_text("All (3)")
        first = bo.page.inner_text("#view .text")
        bo.press("s")
        sync_api.expect(bo.page.locator("#view .text")).not_to_have_text(first)
        second = bo.page.inner_text("#view .text")
        bo.page.reload()
        sync_api.expect(bo.page.locator("#view .text")).to_have_text(second)  # what was put off is still put off
        bo.page.get_by_role("button", name="With the model").click()
        sync_api.expect(counts).to_have_text("With the model (1)")
        sync_api.expect(bo.page.locator(".voices .model")).to_contain_text("litellm")
        for left in ("With the model (0)", "All (2)", "All (1)", "All (0)"):
            if left == "All (2)":
                bo.page.get_by_role("button", name="All").click()
            else:
                bo.press("3")
            sync_api.expect(counts).to_have_text(left)
        sync_api.expect(bo.page.locator("#view")).to_contain_text("no disputed passage without a decision")
        noted = lines(tmp_path / "reviews")[6:]
        assert [(line.kind, line.note) for line in noted][:2] == [("grade", "the limit is named"), ("withdrawal", "")]
        assert [line.settles for line in noted if isinstance(line, GradeReview)] == [True] * 4
        bo.page.get_by_role("button", name="Agreement").click()
        sync_api.expect(bo.page.locator("table").first).to_contain_text("ada")
        bo.page.reload()
        sync_api.expect(bo.page.locator("h1:visible")).to_have_text("Agreement")
        assert bo.complaints == []
        assert all("400" in each for each in ada.complaints), "she was told"


def test_who_may_still_be_asked_sees_nothing(browser: Any, tmp_path: Path) -> None:
    run = judge_run(write_run(tmp_path / "runs" / "demo", 1, 2), lambda each: 5)
    with served(run, overlap=1) as address:
        ada, bo = Reviewer(browser, address, "ada"), Reviewer(browser, address, "bo")
        ada.press("1")
        ada.saved()
        bo.page.get_by_role("button", name="Decide").click()
        sync_api.expect(bo.page.locator("#view")).to_contain_text("1 more disputed passage is hidden from you")
        assert "litellm" not in bo.page.inner_text("#view")
        ada.page.get_by_role("button", name="Decide").click()
        sync_api.expect(ada.page.locator("#view")).to_contain_text("litellm")
        assert ada.complaints + bo.complaints == []


def rows(page: Any) -> str:
    """What is placed, as it is read: `3 =1 2`."""
    found = page.locator(".placed .row").all()
    return " ".join(
        ("=" if row.locator(".sign").inner_text() == "=" else "") + row.locator(".number").inner_text() for row in found
    )


def middle(page: Any, selector: str, part: float = 0.5) -> tuple[float, float]:
    """A point in a row: `part` of its height, or of its width where the rows stand beside each other."""
    box = page.locator(selector).bounding_box()
    if page.viewport_size["width"] == 390:
        return box["x"] + box["width"] * part, box["y"] + box["height"] / 2
    return box["x"] + 80, box["y"] + box["height"] * part


def drag(page: Any, number: int, to: tuple[float, float], *, release: bool = True) -> None:
    x, y = middle(page, f"#row-{number}")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 9)
    page.mouse.move(*to, steps=3)
    if release:
        page.mouse.up()


def swipe(page: Any, number: int, to: tuple[float, float]) -> None:
    """As `drag`, by a finger."""
    session = page.context.new_cdp_session(page)
    x, y = middle(page, f"#row-{number}")
    for kind, points in (
        ("touchStart", [(x, y)]),
        ("touchMove", [(x + 9, y)]),
        ("touchMove", [to]),
        ("touchEnd", []),
    ):
        told = {"type": kind, "touchPoints": [{"x": at[0], "y": at[1]} for at in points]}
        session.send("Input.dispatchTouchEvent", told)


@pytest.mark.parametrize("width", [390, 1400])
def test_five_in_order_by_keys_and_by_touch(browser: Any, tmp_path: Path, width: int) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 10)
    with served(run) as address:
        ada = Reviewer(browser, address, "ada", viewport={"width": width, "height": 844}, has_touch=width == 390)
        page = ada.page
        page.get_by_role("button", name="Order").click()
        sync_api.expect(page.locator(".card")).to_have_count(5)
        ada.press("3", "1", "=", "2", "4", "u", "4")
        page.locator("#place-5").click()
        assert rows(page) == "3 1 =2 4 5"
        ada.look(f"order-{width}")
        ada.press("Enter")
        sync_api.expect(page.locator("#view")).to_contain_text("1 order done, 1 left")
        (line,) = lines(tmp_path / "reviews")
        assert line.places == (1, 1, 0, 2, 3)
        assert line.seconds > 0
        page.reload()
        sync_api.expect(page.locator("#view")).to_contain_text("1 order done, 1 left")
        ada.press("2", "u", "u")
        sync_api.expect(page.locator("#view")).to_contain_text("0 orders done, 2 left")
        assert ada.complaints == []


def test_five_in_order_by_dragging_and_by_arrows(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 5)
    with served(run) as address:
        for width, move in ((1400, drag), (390, swipe)):
            bo = Reviewer(
                browser, address, f"bo{width}", viewport={"width": width, "height": 844}, has_touch=width == 390
            )
            page = bo.page
            page.get_by_role("button", name="Order").click()
            page.wait_for_selector(".row")
            for number, to, found in (
                (3, (".rows.placed", 0.5), "3"),
                (1, ("#row-3", 0.5), "3 =1"),
                (5, ("#row-3", 0.03), "5 3 =1"),
                (2, ("#row-1", 0.97), "5 3 =1 2"),
                (3, ("#row-2", 0.97), "5 1 2 3"),
                (5, (".rows.open", 0.9), "1 2 3"),
            ):
                move(page, number, middle(page, *to))
                sync_api.expect(page.locator(".placed .row")).to_have_count(len(found.split()))
                page.wait_for_timeout(50)
                assert rows(page) == found
            if width == 1400:
                drag(page, 1, middle(page, "#row-3"), release=False)
                bo.look("dragging")
                bo.press("Escape")
                page.mouse.up()
                page.wait_for_timeout(50)
                assert rows(page) == "1 2 3", "Escape leaves it where it was"
            page.locator("#row-4").focus()
            for key, found in (
                ("ArrowUp", "1 2 3 4"),
                ("ArrowUp", "1 2 3 =4"),
                ("ArrowUp", "1 2 4 3"),
                ("u", "1 2 3 =4"),
            ):
                bo.press(key)
                assert rows(page) == found
            page.locator("#row-1").focus()
            for key, found in (("ArrowDown", "2 =1 3 =4"), ("ArrowDown", "2 1 3 =4")):
                bo.press(key)
                assert rows(page) == found
            page.locator("#row-5").focus()
            bo.press("Enter")
            assert rows(page) == "2 1 3 =4 5", "Enter on a row that is not placed"
            bo.press("Enter")
            sync_api.expect(page.locator("#view")).to_contain_text("Nothing left to put in order")
            assert lines(tmp_path / "reviews")[-1].places == (1, 0, 2, 2, 3)
            assert bo.complaints == []


FORMATTED = """Title 0-0
*********

The formula "x = i + n*k" is prose, and so are these words about it, which is wrapped
at a width that an editor has chosen, so that they flow on every page.

Example
-------

   >>> steps = range(3)
   >>> list(steps)

   def answer(question):
       return max(question)

+------+--------+
| name | grade  |
+------+--------+

  * A list item with `code()` stays prose."""


def test_code_and_tables_keep_their_columns_and_underlined_lines_are_bold(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, texts=[FORMATTED])
    with served(run) as address:
        ada = Reviewer(browser, address, "ada", viewport={"width": 390, "height": 844})
        code = ada.page.locator("#text .code").all_text_contents()
        assert [each.split("\n")[0].strip() for each in code] == [
            ">>> steps = range(3)",
            "def answer(question):",
            "+------+--------+",
        ]
        assert ada.page.locator("#text strong").all_text_contents() == ["Title 0-0", "Example"]
        lines = ada.text.split("\n")
        assert not {"*********", "-------"} & {*lines}
        assert "wrapped at a width" in lines[2]
        ada.look("formatted")
        assert ada.complaints == []
