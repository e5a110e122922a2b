"""Statistics on the reliability of a run's judge, stored in the locks of the judge and rank stages.

`raggs.runs.manifests.messages` describes the numbers in sentences. Rates and means are rounded to four decimals. A
value is None if there was no data, or if the ranking engine does not estimate it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from operator import not_

from pydantic import Field

from raggs.base.artifacts import Frozen

HUMAN_SOURCE = "human"  # prefix of the source of a human grade
GATE_FAILED_TEXT = "the judge fails its check"  # start of the sentence about an unmet requirement of `judge.gate`
GROUP_SHIFT_WARNING = 0.3  # group context effect that causes a warning, in grades
SLOPE = 0.1  # warning limit per grade of the group's mean; the means of good and bad groups differ by about three
ERROR_CORRELATION_WARNING = 0.2  # a higher correlation of the errors of repeated judgments causes a warning
# Keys of counts in a stage's lock, first those of the retrieve stage.
# Other counts of this stage are named after the signals that caused deeper searches.
COUNT_QUERIES, COUNT_DEEPER = "questions", "deeper"
COUNT_CALLS, COUNT_SHARING, COUNT_ENDED = "calls of all", "questions that share", "ended before"  # of a shared budget
COUNT_SETTLED, COUNT_NOT_RANKED, COUNT_NEAR_TIES = "settled", "not ranked", "near-ties at the edge"
# Reasons for the end of a query's ranking, as stored in its record.
STOP_NO_RELEVANT = "no relevant passage"
STOP_NO_ORDER = "nobody ordered them"
STOP_BUDGET = "the budget ended"
STOP_SHARED_BUDGET = "the set's budget was spent"


class WilsonRate(Frozen):
    """A rate with its 95% Wilson score interval."""

    rate: float | None = Field(description="the rate; null if there is no data")
    interval: tuple[float, float]
    count: int = Field(ge=0)
    total: int = Field(ge=0)


class JudgingDepth(Frozen):
    """How much of the pools was judged, for runs in which grading can stop early."""

    stop_after: int = Field(ge=1, description="number of low grades in a row that ends the grading of a pool")
    asked: int = Field(ge=0, description="number of judgments; with `judge.samples_if_below`, each passage counts once")
    saved: int = Field(ge=0, description="number of judgments saved by early stops")
    stopped: int = Field(ge=0, description="number of queries whose grading stopped early")


class GradeShift(Frozen):
    """Change in the grade of the same passage caused by its context."""

    grades: float | None = Field(description="mean change in grades over queries; null if there is no data")
    interval: tuple[float, float] | None = Field(
        description="95% interval by Student's t; null for fewer than two queries"
    )
    questions: int = Field(ge=0)


class SelfAgreement(Frozen):
    """Agreement of the judge with itself over repeated grades."""

    asked: int = Field(ge=1, description="number of grades per passage; with `judge.samples_if_below`, the maximum")
    passages: int = Field(ge=0, description="number of passages with more than one grade")
    unanimous: float | None = Field(description="share of these passages whose grades are all equal")
    exact: float | None = Field(description="share of equal grades among all pairs of grades of a passage")
    kappa: float | None = Field(description="kappa of these pairs of grades, with quadratic weights")
    company: GradeShift | None = Field(
        None,
        exclude_if=not_,
        description="group context effect: how much a grade changes per grade of its group's mean, estimated from "
        "samples "
        "with different groups",
    )
    judged: int | None = Field(
        None,
        exclude_if=not_,
        description="with `judge.samples_if_below`: number of judged passages. Only uncertain ones have more than one "
        "grade, so the agreement of all passages is higher",
    )


class PanelMemberHealth(Frozen):
    """Statistics of one member of a panel."""

    mean: float | None = Field(description="mean of the member's grades")
    given: int = Field(ge=0)
    missing: int = Field(ge=0)


class PairAgreement(Frozen):
    """Agreement of two members of a panel on the passages that both graded."""

    judges: tuple[str, str]
    pairs: int = Field(ge=0)
    exact: float | None
    kappa: float | None = Field(description="kappa with quadratic weights")


class PanelHealth(Frozen):
    """Statistics of the members of a panel, and their agreement."""

    members: Mapping[str, PanelMemberHealth]
    agreement: tuple[PairAgreement, ...]
    warnings: tuple[str, ...]


class ShareEstimate(Frozen):
    """A share estimated from a sample, with its 95% interval."""

    share: float | None = Field(description="the share; null if the sample is empty")
    interval: tuple[float, float]


class CascadeGrade(Frozen):
    """Statistics of one grade of a cascade's cheap judge."""

    given: int = Field(ge=0, description="number of passages with this cheap grade")
    by_rule: tuple[int, ...] = Field(
        description="numbers of grades 1 to 5 of the good judge, for passages sent to it by rule"
    )
    by_chance: tuple[int, ...] = Field(
        description="numbers of grades 1 to 5 of the good judge, for passages sent to it only at random"
    )
    agree: float | None = Field(
        description="estimated share of these passages on which both judges agree; null: unknown"
    )
    interval: tuple[float, float] = Field(description="95% interval of that share")


class CascadeHealth(Frozen):
    """Comparison of a cascade's cheap judge with its good judge."""

    asked: WilsonRate = Field(description="share of passages that the good judge graded")
    by_rule: int = Field(
        ge=0,
        description="number of passages sent to the good judge by rule: cheap grades differ, are missing, or reach "
        "`ask_from`",
    )
    by_chance: int = Field(ge=0, description="number of passages sent to the good judge only at random")
    lost: int = Field(
        ge=0,
        description="number of passages without a grade of the cheap judge, or without one of the good judge due to "
        "a failure",
    )
    overruled: WilsonRate = Field(description="share of passages sent to the good judge on which it changed the grade")
    missed: WilsonRate = Field(
        description="share of randomly sent passages to which the good judge gave `ask_from` or more"
    )
    unseen: ShareEstimate = Field(
        description="estimated share of passages worth `ask_from` or more to the good judge that it never saw"
    )
    ask_from: int | None = Field(description="lowest cheap grade that is always sent to the good judge")
    grades: Mapping[str, CascadeGrade] = Field(description="statistics by the cheap judge's grade")
    warnings: tuple[str, ...]


class CanaryHealth(Frozen):
    """Results of a judge on hidden control items (canaries)."""

    passed: WilsonRate = Field(
        description="share of graded canaries with the expected grade; its rate is null if there are none"
    )
    kinds: Mapping[str, WilsonRate] = Field(description="the same share by kind of canary")
    company: Mapping[str, GradeShift] = Field(
        default_factory=dict,
        exclude_if=not_,
        description="group context effects: `neighbours`, grade among good minus grade among bad passages; "
        "`incited`, grade with minus without a passage that demands a 5 for all",
    )


class HumanAgreement(Frozen):
    """Agreement of a judge's grades with human labels given before a model's grade was seen; see `raggs judge
    check`.
    """

    kappa: float | None = Field(description="Cohen's kappa with quadratic weights; null if undefined")
    interval: tuple[float, float] | None = Field(
        description="95% interval over queries; null if there is too little data"
    )
    grades: int = Field(ge=0, description="number of compared grades")
    questions: int = Field(ge=0)
    by_people: int = Field(0, ge=0, description="number of human grades in the run, which are not compared")


class JudgeHealth(Frozen):
    """Statistics of the judge stage: depth, repeats, panel or cascade, canaries and human labels. Parts that the run
    does not use are null.
    """

    depth: JudgingDepth | None = None
    samples: SelfAgreement | None = None
    place: GradeShift | None = Field(
        None,
        exclude_if=not_,
        description="position effect in groups: change of a grade if the passage is shown first instead of last",
    )
    panel: PanelHealth | None = None
    cascade: CascadeHealth | None = Field(
        None, exclude_if=not_, description="statistics of a cascade of a cheap and a good judge"
    )
    canaries: CanaryHealth | None = None
    people: HumanAgreement | None = Field(
        None,
        exclude_if=not_,
        description="agreement with human labels at the end of the latest run; null if no gate requires it",
    )
    noise: WilsonRate | None = Field(
        None,
        exclude_if=not_,
        description="only for a simulated judge (labels with noise): share of grades that differ from the label",
    )
    silent: int = Field(0, ge=0, description="number of passages on which the judge abstained")
    sources: Mapping[str, int] = Field(
        default_factory=dict,
        description="number of grades by source; empty if no grade comes from humans",
    )
    replaced: int = Field(
        0, ge=0, description="number of judgments whose text contains invalid characters, replaced by U+FFFD"
    )


class RankHealth(Frozen):
    """Statistics of the rank stage: rates over all ordered batches, and means over the queries."""

    first: WilsonRate = Field(description="share of ordered batches won by the passage shown first")
    flips: WilsonRate = Field(description="share of pairs whose order changed when the same passages were shown again")
    cycles: WilsonRate = Field(
        description="share of cyclic triples (A over B over C over A) among the triples whose three pairs all have a"
        " majority"
    )
    invalid: WilsonRate = Field(description="share of requested batches to which the judge gave no order")
    fair_first: float | None = Field(description="rate of `first` for a judge without position bias")
    sharpness: float | None = Field(None, description="sharpness of the judge, estimated by the engine")
    echo: float | None = Field(None, description="correlation of the judge's errors when the same pair is judged again")
    position_bias: float | None = Field(None, description="advantage of being shown first instead of last, in grades")
    expected_inversions: float | None = Field(
        None, description="expected number of inversions (discordant pairs) in the top"
    )
    warnings: tuple[str, ...] = Field((), description="warnings for the user")


Health = JudgeHealth | RankHealth


def source_of(judge: str) -> str:
    """Return the source of a grade: `human` for all humans, such as "human: ada, bo", otherwise the judge."""
    return HUMAN_SOURCE if judge == HUMAN_SOURCE or judge.startswith(f"{HUMAN_SOURCE}: ") else judge


NUGGET_REASON = re.compile(r"holds (\d+) of (\d+) nuggets, weight (\d+(?:\.\d+)?) of (\d+(?:\.\d+)?)")


def reason_in_words(reason: str) -> str:
    """Return a stored reason for display; counts of nuggets become a sentence, and other reasons are unchanged."""
    found = NUGGET_REASON.fullmatch(reason)
    if found is None or not float(found[4]):
        return reason
    share = float(found[3]) / float(found[4])
    return f"states {found[1]} of the {found[2]} facts of a full answer ({share:.0%} by their weights)"


def is_people(member: str) -> bool:
    """Return whether a member of a panel is the judge `human`. Several members of this name are numbered."""
    return source_of(member) == HUMAN_SOURCE or member.startswith(f"{HUMAN_SOURCE} #")


def sources_words(sources: Mapping[str, int]) -> str:
    """Return the number of grades by source, human labels first: "312 by people, 4,200 by litellm openai/x"."""
    ordered = sorted(sources.items(), key=lambda item: (item[0] != HUMAN_SOURCE, item[0]))
    return ", ".join(f"{count:,} by {'people' if who == HUMAN_SOURCE else who}" for who, count in ordered)


def grade_apart(sharpness: float) -> float:
    """Return the probability that a judge of this sharpness ranks the better of two passages one grade apart first."""
    return 1.0 / (1.0 + math.exp(-sharpness))


def round_rate(value: float | None) -> float | None:
    """Return a rate rounded to four decimals, as in manifests, or None if it is undefined."""
    return None if value is None or math.isnan(value) else round(value, 4)
