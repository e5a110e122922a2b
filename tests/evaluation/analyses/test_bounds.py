from __future__ import annotations

from support.studies import reported

from raggs.evaluation.analyses.unjudged import UnjudgedBoundsAnalysis


def test_bounds_enclose_the_mean_and_are_explained():
    report = reported(UnjudgedBoundsAnalysis())
    good, poor = (system.scores["recall@2"] for system in report.systems)
    assert (good.lowest, good.highest) == (1.0, 1.0)
    assert poor.lowest == poor.mean < poor.highest
    assert (
        UnjudgedBoundsAnalysis().legend(report).line
        == "{ } score with all unjudged passages at the lowest and at the highest grade"
    )
