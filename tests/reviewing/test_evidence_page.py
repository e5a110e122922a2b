"""The view Evidence in a real Chromium, by keyboard alone: every key, drafts, a lost server, disputes, the looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import XSS, Window, chromium
from support.reviewpage import judge_run, served, state_evidence, write_run

from raggs.golden.human_evidence import human_evidence
from raggs.parts.reviews import EvidenceReview, ReviewStore
from raggs.runs.manifests.open_run import open_run

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested where playwright is installed")

LONG = "The otter dives for what lies on the bottom of the inlet, and brings up what it can carry.\n" * 12
SETS = {"q00000": [["d0-0", "d0-2"], ["d0-1"]]}
READY = ".card .pick"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Annotator(Window):
    """An annotator who uses only the keyboard, in the view Evidence."""

    def __init__(self, browser: Any, address: str, who: str = "ada", **context: Any) -> None:
        super().__init__(browser, address, **context)
        self.page.wait_for_selector("#hello:not([hidden])")
        self.page.keyboard.type(who)
        self.press("Enter")
        self.page.wait_for_selector("#views:not([hidden])")
        self.press("v", "v", "v")
        self.has("h1:visible", "This view shows grades")

    def has(self, selector: str, text: str) -> None:
        sync_api.expect(self.page.locator(selector).first).to_contain_text(text)

    def sets(self) -> list[str]:
        """The sets as the list shows them: mark and passages."""
        rows = self.page.locator(".combination").all()
        return [f"{row.locator('strong').inner_text()} {row.locator('.name').inner_text()}" for row in rows]

    def have(self, *sets: str) -> None:
        sync_api.expect(self.page.locator(".combination")).to_have_count(len(sets))
        assert self.sets() == [*sets]

    def sent(self, folder: Path, count: int) -> EvidenceReview:
        """Send the answer, and return it when it is stored."""
        self.press("Enter")
        for _ in range(100):
            if len(stored(folder)) == count:
                return stored(folder)[-1]
            self.page.wait_for_timeout(50)
        raise AssertionError(self.page.inner_text("body"))


def stored(folder: Path) -> list[EvidenceReview]:
    return [line for line in ReviewStore(folder / "reviews").read() if isinstance(line, EvidenceReview)]


def judged(folder: Path, questions: int = 2, **more: Any) -> Path:
    run = state_evidence(write_run(folder / "runs" / "demo", questions, 4, **more), SETS)
    return judge_run(run, lambda each: max(2, 6 - each.rank))


def test_every_key_of_the_view(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        assert ada.page.locator(READY).count() == 0, "nothing is shown before the annotator agrees"
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("?")
        ada.page.wait_for_selector("dialog[open]")
        keys = {*ada.page.locator("#keys-list kbd").all_inner_texts()}
        assert keys == {*"12345←→jk↓↑xar+0nsu?hvV", "Ctrl+z", "Enter"}
        ada.press("Enter")
        ada.have("? 1 + 3", "? 2")
        ada.has("#passage-1 .pick", "Remove from set 1")
        ada.has("#passage-2 .pick", "Add to set 1")
        ada.has("[role=status].soft:visible", "2 sets to decide")
        assert ada.page.get_by_role("button", name="Send").is_disabled()
        ada.press("Enter")
        assert stored(tmp_path) == [], "each set needs a decision"
        ada.has("#trouble:visible", "Not sent. 2 sets to decide")
        assert ada.page.locator("mark").count() == 0
        ada.press("h")
        assert {*ada.page.locator("mark").all_inner_texts()} == {"subject", "0"}
        ada.press("a")
        ada.have("✓ 1 + 3", "? 2")
        sync_api.expect(ada.page.locator("#set-2")).to_have_attribute("aria-pressed", "true")
        ada.has(".soft:visible", "Accept or reject each set")
        ada.has(".card .soft", "Grade in the run")
        ada.press("r")
        ada.have("✓ 1 + 3", "✗ 2")
        ada.press("u")
        ada.have("✓ 1 + 3", "? 2")
        ada.press("2", "j", "ArrowDown", "ArrowDown", "k", "x")
        ada.have("✓ 1 + 3", "? no passage yet")
        ada.press("x")
        ada.have("✓ 1 + 3", "✓ 2")
        ada.press("+", "j", "ArrowUp", "x", "j", "Space")
        ada.have("✓ 1 + 3", "✓ 2", "✓ 1 + 2")
        ada.press("Control+z", "Control+z", "x")
        ada.have("✓ 1 + 3", "✓ 2", "✓ 2")
        ada.page.locator("#passage-3 .pick").focus()
        ada.press("Enter")
        ada.have("✓ 1 + 3", "✓ 2", "✓ 2 + 3")
        ada.page.locator("#set-1").focus()
        ada.press("Enter")
        sync_api.expect(ada.page.locator("#set-1")).to_have_attribute("aria-pressed", "true")
        assert stored(tmp_path) == [], "Enter presses the focused button"


def test_accept_change_and_no_set(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("a", "r", "n")
        ada.page.keyboard.type("the second is too old")
        ada.press("Enter", "+", "x")
        ada.press("Enter")
        ada.has("#trouble:visible", "contains all passages of set")
        assert stored(tmp_path) == []
        ada.press("x")
        ada.has("[role=status].soft:visible", "Add passages to the new set, or reject it")
        ada.press("Enter")
        ada.has("#trouble:visible", "Not sent. Add passages to the new set, or reject it")
        assert stored(tmp_path) == [], "a new set needs passages"
        ada.press("r")
        ada.have("✓ 1 + 3", "✗ 2")
        line = ada.sent(tmp_path, 1)
        assert (line.sets, line.proposed) == ((("d0-0", "d0-2"),), (("d0-0", "d0-2"), ("d0-1",)))
        assert (line.note, line.who, line.blind) == ("the second is too old", "ada", False)
        ada.has("h1:visible", "What of subject 1?")
        ada.press("0")
        ada.has("[role=status].soft:visible", "No set suffices")
        line = ada.sent(tmp_path, 2)
        assert (line.qid, line.sets) == ("q00001", ())
        ada.has("h1:visible", "There is no query left for you.")
        ada.press("u")
        ada.has("h1:visible", "What of subject 1?")
        ada.has("[role=status].soft:visible", "No set suffices")
        ada.press("u", "x")
        ada.have("✓ 1")
        line = ada.sent(tmp_path, 3)
        assert line.sets == (("d1-0",),)
        assert dict(human_evidence(open_run(run)).sets) == {"q00000": (("d0-0", "d0-2"),), "q00001": (("d1-0",),)}


def test_drafts_skips_and_answers_survive(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("r", "x", "j", "x", "n")
        ada.page.keyboard.type("half a note")
        ada.press("Escape")
        before = ada.sets()
        ada.page.reload()
        ada.page.wait_for_selector(READY)
        assert ada.sets() == before
        assert ada.page.input_value("#why-so") == "half a note"
        ada.press("s")
        ada.has("h1:visible", "What of subject 1?")
        ada.page.reload()
        ada.has("h1:visible", "What of subject 1?")
        ada.press("j", "x")
        port = int(address.split(":")[2].split("/")[0])
    ada.press("Enter")
    sync_api.expect(ada.page.locator("#saved")).to_have_text("1 not saved yet")
    sync_api.expect(ada.page.locator("#trouble")).to_contain_text("kept in this browser")
    assert stored(tmp_path) == []
    with served(run, port=port, overlap=0):
        sync_api.expect(ada.page.locator("#saved")).to_have_text("saved", timeout=15_000)
        assert [line.sets for line in stored(tmp_path)] == [(("d1-0",),)]
        ada.has("h1:visible", "What of subject 0?")
        assert ada.sets() == before
        assert all("ERR_" in each for each in ada.complaints)


def test_a_draft_and_its_undo_survive_several_reloads(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("a", "r")
        for _ in range(2):
            ada.page.reload()
            ada.page.wait_for_selector(READY)
            ada.have("✓ 1 + 3", "✗ 2")
        ada.press("u")
        ada.have("✓ 1 + 3", "? 2")
        assert ada.complaints == []


def test_undo_of_a_sent_answer_returns_it_after_a_reload(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("a", "r", "n")
        ada.page.keyboard.type("the second is too old")
        ada.press("Escape", "+", "j", "x", "k", "k", "x")
        ada.have("✓ 1 + 3", "✗ 2", "✓ 1 + 2")
        ada.sent(tmp_path, 1)
        ada.has("h1:visible", "What of subject 1?")
        ada.page.reload()
        ada.page.wait_for_selector(READY)
        ada.press("u")
        ada.has("h1:visible", "What of subject 0?")
        ada.have("✓ 1 + 3", "✗ 2", "✓ 1 + 2")
        assert ada.page.input_value("#why-so") == "the second is too old"
        ada.page.reload()
        ada.page.wait_for_selector(READY)
        ada.have("✓ 1 + 3", "✗ 2", "✓ 1 + 2")
        ada.press("u")
        ada.have("? 1 + 3", "? 2")
        assert len(stored(tmp_path)) == 1, "a second undo withdraws nothing"
        ada.press("0")
        ada.sent(tmp_path, 2)
        ada.page.reload()
        ada.page.wait_for_selector(READY)
        ada.press("u")
        ada.have("✗ 1 + 3", "✗ 2")
        assert ada.complaints == []


def test_arrow_keys_reach_each_set_and_a_narrower_page_clips_more(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, texts=["One line that is not so short after all. " * 14] * 4)
    sets = [[f"d0-{one}", f"d0-{other}"] for one in range(4) for other in range(one + 1, 4)]
    judge_run(state_evidence(run, {"q00000": sets}), lambda each: 5)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address, viewport={"width": 1600, "height": 800})
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        chosen = ada.page.locator(".combination[aria-pressed=true]")
        ada.press("ArrowLeft", "5", "ArrowRight", "ArrowRight")
        sync_api.expect(chosen).to_have_id("set-6")
        ada.press("r", "ArrowLeft")
        assert ada.sets()[5].startswith("✗")
        sync_api.expect(ada.page.locator(".text.clipped")).to_have_count(0)
        ada.page.set_viewport_size({"width": 390, "height": 800})
        sync_api.expect(ada.page.locator(".text.clipped")).to_have_count(4)
        ada.page.set_viewport_size({"width": 1600, "height": 800})
        sync_api.expect(ada.page.locator(".text.clipped")).to_have_count(0)
        assert ada.complaints == []


def test_a_view_that_found_no_server_is_shown_when_it_is_back(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address)
        port = int(address.split(":")[2].split("/")[0])
    ada.press("v")
    sync_api.expect(ada.page.locator("#trouble")).to_contain_text("The server does not answer")
    with served(run, port=port, overlap=0):
        ada.page.wait_for_selector("text=There is no disputed passage", timeout=15_000)
        sync_api.expect(ada.page.locator("#trouble")).to_be_hidden()


def test_annotators_who_differ_are_adjudicated_on_the_page(browser: Any, tmp_path: Path) -> None:
    run = judged(tmp_path, 1)
    with served(run, overlap=0) as address:
        ada, bo = Annotator(browser, address), Annotator(browser, address, "bo")
        for count, (each, keys) in enumerate(((ada, "ar"), (bo, "ra")), start=1):
            each.press("Enter")
            each.page.wait_for_selector(READY)
            each.press(*keys)
            each.sent(tmp_path, count)
        assert human_evidence(open_run(run)).differing == ("q00000",)
        bo.page.get_by_role("button", name="Annotators differ (1)").focus()
        bo.press("Enter")
        bo.has(".voices", "ada")
        bo.has(".voices li >> nth=1", "bo")
        sync_api.expect(bo.page.locator("h1:visible")).to_be_focused()  # the button was drawn again
        bo.have("? 1 + 3", "? 2")
        bo.has(".combination .by", "proposed, ada")
        bo.press("a", "a")
        line = bo.sent(tmp_path, 3)
        assert line.settles and line.who == "bo"
        bo.has("h1:visible", "Annotators do not differ on any query.")
        assert dict(human_evidence(open_run(run)).sets) == {"q00000": (("d0-0", "d0-2"), ("d0-1",))}
        assert ada.complaints + bo.complaints == []


def test_hostile_texts_are_text(browser: Any, tmp_path: Path) -> None:
    run = state_evidence(write_run(tmp_path / "runs" / "demo", 1, texts=XSS[:8]), {"q00000": [["<b>not-in-the-pool"]]})
    judge_run(run, lambda each: 4)
    with served(run, overlap=0) as address:
        ada = Annotator(browser, address, "<b>ada</b>")
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("h", "r")
        assert ada.page.locator("#view b, #view script, #view img, #view svg, #view iframe").count() == 0
        ada.has(".card >> nth=8", "The text of this passage is not in the run.")
        assert ada.unharmed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1024, 1400])
def test_it_looks_well(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    run = judged(tmp_path, 1, texts=[LONG, "The inlet.\n" + LONG, "A subject of its own.", "A fourth one."])
    name = f"{width}-{scheme}"
    with served(run, overlap=0) as address:
        size = {"width": width, "height": 844}
        ada = Annotator(browser, address, viewport=size, color_scheme=scheme)
        ada.look(f"evidence-warning-{name}")
        ada.press("Enter")
        ada.page.wait_for_selector(READY)
        ada.press("h", "a", "r", "+", "j", "x")
        ada.look(f"evidence-{name}")
        assert ada.page.locator(".text.clipped").count() == 2
        ada.page.locator(".whole:visible").first.focus()
        ada.press("Enter")
        assert ada.page.locator(".text.clipped").count() == 1
        assert stored(tmp_path) == []
        if width == 390:
            assert ada.page.locator(".act.sets").bounding_box()["height"] <= 844 / 3
        ada.press("?")
        ada.look(f"evidence-keys-{name}")
        ada.press("Escape")
        ada.page.locator("#language").click()
        ada.has("#sets-title", "Ensembles de passages")
        ada.look(f"evidence-french-{name}")
        assert ada.complaints == []
