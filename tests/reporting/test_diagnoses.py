"""The section of diagnoses: verdicts first, and a sentence on every file that is none of this set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.browsing import XSS, Window, chromium
from support.cli import invoke
from support.diagnosing import NAME, TARGET, Tiny
from support.sweeping import SweepProject, make_sweep

import raggs
from raggs.app.report import ReportRequest, gather, report, write_report_page
from raggs.base.errors import NotFoundError
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.models import NextAction
from raggs.diagnosis.store import DiagnosisStore
from raggs.reporting.sections.results import DiagnosesSection
from raggs.stats.resampling import MIN_CLAIM_QUERIES


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGISTRY._entries, NAME, TARGET)
        yield


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SweepProject:
    """A golden set, and in ``d`` a diagnosis of it."""
    made = make_sweep(tmp_path_factory.mktemp("diagnosed"))
    raggs.diagnose(NAME, golden=made.folder, out=made.folder / "d", embedders=["wordllama,wordllama:64"])
    return made


def test_a_diagnosis_of_the_set_is_there_with_its_verdict_table_and_plot(project: SweepProject) -> None:
    part = DiagnosesSection().data(gather(ReportRequest(project.folder, diagnoses=project.folder / "d")))
    assert part is not None
    (found,) = part.diagnoses
    assert (found.kind, found.verdict, found.word, part.said) == (NAME, "Vectors add up.", "measured", ())
    assert found.document.sections[0].table is not None
    assert [figure.words for figure in found.figures] == ["sums"]
    page = report(ReportRequest(project.folder, diagnoses=project.folder / "d"))
    assert "1 diagnosis: 1 measured." in page
    assert page.index("Vectors add up.") < page.index("Details of tiny"), "the verdict is not folded"
    assert "--diagnose" in page, "the command that makes it again"


def test_without_diagnoses_there_is_no_section(project: SweepProject) -> None:
    assert DiagnosesSection().data(gather(ReportRequest(project.folder))) is None
    with pytest.raises(NotFoundError, match="no folder with diagnoses found"):
        report(ReportRequest(project.folder, diagnoses=project.folder / "none"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"golden": "0" * 64}, "a diagnosis of another golden set"),
        ({"found": {"verdict": "Well."}}, "the findings of tiny have another format"),
        ({"kind": "gone"}, "unknown diagnosis 'gone'"),
    ],
)
@pytest.mark.parametrize("sealed", [True, False])
def test_an_edited_file_is_a_sentence(
    project: SweepProject, tmp_path: Path, changed: dict[str, object], said: str, sealed: bool
) -> None:
    """A file that was sealed again after the edit is refused for its contents, any other for its seal."""
    edited = DiagnosisStore(project.folder / "d", NAME).report().model_copy(update=changed)
    (tmp_path / "tiny.json").write_text((edited.sealed() if sealed else edited).model_dump_json())
    part = DiagnosesSection().data(gather(ReportRequest(project.folder, diagnoses=tmp_path)))
    assert part is not None
    assert not part.diagnoses
    assert len(part.said) == 1 and (said if sealed else "its seal does not match") in part.said[0]


def test_a_second_diagnosis_of_the_same_kind_is_a_sentence(project: SweepProject, tmp_path: Path) -> None:
    found = DiagnosisStore(project.folder / "d", NAME).report()
    (tmp_path / "tiny.json").write_text(found.model_dump_json())
    (tmp_path / "old.json").write_text(found.model_copy(update={"seed": 7}).sealed().model_dump_json())
    part = DiagnosesSection().data(gather(ReportRequest(project.folder, diagnoses=tmp_path)))
    assert part is not None
    assert [each.kind for each in part.diagnoses] == [NAME]
    (said,) = part.said
    assert "old.json: another diagnosis of tiny, which is not used" in said


@pytest.mark.parametrize("changed", [{"v": 0}, None])
def test_an_old_or_foreign_file_is_a_sentence(
    project: SweepProject, tmp_path: Path, changed: dict[str, object] | None
) -> None:
    said = "not a diagnosis of this version's format"
    written = json.loads((project.folder / "d" / "tiny.json").read_text())
    (tmp_path / "tiny.json").write_text("[1" if changed is None else json.dumps({**written, **changed}))
    part = DiagnosesSection().data(gather(ReportRequest(project.folder, diagnoses=tmp_path)))
    assert part is not None
    assert not part.diagnoses
    assert len(part.said) == 1 and said in part.said[0]


def test_tables_that_show_passages_stay_out_of_a_report_without_texts(
    project: SweepProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tiny, "PASSAGES", True)
    facts = gather(ReportRequest(project.folder, diagnoses=project.folder / "d", texts=False))
    part = DiagnosesSection().data(facts)
    assert part is not None and not part.diagnoses
    assert part.said == ("tiny: omitted, because it shows passages",)
    assert DiagnosesSection().data(replace(facts, texts=True)).diagnoses  # type: ignore[union-attr]


AGAIN = NextAction(text="use another", kind="noise", options="--rewriter mine")


@pytest.mark.parametrize(
    ("advice", "sentence", "action", "command"),
    [
        (NextAction(text="use less", tentative=True), " First try: use less.", "Use less.", ""),
        (AGAIN, " First use another: raggs diagnose noise --rewriter mine.", "Use another.", AGAIN.command_for("")),
        (NextAction(text="read it", in_details=True), " First read it (--details).", "Read it (in the details).", ""),
        (None, "", "", ""),
    ],
)
def test_a_card_has_the_finding_the_action_and_its_command(
    project: SweepProject,
    monkeypatch: pytest.MonkeyPatch,
    advice: NextAction | None,
    sentence: str,
    action: str,
    command: str,
) -> None:
    monkeypatch.setattr(Tiny, "action", lambda *_: advice)
    facts = gather(ReportRequest(project.folder, diagnoses=project.folder / "d"))
    (report,) = facts.diagnoses
    found = report.model_copy(update={"found": {**report.found, "verdict": f"It is slow.{sentence}"}})
    part = DiagnosesSection().data(replace(facts, diagnoses=(found,)))
    assert part is not None
    (card,) = part.diagnoses
    assert (card.verdict, card.action) == ("It is slow.", action)
    assert card.command == command, "labels in a file are no run to diagnose"
    assert AGAIN.command_for("my run") == "raggs diagnose noise --golden 'my run' --rewriter mine"


@pytest.mark.parametrize(
    ("passed", "few", "word"),
    [(True, 0, "pass"), (False, 0, "fail"), (None, 0, "measured"), (None, 1, "inconclusive"), (False, 1, "fail")],
)
def test_a_card_has_an_outcome(
    project: SweepProject, monkeypatch: pytest.MonkeyPatch, passed: bool | None, few: int, word: str
) -> None:
    """With fewer queries than a claim needs, a measurement without a limit is inconclusive."""
    monkeypatch.setattr(Tiny, "rests_on", lambda *_: MIN_CLAIM_QUERIES - few)
    facts = gather(ReportRequest(project.folder, diagnoses=project.folder / "d"))
    (report,) = facts.diagnoses
    found = report.model_copy(update={"found": {**report.found, "passed": passed}})
    part = DiagnosesSection().data(replace(facts, diagnoses=(found,)))
    assert part is not None
    assert [card.word for card in part.diagnoses] == [word]


@pytest.mark.parametrize(("wide", "scheme"), [(1400, "light"), (390, "dark")])
def test_hostile_findings_stay_texts(project: SweepProject, tmp_path: Path, wide: int, scheme: str) -> None:
    """Verdict, names and texts as an attacker would write them into the file."""
    store = DiagnosisStore(project.folder / "d", NAME)
    rows = [{"text": text, "total": 0.5} for text in XSS]
    found = {"verdict": " ".join(XSS), "passed": False, "rows": dict.fromkeys(XSS[:2], rows)}
    hostile = store.report().model_copy(update={"found": found, "title": XSS[0], "subject": {XSS[1]: (XSS[2],)}})
    DiagnosisStore(tmp_path / "d", NAME).keep(hostile)
    out = write_report_page(ReportRequest(project.folder, diagnoses=tmp_path / "d", out=tmp_path / "report.html"))
    with chromium() as browser:
        size = {"width": wide, "height": 900}
        window = Window(browser, out.as_uri(), viewport=size, color_scheme=scheme, offline=True)
        page = window.page
        page.locator("#diagnoses summary").first.click()
        assert page.locator("#diagnoses details[open]").count() == 1
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.locator("#diagnoses script, #diagnoses img, #diagnoses iframe, #diagnoses b").count() == 0
        assert XSS[0] in page.inner_text("#diagnoses")
        assert page.inner_text("#diagnoses .card h3 .chip") == "fail"
        window.look(f"diagnoses-{wide}-{scheme}")
        assert window.unharmed(), window.complaints
        window.context.close()


def test_the_command_line_names_the_folder(project: SweepProject, tmp_path: Path) -> None:
    words = ["report", str(project.folder), "--diagnose", str(project.folder / "d"), "--out", str(tmp_path / "r.html")]
    assert invoke(*words).exit_code == 0
    assert "Vectors add up." in (tmp_path / "r.html").read_text()
