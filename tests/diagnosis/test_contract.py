"""What holds for every kind of diagnosis, whoever wrote it.

Beside its own tests, ``tests/diagnosis/test_<kind>.py`` has a ``contract_case(folder, request)``: what the smallest
request says of it, seconds long, without a key: ``{"settings": {"runs": 2}, "golden": folder / "qrels.txt", ...}``, the
fields of `DiagnoseRequest` but for its kind and place.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.contracts import settings_of
from support.diagnosing import NAME, TARGET
from support.llm_server import KEY, LLMServer

from raggs.app.diagnose import (
    DiagnoseRequest,
    DiagnosisForecast,
    DiagnosisResult,
    forecast_diagnosis,
    opened_inputs,
    run_diagnosis,
)
from raggs.base.cache import Cache
from raggs.base.errors import DataError, UsageError
from raggs.base.text import plural
from raggs.cli.documents import show_summary
from raggs.cli.screen import Screen
from raggs.diagnosis import REGISTRY, base
from raggs.diagnosis.base import Diagnosis, DiagnosisFindings, found_in, lay_out, plots
from raggs.diagnosis.models import DiagnosisReport
from raggs.diagnosis.store import read_report
from raggs.runs.events import ignore_event

KINDS = [*REGISTRY, NAME]
FOUR_LINES = 4 * 80
PAID = {"embedder": "litellm:openai/text-embedding-3-small:dims=8", "reranker": "listwise:openai/gpt-5-mini"}
PARTS = ("run", "golden", "corpus", "embedder", "reranker")


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGISTRY._entries, NAME, TARGET)
        yield


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Diagnosis[DiagnosisFindings]]:
    return REGISTRY.load(request.param)


@pytest.fixture(scope="module")
def case(
    kind: type[Diagnosis[DiagnosisFindings]], tmp_path_factory: pytest.TempPathFactory, request: Any
) -> dict[str, Any]:
    name = kind.Config.model_fields["type"].default
    return {"kind": name, **settings_of("diagnosis", name, tmp_path_factory.mktemp(name), request)}


@pytest.fixture(scope="module")
def found(case: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> DiagnosisResult:
    """What the kind finds, measured once."""
    return run_diagnosis(DiagnoseRequest(**case, out=tmp_path_factory.mktemp("found")))


def test_it_says_what_it_asks_and_has_a_default_for_everything(kind: type[Diagnosis[DiagnosisFindings]]) -> None:
    assert kind.TITLE.endswith("?")
    assert "\n" not in kind.TITLE
    assert len(kind.TITLE) <= 100
    assert {*kind.NEEDS, *kind.TAKES} <= set(PARTS)
    assert not set(kind.NEEDS) & set(kind.TAKES)
    fields = {name: field for name, field in kind.Config.model_fields.items() if name != "type"}
    assert not [name for name, field in fields.items() if field.is_required()]
    assert not [name for name, field in fields.items() if not field.description]
    assert issubclass(kind.Result, DiagnosisFindings)
    assert not [name for name, field in kind.Result.model_fields.items() if name[0] == "_"]


def test_a_dry_run_writes_nothing_and_asks_nobody(case: dict[str, Any], tmp_path: Path) -> None:
    request = DiagnoseRequest(**case, out=tmp_path / "out")
    expected = forecast_diagnosis(request)
    assert isinstance(expected, DiagnosisForecast)
    assert not (tmp_path / "out").exists()
    assert all(line.usd == 0 or line.calls for line in expected.estimates)


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("part", PAID)
def test_a_paid_part_is_priced_and_not_asked(
    kind: type[Diagnosis[DiagnosisFindings]],
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    if part not in (*kind.NEEDS, *kind.TAKES):
        pytest.skip("does not look at it")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        request = DiagnoseRequest(**{**case, f"{part}s": [PAID[part]], "out": tmp_path / "out"})
        with opened_inputs(request, ignore_event) as bench:
            pays = request.diagnosis.models(bench)
        expected = forecast_diagnosis(request)
        assert not server.requests
    if not pays:
        pytest.skip("this case has vectors or scores already")
    assert sum(line.usd or 0 for line in expected.estimates) > 0
    assert not list(tmp_path.glob("out/*.json"))


def test_its_summary_fits_a_screen(found: DiagnosisResult) -> None:
    """At most 25 lines of 80 columns, and 200 words."""
    screen = Screen(width=80)
    with screen.capture() as printed:
        show_summary(found.summary, screen)
    lines = printed.get().splitlines()
    assert len(lines) <= 25
    assert max(map(len, (line for line in lines if "/" not in line))) <= 80
    assert len(printed.get().split()) <= 200


def test_its_verdict_is_at_most_two_sentences_and_its_figures_are_json(found: DiagnosisResult) -> None:
    assert found.verdict.endswith(".")
    assert len(re.findall(r"\.(?= [A-Z]|$)", found.verdict)) <= 2
    assert len(found.verdict) <= FOUR_LINES
    assert "\n" not in found.verdict
    text = found.files[0].read_text(encoding="utf-8")
    assert DiagnosisReport.model_validate(json.loads(text, parse_constant=pytest.fail)) == found.report
    assert found.verdict in (found.folder / f"{found.report.kind}.md").read_text(encoding="utf-8")


def test_its_key_figure_lies_within_its_interval(found: DiagnosisResult) -> None:
    """A card of the report shows it. A kind may have none, and the contract cases of depth and noise have one."""
    figure = base.kind_of(found.report.kind).key_figure(found.found)
    assert figure is not None or found.report.kind not in ("depth", "noise", "retrieval")
    if figure is not None and figure.interval:
        low, high = (float(each.rstrip("%")) for each in figure.interval.strip("[]").split(", "))
        assert low <= float(figure.value.removesuffix(" points").rstrip("%")) <= high
        assert "%" not in figure.value or figure.interval.count("%") == 2


def test_a_claim_that_rests_on_few_is_called_a_hint_in_the_same_words(
    kind: type[Diagnosis[DiagnosisFindings]],
    case: dict[str, Any],
    found: DiagnosisResult,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diagnosis = DiagnoseRequest(**case, out=found.folder).diagnosis
    count = diagnosis.rests_on(found.found)
    assert found.verdict.startswith("Preliminary (") == (0 < count < base.MIN_CLAIM_QUERIES)
    bare = found.found.model_copy(update={"verdict": "So it is."})
    monkeypatch.setattr(base, "MIN_CLAIM_QUERIES", count + 1)
    action = diagnosis.action(bare)
    said = f"So it is. {action.sentence}" if action else "So it is."
    told = f"Preliminary ({plural(count, kind.OVER)}, at least {count + 1} needed): {said}"
    assert base.complete_verdict(diagnosis, bare).verdict == told
    monkeypatch.setattr(base, "MIN_CLAIM_QUERIES", count)
    assert base.complete_verdict(diagnosis, bare) == bare.model_copy(update={"verdict": said})


def test_what_is_drawn_is_drawn_of_the_file_alone(found: DiagnosisResult) -> None:
    read = DiagnosisReport.model_validate_json(found.files[0].read_bytes())
    assert found_in(read) == found.found
    assert lay_out(read) == found.document
    assert found.document.sections, "tables or sentences beside the verdict"
    for section in found.document.sections:
        if section.table is not None:
            assert all(len(row) == len(section.table.head) for row in section.table.rows), section.title
    drawn = plots(read)
    assert {name: (found.folder / name).read_text(encoding="utf-8") for name in drawn} == drawn
    assert all(name.startswith(f"{read.kind}-") for name in drawn)
    assert not [name for name, svg in drawn.items() if "<script" in svg or "nan" in svg.split("</style>", 1)[1]]


def test_a_second_run_reads(case: dict[str, Any], found: DiagnosisResult) -> None:
    again = run_diagnosis(DiagnoseRequest(**case, out=found.folder))
    assert again.unchanged
    assert again.report == found.report


def test_a_report_that_was_edited_is_told_and_measured_again(
    case: dict[str, Any], found: DiagnosisResult, tmp_path: Path
) -> None:
    folder = shutil.copytree(found.folder, tmp_path / "copy")
    path = folder / f"{found.report.kind}.json"
    edited = json.loads(path.read_text(encoding="utf-8"))
    edited["found"]["verdict"] = "All is well."
    path.write_text(json.dumps(edited), encoding="utf-8")
    with pytest.raises(DataError, match="its seal does not match"):
        read_report(path)
    said: list[str] = []
    request = DiagnoseRequest(**case, out=folder)
    again = run_diagnosis(request, lambda news: said.append(str(getattr(news, "message", ""))))
    assert not again.unchanged
    assert again.report.found["verdict"] == found.verdict
    assert [line for line in said if "its seal does not match" in line and "runs again" in line]


def test_who_stops_it_after_a_part_goes_on_and_gets_the_same_bytes(
    case: dict[str, Any], found: DiagnosisResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parts are kept somewhere else than those of `found`, so all of them are made."""
    monkeypatch.setattr(DiagnoseRequest, "workspace", tmp_path / "workspace")
    keep = Cache.keep

    def stops(self: Cache, causes: object, rows: Any) -> None:
        keep(self, causes, rows)
        raise KeyboardInterrupt

    request = DiagnoseRequest(**case, out=tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(Cache, "keep", stops)
        try:
            run_diagnosis(request)
        except KeyboardInterrupt:
            pass
        else:
            assert request.diagnosis.TIME == "seconds", "it keeps no part by bench.kept: a kill costs everything"
            return
    assert not request.folder.joinpath(f"{request.kind}.json").exists()
    resumed = run_diagnosis(DiagnoseRequest(**case, out=tmp_path / "out"))
    assert [path.read_bytes() for path in resumed.files] == [path.read_bytes() for path in found.files]


def test_a_setting_that_does_not_fit_is_a_sentence(
    kind: type[Diagnosis[DiagnosisFindings]], case: dict[str, Any]
) -> None:
    wrong = {name: {"no": "value"} for name in kind.Config.model_fields if name != "type"} | {"strange": 1}
    for name, value in wrong.items():
        with pytest.raises(UsageError) as caught:
            _ = DiagnoseRequest(**{**case, "settings": {**case.get("settings", {}), name: value}}).diagnosis
        assert "\n" not in str(caught.value)
        assert name in caught.value.message
