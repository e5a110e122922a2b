"""What holds for every analysis that is registered, and for one that comes from outside."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.studies import SYSTEMS, golden, reported, study

from raggs.app.evaluate import AnalysisRequest, EvalRequest, JudgedFiles, MeasureRequest, evaluate
from raggs.errors import UsageError
from raggs.evaluation.analyses import BUILT_IN, REGISTRY, USUAL
from raggs.evaluation.analyses.base import Analysis, Finding, PartAnalysis
from raggs.evaluation.analyses.uncertainty import LabelDoubt
from raggs.evaluation.document import Cell, Row
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import Part, Report
from raggs.evaluation.study import Study
from raggs.evaluation.writers import markdown


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_analysis_is_known_by_its_name_alone(name):
    analysis = REGISTRY.load(name)()
    assert isinstance(analysis, Analysis)
    assert REGISTRY.summary(name).endswith(".")
    if isinstance(analysis, PartAnalysis):
        assert name == analysis.NAME
        assert issubclass(analysis.PART, Part)


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_it_finds_is_read_back_from_the_report_and_drawn_as_it_was(name):
    analysis = REGISTRY.load(name)()
    if not isinstance(analysis, LabelDoubt):
        analysis.check(golden(), [system.name for system in SYSTEMS])
    before = reported()
    report = analysis.extend(before, study())
    read = Report.model_validate_json(report.model_dump_json())
    assert read == report
    assert analysis.section(read) == analysis.section(report)
    assert report.per_query == before.per_query
    if section := analysis.section(report):
        assert section.table is None or all(len(row) == len(section.table.head) for row in section.table.rows)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_report_without_it_says_nothing_of_it(name):
    analysis = REGISTRY.load(name)()
    assert analysis.section(reported()) is None
    assert analysis.legend(reported()) is None


def test_usual_ones_are_registered():
    assert set(USUAL) < set(BUILT_IN)


class LengthPart(Part):
    """How much a system returned."""

    passages: int


class Lengths(PartAnalysis[LengthPart]):
    """How many passages each system returns."""

    NAME = "lengths"
    TITLE = "How much they return"
    HEAD = ("system", "passages")
    PART = LengthPart

    def compute(self, study: Study) -> Sequence[Finding[LengthPart]]:
        return [Finding(name, LengthPart(passages=int(hits.length.sum()))) for name, hits in study.hits.items()]

    def rows(self, found: Sequence[Finding[LengthPart]]) -> Sequence[Row]:
        return [(Cell(system), Cell(part.passages)) for system, part in found]

    def sentences(self, found: Sequence[Finding[LengthPart]]) -> Sequence[str]:
        return [f"{system} returns {part.passages} passages" for system, part in found]


@pytest.fixture
def lengths(monkeypatch):
    """One file (this one) and one line."""
    monkeypatch.setitem(REGISTRY._entries, "lengths", f"{__name__}:Lengths")


def test_a_new_one_is_a_file_and_a_line(lengths, tmp_path):
    (tmp_path / "qrels").write_text("q1 0 doc-3 5\nq1 0 doc-9 4\n")
    (tmp_path / "run").write_text("q1 Q0 doc-3 1 4.0 a\nq1 Q0 doc-1 2 3.0 a\n")
    asked = AnalysisRequest(frozenset({"lengths"}))
    files = JudgedFiles(tmp_path / "qrels", (str(tmp_path / "run"),))
    report = evaluate(EvalRequest(files, MeasureRequest(("mrr",)), analyses=asked)).report
    read = Report.model_validate_json(report.model_dump_json())
    assert read.analyses["lengths"][0].part == {"passages": 2}
    page = markdown(lay_out(read))
    assert (
        "## How much they return\n\nrun returns 2 passages\n\n| system | passages |\n|---|---|\n| run | 2 |\n" in page
    )


def test_an_unknown_one_is_refused_with_those_that_are_known(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 doc-3 5\n")
    (tmp_path / "run").write_text("q1 Q0 doc-3 1 4.0 a\n")
    files = JudgedFiles(tmp_path / "qrels", (str(tmp_path / "run"),))
    with pytest.raises(UsageError, match=r"unknown analysis 'bound'.*did you mean 'bounds'.*known: answers"):
        evaluate(EvalRequest(files, analyses=AnalysisRequest(frozenset({"bound"}))))
