from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.document import markdown
from raggs.base.errors import DataError, UsageError
from raggs.evaluation.analyses.answers import GivenAnswers
from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.evaluation.analyses.robustness import RobustnessAnalysis, Sensitivity
from raggs.evaluation.analyses.ties import TieRanges
from raggs.evaluation.analyses.unjudged import UnjudgedBoundsAnalysis
from raggs.evaluation.layout import lay_out, per_query_csv, write_report
from raggs.evaluation.models import EvalReport
from raggs.evaluation.report import make_report
from raggs.evaluation.study import ScoringSettings
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.names import parse_measures
from raggs.stats.intervals import bootstrap_mean

DOCS = [f"doc-{number}" for number in range(6)]
QIDS = ["query-a", "query-b", "query-c"]
LABELS = st.fixed_dictionaries(
    {qid: st.dictionaries(st.sampled_from(DOCS), st.integers(1, 5), min_size=1) for qid in QIDS}
)
LISTS = st.dictionaries(
    st.sampled_from([*QIDS, "query-x"]), st.dictionaries(st.sampled_from(DOCS), st.sampled_from([1.0, 2.0, 3.0]))
).filter(lambda lists: lists.keys() & set(QIDS))
MEASURES = parse_measures(["ndcg@3", "n_recall5@3", "mrr", "harm@2", "bias[map]", "holes@3"])


def made(labels, systems, *analyses, **options):
    golden = Judgments("a|b", Qrels.of(labels, GradeScale.of(1, 5)))
    listed = [NamedSystem(name, "file", Run.of(lists)) for name, lists in systems.items()]
    return make_report(golden, listed, ScoringSettings(MEASURES, **options), analyses)


@given(LABELS, LISTS, LISTS)
def test_a_report_of_anything_is_json_and_back_and_can_be_written_down(labels, one, other):
    systems = {"one": one, "other|": other}
    asked = (
        Comparisons("one"),
        BottleneckAnalysis(),
        TieRanges(),
        RobustnessAnalysis(),
        Sensitivity(),
        UnjudgedBoundsAnalysis(),
    )
    report = made(labels, systems, *asked, cutoffs=(2, 3))
    assert EvalReport.model_validate_json(report.model_dump_json()) == report
    page, table = markdown(lay_out(report)), per_query_csv(report)
    assert "a|b" in page
    assert "other\\|" in page
    assert table.splitlines()[0] == "system,qid," + ",".join(report.measures).replace("bias[map]", "bias[map]")
    for system in report.systems:
        for measure, score in system.scores.items():
            values = report.per_query[system.name][measure].values()
            assert score.valid == len(values)
            assert (score.mean is None) is (not values)
            if values:
                assert score.mean == pytest.approx(np.mean(list(values)))


def test_the_interval_is_the_bootstrap_of_the_values_shown():
    labels = {f"query-{n:02}": {"doc-1": 5, "doc-2": 1} for n in range(10)}
    lists = {qid: ["doc-1"] if n % 3 else ["doc-2", "doc-1"] for n, qid in enumerate(labels)}
    report = made(labels, {"one": lists}, confidence=0.8, seed=5)
    score = report.systems[0].scores["mrr"]
    values = list(report.per_query["one"]["mrr"].values())
    expected = bootstrap_mean(values, confidence=0.8, seed=5)
    assert (score.low, score.high) == (expected.low, expected.high)


def test_values_that_are_not_defined_are_left_out_and_counted():
    labels = {"query-a": {"doc-1": 5}, "query-b": {"doc-1": 3}}
    report = made(labels, {"one": {"query-a": ["doc-1"], "query-b": ["doc-1"]}})
    score = report.systems[0].scores["n_recall5@3"]
    assert (score.mean, score.valid) == (1.0, 1)
    assert report.per_query["one"]["n_recall5@3"] == {"query-a": 1.0}
    assert "| n_recall5@3 | 1.0000 | 1 of 2 |" in markdown(lay_out(report))
    assert per_query_csv(report).splitlines()[2].split(",")[3] == ""


def test_no_query_in_common_shows_examples_of_both():
    with pytest.raises(DataError, match=r"it has x1, x2, x3, …, expected query-a — "):
        made({"query-a": {"doc-1": 5}}, {"one": {f"x{n}": ["doc-1"] for n in range(1, 5)}})


def test_an_unknown_baseline_is_refused():
    with pytest.raises(UsageError, match="known: one"):
        made({"query-a": {"doc-1": 5}}, {"one": {"query-a": ["doc-1"]}}, Comparisons("two"))


def test_answers_use_the_confidence_asked_for():
    labels = {f"query-{n}": {"doc-1": 5} for n in range(6)}
    lists = {qid: ["doc-1"] for qid in labels}
    correct = {qid: n < 4 for n, qid in enumerate(labels)}
    wide, narrow = (
        made(labels, {"one": lists}, GivenAnswers(correct), confidence=level).systems[0].answers
        for level in (0.99, 0.5)
    )
    assert wide.accuracy == narrow.accuracy == pytest.approx(4 / 6)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_files_appear_whole_and_in_a_folder_that_is_made(tmp_path):
    report = made({"query-a": {"doc-1": 5}}, {"one": {"query-a": ["doc-1"]}})
    paths = write_report(report, tmp_path / "x" / "y")
    assert [path.name for path in paths] == ["eval.json", "eval.csv", "eval.md"]
    assert sorted(path.name for path in (tmp_path / "x" / "y").iterdir()) == sorted(path.name for path in paths)
    assert not any(math.isnan(value) for value in report.per_query["one"]["mrr"].values())
