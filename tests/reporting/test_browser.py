"""The report in a real Chromium: hostile texts stay texts, tables sort and filter, nothing is asked of the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from support.browsing import XSS, Window, chromium
from support.project import make_project
from support.sweeping import make_sweep

from raggs import load_config
from raggs import run as run_config
from raggs.app.report import ReportRequest, write_report_page
from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord, RetrieveRecord
from raggs.base.jsonl import read_records, write_records
from raggs.runs.manifests.models import RunManifest, utc_now
from raggs.runs.manifests.store import RunStore

SECRET = "only in a passage"


def id_of(text: str) -> str:
    """An id that is as hostile as the text; ids have no white space."""
    return "".join(char for char in text if not char.isspace())


def write_hostile(folder: Path) -> Path:
    """A run of which every text that anybody wrote is hostile: questions, ids, titles, passages, reasons, its name."""
    folder.mkdir(parents=True)
    qids = sorted({id_of(text) for text in XSS})
    write_records(folder / "queries.jsonl", [QueryRecord(qid=qid, text=XSS[at]) for at, qid in enumerate(qids)])
    pairs = [(qid, rank, id_of(XSS[(at + rank) % len(XSS)])) for at, qid in enumerate(qids) for rank in (1, 2, 3)]
    write_records(
        folder / "retrieve.jsonl",
        [
            RetrieveRecord(qid=qid, retriever=name, rank=rank, doc_id=doc, score=place)
            for qid in qids
            for name, sign in (("<b>one</b>", -1), ('"><script>alert(0)</script>', 1))
            for place, (_, rank, doc) in sorted((sign * each[1], each) for each in pairs if each[0] == qid)
        ],
    )
    write_records(
        folder / "merge.jsonl",
        [
            MergeRecord(
                qid=qid,
                rank=rank,
                doc_id=doc,
                score=1 / rank,
                sources={},
                title=XSS[rank],
                text=f"{XSS[at % len(XSS)]} {SECRET}",
            )
            for at, (qid, rank, doc) in enumerate(pairs)
        ],
    )
    write_records(
        folder / "judge.jsonl",
        [
            JudgeRecord(
                qid=qid,
                rank=rank,
                doc_id=doc,
                grade=(at * 7) % 5 + 1,
                reason=f"{XSS[at % len(XSS)]} {SECRET}",
                judge=XSS[2],
            )
            for at, (qid, rank, doc) in enumerate(pairs)
        ],
    )
    RunStore(folder).save(RunManifest(name=XSS[1], created=utc_now(), config={}))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile(tmp_path_factory.mktemp("hostile") / "<b>run")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    return write_report_page(ReportRequest(run, out=out))


@pytest.mark.parametrize(("wide", "scheme"), [(1400, "light"), (390, "dark")])
def test_hostile_texts_stay_texts_and_nobody_complains(browser: Any, page: Path, wide: int, scheme: str) -> None:
    window = Window(browser, page.as_uri(), viewport={"width": wide, "height": 900}, color_scheme=scheme, offline=True)
    found = window.page
    found.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert found.locator("nav a").count() >= 3
    assert found.locator("body script:not([type])").count() == 1
    assert found.locator("iframe, object, embed, img, link, base, form, math, template, body b").count() == 0
    assert found.locator("meta[http-equiv]").count() == 1
    assert found.locator("[href]:not([href^='#']), [onload], [onerror], [onfocus], [ontoggle]").count() == 0
    assert XSS[0] in found.inner_text("#systems-table")
    window.look(f"report-{wide}-{scheme}")
    assert found.evaluate("performance.getEntriesByType('resource').length") == 0, "nothing is asked of the network"
    assert window.unharmed(), window.complaints
    window.context.close()


def test_tables_sort_filter_and_follow_what_is_chosen(browser: Any, page: Path) -> None:
    window = Window(browser, page.as_uri(), offline=True)
    found = window.page
    rows = found.locator("#systems-table tbody tr:has(a)")
    assert rows.count() == len(XSS)
    found.locator("#systems-find").fill("MARQUEE")
    assert rows.count() == 2, "by id and by text"
    found.locator("#systems-find").fill("")
    head = found.locator("#systems-table th", has_text="difference")
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    changes = [
        float(text.replace("−", "-")) for text in found.locator("#systems-table td:last-child").all_inner_texts()
    ]
    assert changes == sorted(changes, reverse=True)
    found.locator("#systems-outcome").select_option("better")
    assert rows.count() == sum(change > 0 for change in changes)
    found.get_by_label("Theme").select_option("dark")
    assert found.locator("html").get_attribute("data-theme") == "dark"
    assert window.unharmed(), window.complaints
    window.context.close()


def test_the_page_rounds_a_half_as_python_does(browser: Any, page: Path) -> None:
    window = Window(browser, page.as_uri(), offline=True)
    values = [part * sign for part in (0.3125, 0.1875, 0.0625, 0.9375, 0.0005, 1 / 3, 2.5, 1.5) for sign in (1, -1)]
    for digits in (1, 2, 3):
        shown = window.page.evaluate(
            "([values, digits]) => values.map((one) => raggs.number(one, digits))", [values, digits]
        )
        assert [float(each) for each in shown] == [float(f"{value:.{digits}f}") for value in values]
    window.context.close()


def test_a_question_opens_by_its_address_with_its_passages_as_text(browser: Any, run: Path, page: Path) -> None:
    qid = next(iter(sorted({id_of(text) for text in XSS})))
    window = Window(browser, f"{page.as_uri()}#question={quote(qid)}", offline=True)
    found = window.page
    window.told("#questions-id", qid)
    found.evaluate("document.querySelectorAll('#questions-one details').forEach((each) => { each.open = true; })")
    found.wait_for_selector("#questions-one .sheet-body >> nth=2")
    shown = found.inner_text("#questions-one")
    assert XSS[0] in shown and XSS[2] in shown and SECRET in shown
    assert "<b>one</b>" in shown
    assert "Long passages are shortened" in found.inner_text("#questions")
    rows = found.locator("#questions-table tbody tr")
    assert rows.count() == len(XSS)
    found.locator("#questions-find").fill("marquee")
    assert rows.count() == 2
    rows.first.locator("a").click()
    window.told("#questions-id", rows.first.locator("a").inner_text())
    found.locator("#questions-find").fill("")
    other = found.locator("#systems-table tbody a").last
    other.click()
    window.told("#questions-id", other.inner_text())
    found.get_by_role("button", name="Back to the table").click()
    assert found.evaluate("document.activeElement.hash") == other.evaluate("link => link.hash")
    window.look("report-question")
    assert window.unharmed(), window.complaints
    window.context.close()


def test_keys_move_between_queries_and_do_nothing_in_a_field(browser: Any, page: Path) -> None:
    window = Window(browser, page.as_uri(), offline=True)
    found = window.page
    ids = found.locator("#questions-table tbody a").all_inner_texts()
    found.locator("#questions-find").focus()
    window.press("j", "k", "?")
    assert found.locator("#questions-find").input_value() == "jk?"
    found.locator("#questions-find").fill("")
    found.locator("#questions-table [role=region]").focus()
    window.press("ArrowDown", "j", "ArrowUp", "j")
    window.told("nav a[aria-current]", "Queries")
    window.press("Enter")
    window.told("#questions-id", ids[1])
    window.press("j")
    window.told("#questions-id", ids[2])
    window.press("k", "k")
    window.told("#questions-id", ids[0])
    window.press("Escape")
    assert found.evaluate("document.activeElement.textContent") == ids[0]
    for key in ("Enter", "Escape"):
        window.press("/")
        window.press("m", "a", "r", "q", key)
        assert found.evaluate("document.activeElement.hash"), "in the table"
        assert found.locator("#questions-find").input_value() == "marq"
        found.locator("#questions-find").fill("")
        found.locator("#questions-table [role=region]").focus()
    found.locator("#questions-find").fill("no such query")
    assert found.locator("#questions-table tbody").inner_text() == "No row matches the filters."
    window.press("Escape")
    window.told("#questions-count", f"{len(ids)} queries")
    found.locator("#questions-table [role=region]").focus()
    window.press("?")
    assert found.locator("#questions-help").is_visible()
    window.press("Escape")
    assert not found.locator("#questions-help").is_visible()
    assert window.unharmed(), window.complaints
    window.context.close()


def test_two_lists_are_compared_with_the_golden_order(browser: Any, page: Path) -> None:
    qid = next(iter(sorted({id_of(text) for text in XSS})))
    window = Window(browser, f"{page.as_uri()}#question={quote(qid)}", offline=True)
    found = window.page
    columns = found.locator("#questions-compare .columns > div")
    assert columns.count() == 3
    assert columns.last.inner_text().startswith("Best grades")
    names = found.locator("#questions-compare select")
    before = [names.nth(place).input_value() for place in (0, 1)]
    options = names.first.locator("option").all_inner_texts()
    other = next(name for name in options if name not in before)
    names.first.select_option(other)
    assert names.first.input_value() == other
    assert "window" in {each.lower() for each in found.locator("#questions-compare mark").all_inner_texts()}
    found.set_viewport_size({"width": 390, "height": 800})
    assert [columns.nth(place).is_visible() for place in range(3)] == [True, False, False]
    found.get_by_role("button", name="Best grades").click()
    assert [columns.nth(place).is_visible() for place in range(3)] == [False, False, True]
    window.look("report-compare")
    assert window.unharmed(), window.complaints
    window.context.close()


def test_an_unknown_query_is_named_and_a_link_opens_again(browser: Any, page: Path) -> None:
    window = Window(browser, f"{page.as_uri()}#question=un%known", offline=True)
    found = window.page
    window.told("#questions-unknown", "No query ‘un%known’ in this report.")
    assert not found.locator("#questions-one").is_visible()
    link = found.locator("#questions-table tbody a").first
    link.click()
    found.locator("#questions-one").wait_for()  # the page opens the query after the click has returned
    assert not found.locator("#questions-unknown").is_visible()
    found.evaluate("scrollTo(0, 0)")
    link.evaluate("link => link.click()")
    assert found.evaluate("scrollY") > 0, "the same link opens the query again"
    assert window.unharmed(), window.complaints
    window.context.close()


def test_a_link_is_copied_or_selected(browser: Any, page: Path) -> None:
    window = Window(browser, f"{page.as_uri()}#questions", offline=True)
    found = window.page
    found.locator("#questions-table tbody a").first.click()
    found.locator("#questions-one").wait_for()
    qid = found.inner_text("#questions-id")
    found.evaluate("void (navigator.clipboard.writeText = async (text) => { window.kept = text; })")
    found.get_by_role("button", name="Copy link").click()
    window.told("#questions-copied", "Link copied.")
    assert unquote(found.evaluate("window.kept").partition("#question=")[2]) == qid
    found.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')))")
    found.get_by_role("button", name="Copy link").click()
    window.told("#questions-copied", "Copy the selected link.")
    assert found.evaluate("getSelection().toString()") == found.evaluate("window.kept")
    window.context.close()


def test_a_hash_is_copied_whole_and_selected_without_a_clipboard(browser: Any, page: Path) -> None:
    window = Window(browser, page.as_uri(), offline=True)
    found = window.page
    whole = found.locator("#provenance [data-copy]").first.get_attribute("data-copy")
    assert whole is not None and len(whole) >= 32
    copy = found.locator("#provenance [data-copy] + .copy").first
    found.evaluate("void (navigator.clipboard.writeText = async (text) => { window.kept = text; })")
    copy.click()
    found.wait_for_function("window.kept")
    assert found.evaluate("window.kept") == whole
    found.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')))")
    copy.click()
    found.wait_for_function("getSelection().toString()")
    assert found.evaluate("getSelection().toString()") == whole
    assert window.unharmed(), window.complaints
    window.context.close()


def test_the_theme_is_remembered(browser: Any, page: Path) -> None:
    window = Window(browser, page.as_uri(), offline=True)
    window.page.get_by_label("Theme").select_option("dark")
    window.page.wait_for_timeout(500)  # Chromium writes the storage later
    window.page.reload()
    assert window.page.locator("html").get_attribute("data-theme") == "dark"
    window.page.get_by_label("Theme").select_option("")
    window.page.wait_for_timeout(500)
    window.page.reload()
    assert window.page.locator("html").get_attribute("data-theme") is None
    window.context.close()


def test_queries_are_filtered_by_their_loss(browser: Any, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=12, corpus=30, rank={"top": 3, "max_calls": 3})
    folder = run_config(load_config(project.config)).store.folder
    out = write_report_page(ReportRequest(folder, out=tmp_path / "report.html"))
    window = Window(browser, out.as_uri(), offline=True)
    found = window.page
    head = found.locator("#questions-table th").nth(1)
    assert head.inner_text().startswith("largest loss")
    found.locator("#questions-system").select_option("0")
    assert head.inner_text().startswith("loss")
    rows = found.locator("#questions-table tbody tr td:nth-child(2)")
    losses = sorted(float(text.split()[0]) for text in rows.all_inner_texts())
    limit = losses[len(losses) // 2]
    found.locator("#questions-least").fill(str(limit))
    left = [float(text.split()[0]) for text in rows.all_inner_texts()]
    assert limit > 0 and sorted(left) == [loss for loss in losses if loss >= limit]
    window.told("#questions-count", f"{len(left)} of 12 queries")
    assert window.unharmed(), window.complaints
    window.context.close()


def test_equal_scores_unknown_losses_and_passages_outside_the_pool_are_named(browser: Any, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=4, corpus=30, rank={"top": 3, "max_calls": 3})
    folder = run_config(load_config(project.config)).store.folder
    qids = [record.qid for record in read_records(folder / "queries.jsonl", QueryRecord)]
    runs = []
    for name in ("good", "strange", "odd"):
        doc = next(read_records(folder / "merge.jsonl", MergeRecord)).doc_id if name == "good" else name
        runs.append(f"{name}={tmp_path / name}.trec")
        (tmp_path / f"{name}.trec").write_text("".join(f"{qid} Q0 {doc} 1 1 s\n" for qid in qids))
    out = write_report_page(ReportRequest(folder, tuple(runs), out=tmp_path / "report.html"))
    window = Window(browser, f"{out.as_uri()}#question={quote(qids[0])}", offline=True)
    found = window.page
    assert found.locator("#questions-system option").all_inner_texts() == ["any system", "good"]
    assert "Not counted: losses of strange, odd, because their scores mean little." in found.inner_text("#questions")
    found.locator("#questions-compare .columns > div").nth(1).locator("summary").click()
    assert "not in the pool" in found.locator("#questions-compare .passage").inner_text()
    assert window.unharmed(), window.complaints
    window.context.close()


def test_queries_beyond_the_drawn_rows_are_reached_in_the_order_of_the_table(browser: Any, tmp_path: Path) -> None:
    pdfium = pytest.importorskip("pypdfium2")
    project = make_project(tmp_path, queries=45, corpus=30, rank={"top": 3, "max_calls": 3})
    folder = run_config(load_config(project.config)).store.folder
    out = write_report_page(ReportRequest(folder, out=tmp_path / "report.html"))
    window = Window(browser, out.as_uri(), offline=True, viewport={"width": 390, "height": 800})
    found = window.page
    rows = found.locator("#questions-table tbody a")
    texts = [page.get_textpage().get_text_range() for page in pdfium.PdfDocument(found.pdf(format="A4"))]
    assert "The first 40 of 45 rows are printed." in " ".join(texts)
    found.locator("#questions-table").get_by_role("button", name="best − worst").click()
    ids = rows.all_inner_texts()
    rows.first.click()
    window.told("#questions-id", ids[0])
    found.locator("#questions-next").click()
    window.told("#questions-id", ids[1])
    found.wait_for_function("document.querySelector('nav a[aria-current]')?.textContent === 'Queries'")
    box = found.locator("nav a[aria-current]").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390, "the current section is in view in the navigation"
    window.press("Escape", *["j"] * 44)
    assert rows.count() == 45
    assert found.evaluate("document.activeElement.textContent") == rows.last.inner_text()
    assert window.unharmed(), window.complaints
    window.context.close()


def test_a_query_opens_with_the_chosen_system_and_its_best_and_worst_ones_can_be_compared(
    browser: Any, tmp_path: Path
) -> None:
    project = make_project(tmp_path, queries=12, corpus=30, rank={"top": 3, "max_calls": 3})
    folder = run_config(load_config(project.config)).store.folder
    out = write_report_page(ReportRequest(folder, out=tmp_path / "report.html"))
    window = Window(browser, out.as_uri(), offline=True)
    found = window.page
    names = found.locator("#losses-system option").all_inner_texts()
    for name in names:
        found.locator("#losses-system").select_option(label=name)
        link = found.locator("#losses-table tbody a").first
        link.click()
        window.told("#questions-id", link.inner_text())
        found.wait_for_function(
            "name => document.querySelector('#questions-compare').innerText.includes(name)", arg=name
        )
        chosen = found.locator("#questions-compare select")
        assert name in [chosen.nth(place).input_value() for place in (0, 1)]
    compare = found.locator("#questions-compare p button")
    for qid in found.locator("#questions-table tbody a").all_inner_texts():
        found.evaluate("qid => { location.hash = 'question=' + qid; }", qid)
        window.told("#questions-id", qid)
        if compare.is_visible():
            break
    said, named = compare.locator("xpath=..").inner_text(), compare.inner_text()
    compare.click()
    best, worst = (chosen.nth(place).input_value() for place in (0, 1))
    assert named == f"Compare {best} and {worst}"
    highest, lowest = said.partition("Lowest: ")[::2]
    assert best in highest.partition(" (")[0] and worst in lowest.partition(" (")[0]
    assert found.locator("#questions-compare .say").inner_text().startswith(f"{best} scores ")
    assert window.unharmed(), window.complaints
    window.context.close()


def test_labels_on_another_scale_keep_their_grades(browser: Any, tmp_path: Path) -> None:
    labels = "".join(f"q{n} 0 good{n} 1\nq{n} 0 poor{n} 0\n" for n in range(3))
    (tmp_path / "labels.trec").write_text(labels)
    (tmp_path / "run.trec").write_text(
        "".join(
            f"q{n} Q0 {doc}{n} 1 {score} s\n" for n in range(3) for doc, score in (("new", 3), ("poor", 2), ("good", 1))
        )
    )
    out = write_report_page(
        ReportRequest(tmp_path / "labels.trec", (str(tmp_path / "run.trec"),), out=tmp_path / "report.html")
    )
    window = Window(browser, f"{out.as_uri()}#question=q1", offline=True)
    found = window.page
    grades = found.locator("#questions-compare .columns > div").first.locator(".sheet-grade").all_inner_texts()
    assert grades == ["·", "0", "1"]
    strip = found.locator("#questions-sheet .sheet-strip .sheet-grade")
    assert strip.evaluate_all("all => all.map((each) => each.textContent)") == ["·", "0", "1"]
    head = found.locator("#questions-table th").all_inner_texts()
    row = found.locator("#questions-table tbody tr").first.locator("td").all_inner_texts()
    assert row[head.index("relevant")] == "1"
    assert "Long passages are shortened" not in found.inner_text("#questions"), "the file has no texts"
    assert "relevant (grade 1 or more)" in found.inner_text("#golden") and "grade 2" not in found.inner_text(
        "#golden .key"
    )
    assert window.unharmed(), window.complaints
    window.context.close()


def test_a_report_without_texts_holds_no_word_of_a_passage(run: Path, page: Path, tmp_path: Path) -> None:
    silent = write_report_page(ReportRequest(run, texts=False, out=tmp_path / "silent.html"))
    assert SECRET.encode() not in silent.read_bytes()
    assert "Passage texts are omitted from this file." in silent.read_text(encoding="utf-8")


def test_a_sweep_beside_systems_is_read_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    project.sweep()
    runs = tuple(str(path) for path in sorted((project.out / "runs").glob("*k20.trec")))
    out = write_report_page(ReportRequest(tmp_path, runs, sweeps=(project.out,), out=tmp_path / "report.html"))
    window = Window(browser, out.as_uri(), viewport={"width": 390, "height": 900}, offline=True)
    window.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    labels = [each.get_attribute("aria-label") for each in window.page.locator("[role=region]").all()]
    assert len(set(labels)) == len(labels), "each region has a name of its own"
    window.look("report-sweep")
    assert window.unharmed(), window.complaints
    window.context.close()


def test_a_shadow_shows_on_which_side_a_table_goes_on(browser: Any, page: Path) -> None:
    window = Window(browser, page.as_uri(), viewport={"width": 390, "height": 900}, offline=True)
    found = window.page
    wide = found.locator(".wide:visible").all()
    box = next(each for each in wide if each.evaluate("box => box.scrollWidth - box.clientWidth") > 40)
    box.evaluate("box => { box.style.scrollBehavior = 'auto'; box.firstElementChild.style.visibility = 'hidden'; }")

    def edges() -> tuple[bytes, bytes]:
        """A strip of 4 pixels at the left and at the right, without the content."""
        place = box.bounding_box()
        clip = {"y": place["y"] + 2, "width": 4, "height": min(place["height"] - 20, 60)}
        left, right = place["x"], place["x"] + place["width"] - 4
        return found.screenshot(clip={"x": left, **clip}), found.screenshot(clip={"x": right, **clip})

    box.scroll_into_view_if_needed()
    left, right = edges()
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    left_at_end, right_at_end = edges()
    assert left != left_at_end, "what is on the left is out of sight at the end"
    assert right != right_at_end, "what is on the right is out of sight at the beginning"
    window.context.close()


def test_it_prints_two_pages_and_an_appendix(browser: Any, tmp_path: Path) -> None:
    pdfium = pytest.importorskip("pypdfium2")
    project = make_sweep(tmp_path)
    project.sweep()
    runs = tuple(str(path) for path in sorted((project.out / "runs").glob("*k20.trec")))
    out = write_report_page(ReportRequest(tmp_path, runs, sweeps=(project.out,), out=tmp_path / "report.html"))
    window = Window(browser, out.as_uri(), offline=True)
    folded = window.page.locator("details:not([open])").count()
    printed = pdfium.PdfDocument(window.page.pdf(format="A4"))
    texts = [page.get_textpage().get_text_range() for page in printed]
    assert "Keep " in texts[0] or "Replace " in texts[0] or "equivalent" in texts[0], texts[0]
    assert "Checks of the golden set" in texts[0] and "Systems" in texts[1]
    assert texts[2].startswith("Appendix"), texts[2]
    assert "Thresholds" in texts[2] or "thresholds" in texts[2]
    assert window.page.locator("details:not([open])").count() == folded, "all is put back after printing"
    assert window.page.locator("#systems #systems-table").count() == 1
    window.context.close()
