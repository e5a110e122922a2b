"""Every figure that a lock keeps of a judge has words; none is shown by its key."""

from __future__ import annotations

import pytest

from raggs.base.judge_health import (
    CanaryHealth,
    CascadeGrade,
    CascadeHealth,
    GradeShift,
    HumanAgreement,
    JudgeHealth,
    JudgingDepth,
    PairAgreement,
    PanelHealth,
    PanelMemberHealth,
    RankHealth,
    SelfAgreement,
    ShareEstimate,
    WilsonRate,
)
from raggs.base.types import leaves
from raggs.evaluation.diff_results import health_words

RATE = WilsonRate(rate=0.5, interval=(0.1, 0.9), count=1, total=2)
MOVED = GradeShift(grades=0.2, interval=(0.1, 0.3), questions=12)
JUDGE = JudgeHealth(
    depth=JudgingDepth(stop_after=3, asked=5, saved=2, stopped=1),
    samples=SelfAgreement(asked=3, passages=5, unanimous=0.5, exact=0.5, kappa=0.5, company=MOVED),
    place=MOVED,
    panel=PanelHealth(
        members={"gpt-4.1": PanelMemberHealth(mean=3.0, given=4, missing=0)},
        agreement=(PairAgreement(judges=("a", "b"), pairs=4, exact=0.5, kappa=0.2),),
        warnings=(),
    ),
    canaries=CanaryHealth(passed=RATE, kinds={"off topic": RATE}, company={"incited": MOVED}),
    cascade=CascadeHealth(
        asked=RATE,
        by_rule=2,
        by_chance=3,
        lost=1,
        overruled=RATE,
        missed=RATE,
        unseen=ShareEstimate(share=0.1, interval=(0.05, 0.2)),
        ask_from=3,
        grades={
            "2": CascadeGrade(
                given=9, by_rule=(0, 1, 2, 0, 0), by_chance=(1, 5, 0, 0, 0), agree=0.8, interval=(0.5, 0.9)
            )
        },
        warnings=(),
    ),
    people=HumanAgreement(kappa=0.4, interval=(0.1, 0.7), grades=12, questions=3, by_people=1),
    silent=1,
    sources={"human": 2, "litellm openai/gpt-4.1": 9},
    replaced=1,
)
RANK = RankHealth(
    first=RATE,
    flips=RATE,
    cycles=RATE,
    invalid=RATE,
    fair_first=0.2,
    sharpness=2.0,
    echo=0.1,
    position_bias=0.1,
    expected_inversions=0.3,
)
PLACES = [
    ".".join((stage, *map(str, place)))
    for stage, health in (("judge", JUDGE), ("rank", RANK))
    for place, value in leaves(health.model_dump(mode="json"))
    if isinstance(value, int | float) and "interval" not in place
]


@pytest.mark.parametrize("place", PLACES)
def test_every_figure_is_named_in_words(place: str) -> None:
    words = health_words(place)
    assert words != place.replace(".", " ") and "." not in words.replace("gpt-4.1", "") and "_" not in words


def test_no_two_figures_are_named_alike() -> None:
    assert len({*map(health_words, PLACES)}) == len(PLACES) > 30


def test_names_of_models_stay_what_they_are() -> None:
    assert health_words("judge.panel.members.gpt-4.1.mean") == "gpt-4.1 of the panel: mean grade"
    assert health_words("judge.sources.litellm openai/gpt-4.1") == "grades by litellm openai/gpt-4.1"
    assert health_words("judge.of.a.later.version") == "judge of a later version"
