"""What holds for every analysis that is registered, and for one that comes from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.project import raggs
from support.scoring import QRELS, RUN, write
from support.studies import SYSTEMS, golden, reported, study

from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedFiles
from raggs.app.evaluate import evaluate
from raggs.base.errors import UsageError
from raggs.evaluation.analyses import DEFAULT_ANALYSES, REGISTRY, Analysis, PartAnalysis
from raggs.evaluation.analyses.corrected import PeopleCorrection
from raggs.evaluation.analyses.unjudged import LabelUncertaintyAnalysis
from raggs.evaluation.gates import read_report
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import EvalReport, ReportPart


@pytest.mark.parametrize("name", REGISTRY.builtin)
def test_an_analysis_is_known_by_its_name_alone(name):
    analysis = REGISTRY.load(name)()
    assert isinstance(analysis, Analysis)
    assert REGISTRY.summary(name).endswith(".")
    if isinstance(analysis, PartAnalysis):
        assert name == analysis.NAME
        assert issubclass(analysis.PART, ReportPart)


@pytest.mark.parametrize("name", REGISTRY.builtin)
def test_what_it_finds_is_read_back_from_the_report_and_drawn_as_it_was(name):
    analysis = REGISTRY.load(name)()
    if not isinstance(analysis, LabelUncertaintyAnalysis | PeopleCorrection):  # they need what these labels have not
        analysis.check(golden(), [system.name for system in SYSTEMS])
    before = reported()
    report = analysis.extend(before, study())
    read = EvalReport.model_validate_json(report.model_dump_json())
    assert read == report
    assert analysis.section(read) == analysis.section(report)
    assert report.per_query == before.per_query
    if section := analysis.section(report):
        assert section.table is None or all(len(row) == len(section.table.head) for row in section.table.rows)


@pytest.mark.parametrize("name", REGISTRY.builtin)
def test_a_report_without_it_says_nothing_of_it(name):
    analysis = REGISTRY.load(name)()
    assert analysis.section(reported()) is None
    assert analysis.legend(reported()) is None


def test_usual_ones_are_registered_and_all_are_described():
    assert set(DEFAULT_ANALYSES) < set(REGISTRY.builtin)
    table = (Path(__file__).parents[3] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in REGISTRY.builtin if f"| `{name}` |" not in table] == []


LENGTHS = '''
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis
from typing import Annotated
from raggs.base.document import Column
from raggs.evaluation.models import ReportPart


class LengthPart(ReportPart):
    passages: Annotated[int, Column("passages")]


class Lengths(PartAnalysis[LengthPart]):
    """How many passages each system returns."""

    NAME = "lengths"
    TITLE = "How much they return"
    COLUMNS = ("system", "passages")
    PART = LengthPart

    def compute(self, study):
        return [AnalysisFinding(name, LengthPart(passages=int(hits.length.sum()))) for name, hits in study.hits.items()]

    def sentences(self, found):
        return [f"{system} returns {part.passages} passages" for system, part in found]
'''


def test_a_new_one_is_a_file_and_a_line(tmp_path):
    package = tmp_path / "lengths-1.0.dist-info"
    package.mkdir()
    write(package, METADATA="Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n")
    write(package, entry_points__txt="[raggs.analyses]\nlengths = lengths:Lengths\n")
    write(tmp_path, lengths__py=LENGTHS, qrels=QRELS, a=RUN)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    arguments = ("eval", "-g", "qrels", "-r", "a", "-m", "mrr", "--analyses", "lengths", "--out", "out")
    done = raggs(*arguments, cwd=tmp_path, env={"PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\na returns 9 passages\n" in done.stdout
    page = (tmp_path / "out" / "eval.md").read_text()
    assert "## How much they return\n\na returns 9 passages\n\n| system | passages |\n|---|---|\n| a | 9 |\n" in page
    read = read_report(tmp_path / "out" / "eval.json")
    assert read.analyses["lengths"][0].part == {"passages": 9}
    with pytest.raises(UsageError, match="unknown analysis 'lengths'"):  # here it is not installed
        lay_out(read)


def test_an_unknown_one_is_refused_with_those_that_are_known(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 doc-3 5\n")
    (tmp_path / "run").write_text("q1 Q0 doc-3 1 4.0 a\n")
    files = JudgedFiles(tmp_path / "qrels", (str(tmp_path / "run"),))
    with pytest.raises(UsageError, match=r"unknown analysis 'bound'.*did you mean 'bounds'"):
        evaluate(EvalRequest(files, analyses=AnalysisRequest(frozenset({"bound"}))))
