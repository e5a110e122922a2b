from __future__ import annotations

import pytest
from support.studies import SYSTEMS, golden, scoring

from raggs.evaluation.analyses.robustness import RobustnessAnalysis
from raggs.evaluation.report import make_report


def test_robustness_is_told_for_each_system_and_cutoff():
    report = make_report(golden(), SYSTEMS, scoring(cutoffs=(1, 2)), [RobustnessAnalysis()])
    assert [part.measure for system in report.systems for part in system.robustness] == ["recall@1", "recall@2"] * 2
    poor = report.systems[1].robustness[1]
    assert (poor.mean, poor.zero) == (pytest.approx(0.5 / 3), pytest.approx(2 / 3))
    section = RobustnessAnalysis().section(report)
    assert section.sentences[3].startswith(
        "poor: recall@2 mean 0.1667; it is 0 for 67% of the queries, at least 0.1 for 33%, 0.2 for 33%"
    )
    assert [cell.text for cell in section.table.rows[3]][:5] == ["poor", "recall@2", "0.1667", "0.6667", "0.3333"]
