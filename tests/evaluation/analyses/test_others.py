"""Robustness, sensitivity, bounds, answers, doubt: what each leaves in the report and says of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.studies import SYSTEMS, elsewhere, golden, reported, scoring

from raggs.errors import DataError, UsageError
from raggs.evaluation.analyses.answers import Answers
from raggs.evaluation.analyses.bounds import HoleBounds
from raggs.evaluation.analyses.robustness import Robustness
from raggs.evaluation.analyses.sensitivity import Sensitivity
from raggs.evaluation.analyses.uncertainty import LabelDoubt
from raggs.evaluation.report import make_report
from raggs.metrics.uncertainty import Doubt


def test_robustness_is_told_for_each_system_and_cutoff():
    report = make_report(golden(), SYSTEMS, scoring(cutoffs=(1, 2)), [Robustness()])
    assert [part.measure for system in report.systems for part in system.robustness] == ["recall@1", "recall@2"] * 2
    poor = report.systems[1].robustness[1]
    assert (poor.mean, poor.zero) == (pytest.approx(0.5 / 3), pytest.approx(2 / 3))
    section = Robustness().section(report)
    assert section.sentences[3].startswith("poor: recall@2 mean 0.1667, none at all 67%; at least 0.1:33%  0.2:33%")
    assert [cell.text for cell in section.table.rows[3]][:5] == ["poor", "recall@2", "0.1667", "0.6667", "0.3333"]


def test_sensitivity_lists_the_points_where_the_order_changes():
    report = reported(Sensitivity())
    assert len(report.sensitivity) == 24
    assert Sensitivity().section(report).sentences == (
        "RA-nWG's parameters: the order of the systems changes at 0 of 24 points of the grid",
    )
    assert Sensitivity().section(report).table is None
    moved = report.sensitivity[3].model_copy(update={"swapped": (("good", "poor"),), "order": ("poor", "good")})
    section = Sensitivity().section(report.model_copy(update={"sensitivity": (*report.sensitivity[:3], moved)}))
    assert section.sentences[0].endswith("changes at 1 of 4 points of the grid")
    assert [cell.text for cell in section.table.rows[0]] == ["0", "1", "0.2", "poor > good"]
    assert elsewhere(Sensitivity()).sensitivity == ()


def test_bounds_enclose_the_mean_and_are_explained():
    report = reported(HoleBounds())
    good, poor = (system.scores["recall@2"] for system in report.systems)
    assert (good.lowest, good.highest) == (1.0, 1.0)
    assert poor.lowest == poor.mean < poor.highest
    assert HoleBounds().legend(report).line == "{ } with every unjudged passage at the lowest and the highest grade"


def test_answers_count_where_the_evidence_was_shown():
    correct = {"query-a": True, "query-b": False, "query-c": True, "query-x": True}
    report = reported(Answers(correct))
    good, poor = (system.answers for system in report.systems)
    assert (good.measure, good.hits, good.correct, good.queries) == ("hit_all@2", 3, 2, 3)
    assert (poor.hits, poor.accuracy) == (0, None)
    section = Answers().section(report)
    assert len(section.table.rows) == 2
    (sentence,) = section.sentences
    assert sentence.startswith("good: Acc|hit_all@2 0.6667 [")
    assert sentence.endswith("2 of 3 queries with all evidence")
    assert elsewhere(Answers(correct)).systems[0].answers.measure == "hit@2"
    with pytest.raises(DataError, match="no judged query has a known answer"):
        reported(Answers({"query-x": True}))


def test_doubt_widens_intervals_and_says_so():
    known = golden()
    doubt = Doubt(np.full(5, 2.0), ((),) * 5)
    half = replace(scoring(), confidence=0.5)
    plain = make_report(known, SYSTEMS, half)
    wide = make_report(replace(known, doubt=doubt), SYSTEMS, half, [LabelDoubt()])
    assert (plain.label_uncertainty, wide.label_uncertainty) == (False, True)
    pairs = [
        (score, after.scores[name])
        for before, after in zip(plain.systems, wide.systems, strict=True)
        for name, score in before.scores.items()
    ]
    for score, other in pairs:
        assert other.mean == score.mean
        assert other.low <= score.low <= score.high <= other.high
    assert any(other.high > score.high for score, other in pairs)
    with pytest.raises(UsageError, match="qrels says nothing of the doubt"):
        reported(LabelDoubt())
