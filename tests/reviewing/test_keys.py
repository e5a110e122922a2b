"""The review page by keyboard alone: every key that the page names, drafts, reloads, links, and a new annotator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import Window, chromium
from support.reviewpage import judge_run, served, write_run

from raggs.parts.reviews import ReviewStore

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested where playwright is installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Annotator(Window):
    """An annotator who uses only the keyboard."""

    def __init__(self, browser: Any, address: str, who: str = "ada", **context: Any) -> None:
        super().__init__(browser, address, **context)
        self.page.wait_for_selector("#hello:not([hidden])")
        self.page.keyboard.type(who)
        self.press("Enter")
        self.shown("#work:not([hidden])")

    def shown(self, selector: str) -> None:
        self.page.wait_for_selector(selector)

    def text(self, selector: str = "#text") -> str:
        return str(self.page.inner_text(selector))

    def saved(self) -> None:
        sync_api.expect(self.page.locator("#saved")).to_have_text("saved", timeout=15_000)

    def has(self, selector: str, text: str) -> None:
        sync_api.expect(self.page.locator(selector)).to_contain_text(text)

    def view(self, name: str, mark: str) -> None:
        """Open a view by Tab and Enter."""
        self.page.get_by_role("button", name=name, exact=True).focus()
        self.press("Enter")
        self.shown(mark)

    def listed(self) -> set[str]:
        """Return the keys that the help of this view names."""
        self.press("?")
        self.shown("dialog[open]")
        found = set(self.page.locator("#keys-list kbd").all_inner_texts())
        self.press("Enter")
        self.page.wait_for_selector("dialog[open]", state="hidden")
        return found


def grades(folder: Path) -> list[Any]:
    return [line for line in ReviewStore(folder / "reviews").read() if line.kind == "grade"]


def test_every_key_of_the_grade_view(browser: Any, tmp_path: Path) -> None:
    run = judge_run(write_run(tmp_path / "runs" / "demo", 2, 6), lambda each: 3)
    with served(run, overlap=0, repeats=0, reveal=True) as address:
        ada = Annotator(browser, address)
        assert ada.listed() == {
            *"12345",
            "0",
            "j",
            "→",
            "k",
            "←",
            "n",
            "u",
            "Ctrl+z",
            "s",
            "c",
            "m",
            "h",
            "v",
            "V",
            "?",
        }
        seen = []
        for key in "123450":
            seen.append(ada.text())
            ada.press(key)
            ada.saved()
        assert [line.grade for line in grades(tmp_path)] == [1, 2, 3, 4, 5, None]
        front = ada.text()
        ada.press("k", "ArrowLeft")
        assert ada.text() == seen[4]
        ada.has("#given", "Your grade: 5")
        ada.press("j", "ArrowRight")
        assert ada.text() == front
        ada.press("n")
        ada.page.keyboard.type("names 4 limits?")
        ada.press("Enter", "4")
        ada.saved()
        assert (grades(tmp_path)[-1].grade, grades(tmp_path)[-1].note) == (4, "names 4 limits?")
        ada.press("Control+z")
        assert ada.text() == front
        assert ada.page.input_value("#words") == "names 4 limits?", "the note is not lost"
        ada.press("s")
        assert ada.text() != front
        ada.press("k")
        assert ada.text() == front, "Back shows a skipped passage"
        ada.press("s")
        assert ada.text() == front, "a skipped passage is not skipped again"
        ada.press("j")
        newest = ada.text()
        ada.press("j")
        ada.has("#saved", "Press s to skip it")
        assert ada.text() == newest, "only one key skips"
        ada.press("h")
        ada.shown("mark")
        ada.press("c")
        ada.shown(".around:visible")
        ada.saved()
        ada.press("m")
        ada.shown(".voices")
        ada.press("Enter")
        ada.shown("#work:not([hidden])")
        ada.press("2")
        ada.saved()
        assert grades(tmp_path)[-1].grade == 2
        assert ada.complaints == []


def test_a_grade_after_back_replaces_the_first_and_a_double_press_counts_once(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 4)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        ada.has("#pace", "0 of 4 passages graded")
        ada.has("#part", "(0 of 4 graded)")
        ada.press("2", "2")
        ada.saved()
        (first,) = grades(tmp_path)
        ada.has("#part", "(1 of 4 graded)")
        ada.press("k", "5")
        ada.saved()
        assert [(line.grade, line.replaces) for line in grades(tmp_path)] == [(2, None), (5, first.id)]
        ada.page.reload()
        ada.shown("#work:not([hidden])")
        ada.press("k")
        ada.has("#given", "Your grade: 5")
        for key in "j341":
            ada.press(key)
        ada.saved()
        ada.has("#ended", "All done")
        ada.has("#pace", "4 of 4 passages graded")
        assert "left" not in ada.text("#pace")
        ada.press("u")
        ada.shown("#work:not([hidden])")
        ada.saved()
        assert ReviewStore(tmp_path / "reviews").read()[-1].kind == "withdrawal"
        assert ada.complaints == []


def test_own_labels_are_filtered_and_opened_again(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 2, 4)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        ada.press("4", "n")
        ada.page.keyboard.type("an exception")
        ada.press("Enter", "2", "3")
        ada.saved()
        ada.view("My labels", ".label")
        assert ada.listed() == {"j", "↓", "k", "↑", "Enter", "/", "v", "V", "?"}
        sync_api.expect(ada.page.locator(".label .grade")).to_have_text(["3", "2", "4"])
        ada.press("/")
        ada.page.keyboard.type("exception")
        sync_api.expect(ada.page.locator(".label .grade")).to_have_text(["2"])
        ada.page.reload()
        sync_api.expect(ada.page.locator(".label .grade")).to_have_text(["2"])  # the filter is remembered
        ada.press("j", "Enter")
        ada.has("#given", "Your grade: 2")
        ada.press("5")
        sync_api.expect(ada.page.locator(".label .grade")).to_have_text(["5"])
        assert (grades(tmp_path)[-1].grade, grades(tmp_path)[-1].note) == (5, "an exception")
        assert grades(tmp_path)[-1].replaces == grades(tmp_path)[1].id
        assert ada.complaints == []


def test_notes_and_orders_survive_a_reload_and_a_server_that_is_gone(browser: Any, tmp_path: Path) -> None:
    run = judge_run(write_run(tmp_path / "runs" / "demo", 1, 5), lambda each: 5)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        ada.press("n")
        ada.page.keyboard.type("half a sent")
        ada.page.reload()
        ada.shown("#noting:not([hidden])")
        assert ada.page.input_value("#words") == "half a sent"
        ada.press("1")
        ada.saved()
        assert grades(tmp_path)[-1].note == "half a sent"
        ada.view("Decide", ".voices")
        assert ada.listed() == {*"12345", "n", "s", "u", "Ctrl+z", "h", "v", "V", "?"}
        ada.press("n")
        ada.page.keyboard.type("the limit")
        ada.page.reload()
        ada.shown(".voices")
        assert ada.page.input_value("#why-so") == "the limit"
        ada.press("2")
        ada.has("#view h1", "no disputed passage")
        assert (grades(tmp_path)[-1].settles, grades(tmp_path)[-1].note) == (True, "the limit")
        ada.page.reload()
        ada.has("#view h1", "no disputed passage")
        ada.press("u")
        ada.shown(".voices")
        assert ada.page.input_value("#why-so") == "the limit", "the reason comes back"
        ada.view("Order", ".row")
        assert ada.listed() == {*"12345", "=", "a", "↑", "↓", "u", "Backspace", "Ctrl+z", "Enter", *"hvV?"}
        ada.press("2", "Control+z", "4", "Backspace")
        ada.press("3", "1", "=", "2")
        ada.page.reload()
        sync_api.expect(ada.page.locator(".placed .row .number")).to_have_text(["3", "1", "2"])
        ada.press("u")
        sync_api.expect(ada.page.locator(".placed .row .number")).to_have_text(["3", "1"])
        ada.press("2")
        sync_api.expect(ada.page.locator(".placed .row.tied .number")).to_have_text(["2"])
        ada.press("Enter")
        ada.has("#trouble:visible", "Not sent. 2 passages to place")
        ada.press("4", "Enter")
        ada.has("#trouble:visible", "Not sent. 1 passage to place")
        ada.press("5")
        sync_api.expect(ada.page.locator("#trouble")).to_be_hidden()
    ada.press("Enter")
    ada.has("#saved", "1 not saved yet")
    ada.has("#trouble", "kept in this browser")
    with served(run, port=int(address.split(":")[2].split("/")[0]), overlap=0, repeats=0):
        ada.has("#view h1", "Nothing left to put in order")
        assert [line.kind for line in ReviewStore(tmp_path / "reviews").read()].count("order") == 1
        ada.page.reload()
        ada.has("#view h1", "Nothing left to put in order")
        ada.press("u")
        sync_api.expect(ada.page.locator(".placed .row .number")).to_have_text(["3", "1", "2", "4", "5"])
        ada.press("u")
        sync_api.expect(ada.page.locator(".placed .row .number")).to_have_text(["3", "1", "2", "4"])
        assert all("ERR_CONNECTION" in each or "ERR_EMPTY" in each for each in ada.complaints)


def test_an_answer_that_was_not_sent_is_sent_after_a_reload(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 5)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.page.route("**/api/grade", lambda route: route.abort())
        ada.press("2", "4")
        ada.has("#saved", "2 not saved yet")
        ada.page.unroute("**/api/grade")
        ada.page.reload()
        ada.saved()
        assert [line.grade for line in grades(tmp_path)] == [2, 4]
        refuse = {"status": 400, "content_type": "application/json", "body": '{"error": "no such thing"}'}
        ada.page.route("**/api/grade", lambda route: route.fulfill(**refuse))
        ada.shown("#work:not([hidden])")
        ada.press("5")
        ada.has("#refused", "Not stored: grade 5; no such thing")
        ada.page.reload()
        ada.has("#refused", "grade 5")
        ada.page.get_by_role("button", name="Dismiss").focus()
        ada.press("Enter")
        sync_api.expect(ada.page.locator("#refused")).to_be_hidden()


def test_two_tabs_of_one_annotator_send_their_own_answers(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 2, 6)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        other = ada.context.new_page()
        other.goto(address)
        other.wait_for_selector("#hello:not([hidden])")
        other.keyboard.press("Enter")
        other.wait_for_selector("#work:not([hidden])")
        for _ in range(4):  # at the same time
            ada.press("2")
            other.keyboard.press("4")
            ada.page.wait_for_timeout(260)
        for page in (ada.page, other):
            sync_api.expect(page.locator("#saved")).to_have_text("saved", timeout=15_000)
        assert sorted(line.grade for line in grades(tmp_path)) == [2] * 4 + [4] * 4
        assert len({(line.query, line.passage) for line in grades(tmp_path)}) == 8
        ada.page.route("**/api/grade", lambda route: route.abort())
        ada.press("5")
        ada.has("#saved", "1 not saved yet")
        ada.page.close()
        other.reload()
        other.wait_for_selector("#work:not([hidden])")
        for _ in range(50):
            if len(grades(tmp_path)) == 9:
                break
            other.wait_for_timeout(100)
        assert grades(tmp_path)[-1].grade == 5, "the answer of a closed tab is sent by another one"


def test_the_next_annotator_is_asked_for_a_name(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 6)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.press("1")
        ada.saved()
        ada.page.reload()
        ada.shown("#work:not([hidden])")
        other = ada.context.new_page()
        other.goto(address)
        other.wait_for_selector("#hello:not([hidden])")
        assert "ada" in other.inner_text("#again")
        sync_api.expect(other.locator("#begin")).to_have_text("Continue as ada")
        other.keyboard.type("bo")
        sync_api.expect(other.locator("#begin")).to_have_text("Begin")
        other.keyboard.press("Enter")
        other.wait_for_selector("#work:not([hidden])")
        other.keyboard.press("5")
        sync_api.expect(other.locator("#saved")).to_have_text("saved")
        other.get_by_role("button", name="Change annotator").click()
        other.wait_for_selector("#hello:not([hidden])")
        assert other.input_value("#name") == ""
        ada.page.evaluate(
            "for (const k of Object.keys(sessionStorage)) if (k.endsWith('active')) sessionStorage[k] = 1"
        )
        ada.page.reload()
        ada.shown("#hello:not([hidden])")  # after half an hour without a key
        assert [(line.who, line.grade) for line in grades(tmp_path)] == [("ada", 1), ("bo", 5)]
        assert ada.complaints == []


def test_a_link_to_a_query(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 6, 3)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address, permissions=["clipboard-read", "clipboard-write"])
        number = next(each for each in range(6) if f"subject {each}" not in ada.text("#question"))
        for _ in range(2):  # the same link again
            ada.page.evaluate(f"location.hash = 'question=q0000{number}'")
            ada.has("#question", f"subject {number}")
            assert "#" not in ada.page.url
            ada.press("s")
        ada.page.get_by_role("button", name="Copy link").focus()
        ada.press("Enter")
        ada.has("#link", "Link copied")
        assert ada.page.evaluate("navigator.clipboard.readText()").endswith(f"/#question=q0000{number}")
        ada.page.evaluate("location.hash = 'question=nothing'")
        ada.has("#trouble", "unknown query 'nothing'")
        assert all("404" in each for each in ada.complaints)


# Answers to /api/next are held back until `release()` is called.
LATE = """{ const sent = fetch; let held = []; window.heldBack = () => held.length;
  window.release = () => { held.forEach((done) => done()); held = []; };
  window.fetch = async (url, options) => { const answer = await sent(url, options);
    if (url === '/api/next') await new Promise((done) => held.push(done));
    return answer; }; 0; }"""


def test_a_late_answer_neither_brings_back_a_passage_nor_an_earlier_link(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 3, 3)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        number = int(ada.text("#question").removesuffix("?").split()[-1])
        do = ada.page.evaluate

        def held_back(count: int) -> None:
            for _ in range(200):
                if do("heldBack()") == count:
                    return
                ada.page.wait_for_timeout(20)
            raise AssertionError(do("heldBack()"))

        do(LATE)
        do(f"location.hash = 'question=q0000{number}'")
        held_back(1)
        skipped = ada.text()
        ada.press("s")  # the server's answer to the link still starts with this passage, and has the next one
        graded = ada.text()
        ada.press("4")
        ada.saved()
        rest = ada.text()
        do("release()")
        held_back(1)  # asked again
        assert ada.text() == rest
        do("release()")
        ada.page.wait_for_timeout(100)
        seen = [ada.text()]
        for _ in range(2):
            ada.press("s")
            seen.append(ada.text())
        assert seen[0] == rest, "the passage that was skipped does not come back at once"
        assert graded not in seen, skipped
        ada.saved()
        assert [line.grade for line in grades(tmp_path)] == [4]
        other = (number + 1) % 3
        do("location.hash = 'question=nothing'")
        held_back(1)
        do(f"location.hash = 'question=q0000{other}'")
        held_back(2)
        do("release()")
        ada.has("#question", f"subject {other}")
        sync_api.expect(ada.page.locator("#trouble")).to_be_hidden()


def test_on_a_phone_the_rubric_is_open_until_the_first_grade_and_a_long_name_is_shown(
    browser: Any, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 5)
    name = "Bartholomew Fotheringay-Phipps-Wellesley (retrieval quality team)"
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address, name, viewport={"width": 390, "height": 844})
        who = ada.page.locator("#who")
        assert who.evaluate("each => getComputedStyle(each).textOverflow") == "clip"
        assert who.bounding_box()["width"] > 300, "a line of its own"
        rubric = ada.page.locator("#rubric details")
        sync_api.expect(rubric).to_have_attribute("open", "")
        assert rubric.bounding_box()["y"] < ada.page.locator("#question").bounding_box()["y"]
        ada.look("rubric-390")
        ada.press("3")
        ada.saved()
        assert rubric.get_attribute("open") is None
        ada.page.locator("#rubric summary").click()
        ada.press("4")
        ada.saved()
        ada.page.reload()
        ada.shown("#work:not([hidden])")
        assert rubric.get_attribute("open") == "", "the reader's choice is kept"
        ada.page.set_viewport_size({"width": 1200, "height": 800})
        sync_api.expect(ada.page.locator("aside #rubric")).to_be_visible()
        assert ada.complaints == []


def test_settings_are_remembered(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 4)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        for name in ("System theme", "Light theme"):
            ada.page.get_by_role("button", name=name).focus()
            ada.press("Enter")
        ada.press("h")
        ada.page.reload()
        ada.shown("mark")
        ada.page.get_by_role("button", name="Dark theme").focus()
        assert ada.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"


def test_a_sitting_has_a_target_and_ends(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 10, 5)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        ada.has("#pace", "0 of 20 for this sitting, 50 in all")
        for number in range(20):
            ada.press(str(number % 5 + 1))
            ada.saved()
        ada.has("#pace", "20 of 20 for this sitting, 50 in all · Sitting done.")
        ada.page.reload()
        ada.has("#pace", "20 of 20 for this sitting, 50 in all · Sitting done.")
        ada.press("1")
        ada.has("#pace", "1 of 20 for this sitting, 50 in all")
        ada.press("u")
        ada.has("#pace", "0 of 20 for this sitting, 50 in all")
        assert ada.complaints == []
    with served(run, overlap=0, sample=30) as address:
        bo = Annotator(browser, address, "bo")
        bo.has("#pace", "passages graded")  # without those of ada


def test_labels_show_their_passage_and_every_key_works_from_the_filters(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 2, 3, ["Title\n*****\n\nThe limit is named here."] * 3)
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        for key in "123":
            ada.press(key)
            ada.saved()
        ada.view("My labels", ".label")
        rows = ada.page.locator(".label")
        assert ada.page.locator(".labels h2").count() == 1, "one heading for the passages of a query"
        assert [each.split("\n")[1].startswith("Title") for each in rows.all_inner_texts()] == [True, True, True]
        ada.has(".label >> nth=0", "The limit is named here.")
        assert re.search(r"q0000\d · \d\d:\d\d", rows.first.inner_text())
        ada.page.locator("#by-grade").focus()
        ada.press("j")
        assert ada.page.evaluate("document.activeElement.className") == "label"
        ada.page.locator("#by-grade").focus()
        ada.press("/")
        ada.page.keyboard.type("subject")
        ada.press("ArrowDown")
        assert ada.page.evaluate("document.activeElement.className") == "label"
        ada.page.locator("#by-grade").focus()
        assert "j" in ada.listed()
        ada.press("v")
        ada.shown(".row")
        ada.press("V", "V")
        ada.shown("#work:not([hidden])")
        assert ada.complaints == []


def test_a_long_passage_of_an_order_fades_and_opens(browser: Any, tmp_path: Path) -> None:
    long = "\n\n".join(f"Paragraph {number} on the inlet." for number in range(40))
    run = write_run(tmp_path / "runs" / "demo", 1, texts=[long, "Short.", long + " more"])
    with served(run) as address:
        for width in (1024, 390):
            ada = Annotator(browser, address, viewport={"width": width, "height": 844})
            ada.view("Order", ".row")
            assert ada.page.locator(".text.clipped").count() == 2
            assert ada.page.locator(".whole:visible").count() == 2
            ada.press("a")
            assert ada.page.locator(".text.clipped").count() == 0
            ada.press("2")
            assert ada.page.locator(".text.clipped").count() == 0, "also after a step"
            sync_api.expect(ada.page.locator(".whole:visible").first).to_contain_text("Show less")
            ada.press("a")
            assert ada.page.locator(".text.clipped").count() == 2
            if width == 390:
                assert ada.page.locator(".tray").bounding_box()["height"] <= 844 / 5
            assert ada.complaints == []


def test_agreement_in_words(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 2, 8)
    with served(run, overlap=1, repeats=0) as address:
        ada, bo = Annotator(browser, address), Annotator(browser, address, "bo")
        ada.view("Agreement", "#view h1")
        ada.has("#view", "Nobody has graded a passage yet")
        assert ada.page.locator("table").count() == 0
        for each in (ada, bo):
            each.view("Agreement", "#view h1")
            each.has("#view", "agreement is unknown")
            each.has("#view", "Next step:")
            assert "Kappa" not in each.text("#view")
            assert "Drift" not in each.text("#view")
            each.view("Grade", "#work:not([hidden])")
            last = ""
            for number in range(16):
                key = str(int(each.text()[8]) % 4 + (1 if each is ada or number % 3 else 2))
                if key == last:  # else it counts as a double press
                    each.page.wait_for_timeout(260)
                each.press(last := key)
                each.saved()
        bo.view("Agreement", ".matrices table")
        bo.has("#view", "but uncertain with 16 shared passages; about")
        bo.has("#view", "Next step: grade more shared passages, about")
        bo.has(".words >> nth=1", "almost perfect")
        assert bo.page.locator("td.near1, td.near2").count() > 1
        assert bo.page.locator("td.far1, td.far2").count() == 0
        bo.has("#view", "Kappa is the agreement beyond chance")
        bo.has(".matrices", "Same grade: 10 of 16. One grade apart: 6. Further apart: 0.")
        assert "Drift" not in bo.text("#view"), "no passage was graded twice"
        assert bo.page.locator("td.same1, td.same2").count() > 1
        assert ada.complaints + bo.complaints == []


def luminance(colour: str) -> float:
    parts = [int(each) / 255 for each in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_grades_are_readable(browser: Any, tmp_path: Path, scheme: str) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 4)
    with served(run) as address:
        ada = Annotator(browser, address, color_scheme=scheme)
        look = "all => all.map(e => { const s = getComputedStyle(e); return [s.color, s.backgroundColor]; })"
        found = ada.page.eval_on_selector_all("#grades button", look)
        assert len({ground for _, ground in found}) == 6
        for ink, ground in found:
            low, high = sorted((luminance(ink), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 4.5
        ada.press("3")
        ada.saved()
        ada.press("k")
        ada.shown('#grades [aria-pressed="true"]')
        assert ada.page.eval_on_selector_all("#grades button", look) == found, "the chosen grade is as readable"
        ada.press("Tab")
        assert ada.page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px"


def test_a_decision_on_its_way_is_not_called_saved_and_takes_no_further_key(browser: Any, tmp_path: Path) -> None:
    run = judge_run(write_run(tmp_path / "runs" / "demo", 1, 5), lambda each: 5)
    slow = """{ const sent = fetch; window.fetch = async (url, options) => {
      if (/settle|order$/.test(url)) await new Promise((done) => setTimeout(done, 800));
      return sent(url, options); }; 0; }"""
    with served(run, overlap=0, repeats=0) as address:
        ada = Annotator(browser, address)
        for key in "12121":
            ada.press(key)
            ada.saved()
        ada.page.evaluate(slow)
        ada.view("Decide", ".voices")
        first = ada.text("#view .text")
        ada.press("3")
        ada.has("#saved", "1 not saved yet")
        ada.press("4", "n")
        ada.page.keyboard.type("too late")
        assert ada.page.input_value("#why-so") == ""
        ada.press("Escape")
        ada.saved()
        assert ada.text("#view .text") != first
        assert [(line.grade, line.note) for line in grades(tmp_path) if line.settles] == [(3, "")]
        ada.view("Order", ".row")
        ada.press(*"31245", "Enter", "u", "Enter")
        ada.has("#saved", "1 not saved yet")
        ada.has("#view h1", "Nothing left to put in order")
        assert [line.kind for line in ReviewStore(tmp_path / "reviews").read()].count("order") == 1
        assert ada.complaints == []


def test_a_key_without_effect_says_why(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 5)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.press("u")
        ada.has("#saved", "There is no earlier passage.")
        ada.saved()
        ada.press("3", "3")
        ada.page.wait_for_timeout(500)  # the grade is stored meanwhile
        ada.has("#saved", "The second press of the same key was ignored.")
        ada.press("v")
        ada.saved()
        assert ada.page.locator("#saved.notice").count() == 0, "a notice ends with its view"
        ada.press("V")
        ada.view("Order", ".row")
        ada.press("u")
        ada.has("#trouble", "Nothing changed: there is no order to undo")


def test_on_a_phone_the_views_fit_on_one_line_and_annotators_are_columns(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 6)
    with served(run, overlap=1, repeats=0) as address:
        for who in ("ada", "bo"):
            annotator = Annotator(browser, address, who, viewport={"width": 390, "height": 844})
            for key in "121212":
                annotator.press(key)
                annotator.saved()
        annotator.view("Agreement", ".matrices table")
        tops = "all => new Set(all.map((each) => each.offsetTop)).size"
        assert annotator.page.eval_on_selector_all("#views button", tops) == 1
        heads = annotator.page.locator("table").last.locator("thead th").all_inner_texts()
        assert heads == ["annotator", "ada", "bo"]
        annotator.look("agreement-390")
        assert annotator.complaints == []
