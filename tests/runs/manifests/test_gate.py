"""Limits on a judge against the health in the locks."""

from __future__ import annotations

from typing import Any

import pytest

from raggs.base.judge_health import CanaryHealth, HumanAgreement, JudgeHealth, RankHealth
from raggs.runs.manifests.costs import failed_judge_gates
from raggs.runs.manifests.models import RunManifest, StageLock
from raggs.stages.base import rate_of


def manifest(gate: dict[str, float], judge: str = "litellm", **ranked: Any) -> RunManifest:
    """A run whose judge graded 18 of 20 canaries as expected and flips 3 of 20 pairs."""
    nothing = rate_of(0, 0)
    rates = {"first": nothing, "cycles": nothing, "invalid": nothing, "flips": rate_of(3, 20)}
    health = RankHealth(**{**rates, "fair_first": None, "position_bias": -0.4, **ranked})
    asked = JudgeHealth(canaries=CanaryHealth(passed=rate_of(18, 20), kinds={}))
    causes = {"judge": {"type": judge}}
    stages = {
        "judge": StageLock.model_construct(stage="judge", components=causes, health=asked),
        "rank": StageLock.model_construct(stage="rank", components=causes, health=health),
    }
    return RunManifest.model_construct(config={"judge": {"gate": gate}}, stages=stages)


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ({}, ()),
        ({"canaries": 0.9, "flips": 0.15, "position_bias": 0.4}, ()),
        ({"canaries": 0.95}, ("90% of the canaries pass, less than the required 95%",)),
        ({"flips": 0.1}, ("15% of the pairs flip, more than the allowed 10%",)),
        ({"position_bias": 0.3}, ("the position bias is 0.40 grades, more than the allowed 0.3",)),
    ],
)
def test_each_figure_beyond_its_limit_is_named(gate: dict[str, float], said: tuple[str, ...]) -> None:
    assert failed_judge_gates(manifest(gate)) == said


def test_what_could_not_be_looked_at_has_failed() -> None:
    gate = {"flips": 1.0, "position_bias": 9.0}
    found = failed_judge_gates(manifest(gate, flips=rate_of(0, 0), position_bias=None))
    assert len(found) == 2


@pytest.mark.parametrize(
    ("grades", "questions", "kappa", "said"),
    [
        (20, 5, 0.6, None),
        (20, 5, 0.59, "kappa with human labels is 0.59 (20 grades), less than the required 0.6"),
        (19, 5, 0.9, "only 19 grades of 5 queries can be compared with human labels"),
        (90, 4, 0.9, "only 90 grades of 4 queries can be compared"),
        (20, 5, None, "kappa with human labels is undefined"),
    ],
)
def test_kappa_with_people_is_held_to_its_limit_and_few_words_are_no_pass(
    grades: int, questions: int, kappa: float | None, said: str | None
) -> None:
    found = HumanAgreement(kappa=kappa, interval=None, grades=grades, questions=questions)
    for judge in ("litellm", "nuggets"):
        run = manifest({"kappa": 0.6}, judge=judge)
        lock = run.stages["judge"].model_copy(update={"health": JudgeHealth(people=found)})
        below = failed_judge_gates(run.model_copy(update={"stages": {"judge": lock}}))
        assert [said in each for each in below] == ([] if said is None else [True])
    assert failed_judge_gates(manifest({"kappa": 0.6})) == ("its grades have not been compared with human labels yet",)


def test_a_stage_that_has_not_run_and_a_judge_by_rule_are_held_to_nothing() -> None:
    gate = {"canaries": 1.0, "flips": 0.0, "position_bias": 0.0}
    whole = manifest(gate)
    assert len(failed_judge_gates(whole)) == 3
    assert len(failed_judge_gates(whole.model_copy(update={"stages": {"judge": whole.stages["judge"]}}))) == 1
    assert failed_judge_gates(manifest(gate, judge="reference")) == ()
