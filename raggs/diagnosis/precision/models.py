"""What the kind `precision` finds. Scores are in 0 to 1 (not in points); a number that is not defined is null."""

from __future__ import annotations

from pydantic import Field

from raggs.base.arrays import Dtype
from raggs.base.types import Number
from raggs.diagnosis.base import Found
from raggs.evaluation.models import Part
from raggs.stats.probes.precision import Form, Regime


class CurvePart(Part):
    """A measure at every cutoff from 1 on, mean over the questions."""

    measure: str
    oblivious: tuple[Number, ...] = Field(description="equal scores in the order of the file")
    expected: tuple[Number, ...] = Field(description="mean over all orders of equal scores")
    least: tuple[Number, ...]
    most: tuple[Number, ...]


class TiedPart(Part):
    """A measure at the cutoff that was asked for, mean over the questions, with 95% intervals over them."""

    measure: str
    oblivious: Number
    expected: Number
    least: Number
    most: Number
    range: Number = Field(description="most - least")
    range_low: Number
    range_high: Number
    across: Number = Field(description="range by the tie group across the cutoff alone")
    bias: Number = Field(description="oblivious - expected")
    bias_low: Number
    bias_high: Number
    moved: int = Field(description="questions whose value hangs on the order of equal scores")
    up: int = Field(description="questions that the order of the file favours")
    down: int
    p: float = Field(description="sign test of these, two-sided")


class SystemPart(Part):
    """One system at one precision."""

    name: str
    form: Form = Field(description="what makes a score; score: nothing that is known, it is rounded as it stands")
    dtype: Dtype
    hps: bool = Field(description="whether the last step is in float32 and not rounded again")
    configured: bool = Field(description="whether this is the precision that the configuration names")
    sorted: bool = Field(description="whether the file is in the order of its scores: it says nothing of labels then")
    largest: int = Field(description="passages of the largest group of equal scores")
    curves: tuple[CurvePart, ...]
    at: tuple[TiedPart, ...]

    @property
    def precision(self) -> str:
        """``bf16+HPS``."""
        return Regime(self.dtype, self.hps).name

    @property
    def label(self) -> str:
        """Name and precision."""
        return f"{self.name}, {self.precision}"


class ReversalPart(Part):
    """Two systems that change places once equal scores stand in no order."""

    first: str = Field(description="the better one as it stands")
    second: str = Field(description="the better one by expectation")
    precision: str
    measure: str
    oblivious: float = Field(description="first - second as they stand")
    expected: float = Field(description="first - second by expectation")
    low: Number = Field(description="95% interval of that, over questions")
    high: Number
    hps: Number = Field(description="the same difference with high-precision scoring; null where there is none")


class LeakPart(Part):
    """Whom the order of the file favours, in one system, precision and measure."""

    system: str
    precision: str
    measure: str
    bias: Number
    up: int
    down: int
    p: float = Field(description="after Holm's correction over all of these")


class PrecisionFound(Found):
    """What the kind finds."""

    cutoff: int
    queries: int
    systems: tuple[SystemPart, ...]
    reversals: tuple[ReversalPart, ...]
    leaks: tuple[LeakPart, ...] = Field(description="of every precision where scores are rounded to the end")
    favours: int = Field(description="whom the order of the file favours: 1 relevant passages, -1 others, 0 neither")


class Kept(Part):
    """A system at one precision with what reversals need, as it is kept."""

    part: SystemPart
    oblivious: tuple[tuple[Number, ...], ...] = Field(description="by measure and question")
    expected: tuple[tuple[Number, ...], ...]
