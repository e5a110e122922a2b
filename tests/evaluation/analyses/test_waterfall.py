from __future__ import annotations

import pytest
from support.studies import SYSTEMS, elsewhere, golden, reported, scoring, study

from raggs.evaluation.analyses import AnalysisFinding
from raggs.evaluation.analyses.losses import Waterfall
from raggs.evaluation.analyses.robustness import DepthAnalysis
from raggs.evaluation.messages import KNOBS
from raggs.evaluation.study import study_systems


def test_the_losses_stand_between_a_perfect_score_and_the_systems_own():
    report = reported(Waterfall())
    found = dict(Waterfall().found(report))
    assert set(found) == {"good"}  # of poor's lists most is unjudged: they say nothing
    part = found["good"]
    assert (part.measure, part.pool, part.perfect) == ("ra_nwg@2", 50, 1.0)
    assert part.perfect - sum(part.losses) == pytest.approx(part.actual) == report.systems[0].scores["ra_nwg@2"].mean
    assert set(part.by_query) == {"query-a", "query-b", "query-c"}


def test_the_largest_loss_names_its_knobs_and_a_small_one_asks_for_nothing():
    (system, part), *_ = Waterfall().found(reported(Waterfall()))
    lossy = part.model_copy(update={"losses": (0.0, 0.02, 0.3, 0.0), "actual": 0.68})
    fine = part.model_copy(update={"losses": (0.0, 0.0, 0.001, 0.0)})
    said, nothing = Waterfall().sentences([AnalysisFinding(system, each) for each in (lossy, fine)])
    assert said.endswith(f"0.3000 (order), 0.0000 (unjudged) — {KNOBS[2]}")
    assert "—" not in nothing


def test_other_scales_have_losses_too_and_measures_that_may_fall_have_none():
    assert Waterfall().found(elsewhere(Waterfall()))[0].part.measure == "recall@2"
    assert not Waterfall().compute(study_systems(golden(), SYSTEMS, scoring(("holes@2",))))


def test_a_score_is_followed_over_the_cutoff_as_far_as_lists_reach():
    found = dict(DepthAnalysis().compute(study()))
    assert found["good"].measure == "ra_nwg"
    assert list(found["good"].means) == [1]  # two passages each
    assert list(found["poor"].means) == [1, 3]
    assert not DepthAnalysis().compute(study_systems(golden(), SYSTEMS, scoring(("mrr",))))
