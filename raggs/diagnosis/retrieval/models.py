"""What the diagnosis of retrieval finds. A number that is not defined is null."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from raggs.base.types import Number
from raggs.diagnosis.base import Found
from raggs.evaluation.models import Part


class SystemPart(Part):
    """One system on the measure that was looked at."""

    name: str
    mean: Number
    low: Number = Field(description="bound of the 95% interval over questions (bootstrap)")
    high: Number
    questions: int = Field(description="where the measure is defined")
    failing: int = Field(description="of these, those below `failing_below`")
    failing_low: float = Field(description="bound of Wilson's interval of the share that fails")
    failing_high: float


class TraitPart(Part):
    """Questions that have something in common against all others, on one system."""

    system: str
    kind: str = Field(description="of the trait: numbers, length, language, section, ...")
    name: str = Field(description="what the questions do: hold a number")
    having: int
    lacking: int
    having_mean: float
    lacking_mean: float
    difference: float
    low: float = Field(description="bound of the 95% interval of the difference (bootstrap within both groups)")
    high: float
    effect: Number = Field(description="the difference in standard deviations within the groups (Cohen's d)")
    effect_low: Number
    effect_high: Number
    p: float = Field(description="two-sided, of a permutation test")
    corrected: float = Field(description="after Holm's correction over all traits, and for the number of systems")
    clear: bool = Field(description="whether corrected p is below .05 and the interval leaves 0 out")
    knob: str = Field(description="what to turn where these questions fail")
    examples: tuple[str, ...] = Field(description="ids of those that have it and do worst")


class UntoldPart(Part):
    """A trait that too few questions have, or lack."""

    name: str
    having: int
    lacking: int


class EvidencePart(Part):
    """The mean of a quantity over questions."""

    quantity: str
    mean: float
    low: float = Field(description="bound of the interval; all that one rule looks at hold together at 95%")
    high: float
    questions: int


class FindingPart(Part):
    """What a rule found."""

    rule: str
    about: str = Field(description="a system, or a system against another")
    sentence: str
    knob: str
    evidence: tuple[EvidencePart, ...]


class QuestionPart(Part):
    """A question that fails."""

    qid: str
    text: str
    values: Mapping[str, Number] = Field(description="by system")
    traits: tuple[str, ...] = Field(description="kinds of those that it has")


class RetrievalFound(Found):
    """What the diagnosis of retrieval finds."""

    measure: str
    failing_below: float
    questions: int
    systems: tuple[SystemPart, ...] = Field(description="the best first")
    traits: tuple[TraitPart, ...] = Field(description="by system, the largest loss first")
    untold: tuple[UntoldPart, ...]
    findings: tuple[FindingPart, ...]
    worst: tuple[QuestionPart, ...] = Field(description="the questions that fail most in the best system")
    words: str = Field(description="of which texts rare words were counted; empty where of none")
    notes: tuple[str, ...] = ()
