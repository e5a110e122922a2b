"""How far a run's judge can be trusted: what the locks of the judge and the rank stage keep of it.

Figures and warnings only; `raggs.runs.manifests.messages` puts them into sentences. Rates and means have four digits.
What could not be told is None: nothing was rated, or the engine does not estimate it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import not_

from pydantic import Field

from raggs.base.artifacts import Frozen

HUMAN_SOURCE = "human"  # begins the name of whoever gave a grade, where people did
GATE_FAILED_TEXT = "the judge fails its check"  # begins the sentence about a limit of `judge.gate` that is not met
GROUP_SHIFT_WARNING = 0.3  # grades by which company moves a grade that are worth a warning
SLOPE = 0.1  # the same for each grade by which company is better; good company is better than bad by some three
ERROR_CORRELATION_WARNING = 0.2  # from here on, a judge that is asked again repeats its own errors
# Keys of counts in a stage's lock.
COUNT_QUERIES, COUNT_DEEPER = "questions", "deeper"  # of the retrieve stage; its other counts are signals
COUNT_CALLS, COUNT_SHARING, COUNT_ENDED = "calls of all", "questions that share", "ended before"  # of a shared budget
COUNT_SETTLED, COUNT_NOT_RANKED, COUNT_NEAR_TIES = "settled", "not ranked", "near-ties at the edge"
# Reasons for which the ranking of a query stops, in its record.
STOP_NO_RELEVANT = "no relevant passage"
STOP_NO_ORDER = "nobody ordered them"
STOP_BUDGET = "the budget ended"
STOP_SHARED_BUDGET = "the set's budget was spent"


class WilsonRate(Frozen):
    """Some of a total, with Wilson's score interval at 95%."""

    rate: float | None = Field(description="null where there was nothing to rate")
    interval: tuple[float, float]
    count: int = Field(ge=0)
    total: int = Field(ge=0)


class JudgingDepth(Frozen):
    """How much of the pools was judged, where the walk down a pool may end early."""

    stop_after: int = Field(ge=1, description="low grades in a row that end a walk")
    asked: int = Field(ge=0, description="judgments")
    saved: int = Field(ge=0, description="judgments not asked for")
    stopped: int = Field(ge=0, description="queries whose walk ended early")


class GradeShift(Frozen):
    """By how much the grade of the same passage moves with what it is shown beside."""

    grades: float | None = Field(description="over questions; null where none could be asked")
    interval: tuple[float, float] | None = Field(description="of 95%, by Student's t; null below two questions")
    questions: int = Field(ge=0)


class SelfAgreement(Frozen):
    """How far the judge agrees with itself when it is asked more than once."""

    asked: int = Field(ge=1, description="grades of each passage")
    passages: int = Field(ge=0, description="with more than one grade")
    unanimous: float | None = Field(description="share of these with one and the same grade")
    exact: float | None = Field(description="share of pairs of grades that are equal")
    kappa: float | None = Field(description="of the pairs, with quadratic weights")
    company: GradeShift | None = Field(
        None,
        exclude_if=not_,
        description="where several passages are graded together, by how many grades a grade moves for each grade that"
        " its company is better, told by samples that show it in others",
    )


class PanelMemberHealth(Frozen):
    """One member of a panel."""

    mean: float | None = Field(description="of its grades")
    given: int = Field(ge=0)
    missing: int = Field(ge=0)


class PairAgreement(Frozen):
    """How far two members of a panel agree on the passages that both graded."""

    judges: tuple[str, str]
    pairs: int = Field(ge=0)
    exact: float | None
    kappa: float | None = Field(description="with quadratic weights")


class PanelHealth(Frozen):
    """How the members of a panel grade, each and among themselves."""

    members: Mapping[str, PanelMemberHealth]
    agreement: tuple[PairAgreement, ...]
    warnings: tuple[str, ...]


class ShareEstimate(Frozen):
    """A share that a sample tells, with an interval at 95%."""

    share: float | None = Field(description="null where nothing was drawn")
    interval: tuple[float, float]


class CascadeGrade(Frozen):
    """What became of one grade of a cascade's cheap judge."""

    given: int = Field(ge=0, description="passages to which the cheap judge gave it")
    by_rule: tuple[int, ...] = Field(description="the good judge's grades, 1 to 5, where the cheap grades sent for it")
    by_chance: tuple[int, ...] = Field(description="the same where only the draw did")
    agree: float | None = Field(description="share on which both agree, of all that were given it; null: not known")
    interval: tuple[float, float] = Field(description="of that share, 95%")


class CascadeHealth(Frozen):
    """How a cascade's cheap judge stands to its good one."""

    asked: WilsonRate = Field(description="passages on which the good judge was asked")
    by_rule: int = Field(ge=0, description="of these, where the cheap grade matters, or cheap grades differ")
    by_chance: int = Field(ge=0, description="of these, where only the draw decided")
    lost: int = Field(ge=0, description="passages without a cheap grade, or on which the good judge failed")
    overruled: WilsonRate = Field(description="grades that the good judge changed, of those asked")
    missed: WilsonRate = Field(description="of those asked by chance, the good judge's grades from `ask_from` on")
    unseen: ShareEstimate = Field(
        description="of all that the good judge would give such a grade, those it was not asked about"
    )
    ask_from: int | None = Field(description="cheap grades from here up are asked of the good judge")
    grades: Mapping[str, CascadeGrade] = Field(description="by the cheap judge's grade")
    warnings: tuple[str, ...]


class CanaryHealth(Frozen):
    """How a judge did on cases of known grade."""

    passed: WilsonRate = Field(
        description="cases with the grade that was expected, of those asked; null if none could be"
    )
    kinds: Mapping[str, WilsonRate] = Field(description="the same by kind of case")
    company: Mapping[str, GradeShift] = Field(
        default_factory=dict,
        exclude_if=not_,
        description="where several passages are graded together, what neighbours do to a grade: `neighbours`, good ones"
        " less bad ones; `incited`, one that asks for a 5 for all less the same one without",
    )


class HumanAgreement(Frozen):
    """How a judge's grades stand to those of people who had not seen a machine's, as `raggs judge check` says."""

    kappa: float | None = Field(description="Cohen's, with quadratic weights; null where it is not defined")
    interval: tuple[float, float] | None = Field(description="of 95%, over questions; null where there is too little")
    grades: int = Field(ge=0, description="compared")
    questions: int = Field(ge=0)
    by_people: int = Field(0, ge=0, description="grades in the run that are people's own, left out")


class JudgeHealth(Frozen):
    """Of the judge stage: depth, repeats, panel or cascade, canaries and people's word; null what was not asked for."""

    depth: JudgingDepth | None = None
    samples: SelfAgreement | None = None
    place: GradeShift | None = Field(
        None,
        exclude_if=not_,
        description="where several passages are graded together, in places drawn by lot: by how many grades being shown"
        " first rather than last moves a grade",
    )
    panel: PanelHealth | None = None
    cascade: CascadeHealth | None = Field(
        None, exclude_if=not_, description="where a cheap judge stands before a good one"
    )
    canaries: CanaryHealth | None = None
    people: HumanAgreement | None = Field(
        None, exclude_if=not_, description="where the gate asks for it, as of the end of the latest run"
    )
    noise: WilsonRate | None = Field(
        None,
        exclude_if=not_,
        description="of a judge that adds simulated noise to labels, the grades that differ from their label",
    )
    silent: int = Field(0, ge=0, description="passages on which the judge abstained")
    sources: Mapping[str, int] = Field(
        default_factory=dict,
        description="where people gave some: by who gave them, how many grades",
    )
    replaced: int = Field(0, ge=0, description="judgments in whose words U+FFFD stands for what is no character")


class RankHealth(Frozen):
    """Of the rank stage, rates over all batches that the judge ordered, and means over the queries."""

    first: WilsonRate = Field(description="batches won by the passage shown first, of those ordered")
    flips: WilsonRate = Field(description="pairs that changed places when the same passages were shown again")
    cycles: WilsonRate = Field(description="triples that go round, of those whose pairs all have a majority")
    invalid: WilsonRate = Field(description="batches without an order, of those asked")
    fair_first: float | None = Field(description="the rate that a fair judge would have at `first`")
    sharpness: float | None = Field(None, description="of the judge, as the engine estimates it")
    echo: float | None = Field(None, description="correlation of the judge's errors when it meets a pair again")
    position_bias: float | None = Field(None, description="gain by being shown first rather than last, in grades")
    expected_inversions: float | None = Field(None, description="wrongly ordered pairs expected inside the top")
    warnings: tuple[str, ...] = Field((), description="what a person should look into")


Health = JudgeHealth | RankHealth


def source_of(judge: str) -> str:
    """Who gave a grade, people as one: `human` of "human: ada, bo", else the judge."""
    return HUMAN_SOURCE if judge == HUMAN_SOURCE or judge.startswith(f"{HUMAN_SOURCE}: ") else judge


def is_people(member: str) -> bool:
    """Whether a member of a panel is the judge `human`; later ones of its name are numbered."""
    return source_of(member) == HUMAN_SOURCE or member.startswith(f"{HUMAN_SOURCE} #")


def sources_words(sources: Mapping[str, int]) -> str:
    """Who gave how many grades, people first: "312 by people, 4,200 by litellm openai/x"."""
    ordered = sorted(sources.items(), key=lambda item: (item[0] != HUMAN_SOURCE, item[0]))
    return ", ".join(f"{count:,} by {'people' if who == HUMAN_SOURCE else who}" for who, count in ordered)


def grade_apart(sharpness: float) -> float:
    """The chance that a judge of this sharpness puts the better of two passages that lie one grade apart first."""
    return 1.0 / (1.0 + math.exp(-sharpness))


def round_rate(value: float | None) -> float | None:
    """Four digits, as manifests keep rates; None where it is not defined."""
    return None if value is None or math.isnan(value) else round(value, 4)
