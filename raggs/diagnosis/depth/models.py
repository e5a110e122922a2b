"""What `raggs diagnose depth` found: diagnose/depth.json."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from raggs.base.artifacts import Frozen
from raggs.base.types import Number
from raggs.diagnosis.base import Found
from raggs.evaluation.models import Part, ScorePart


class QuestionRow(Frozen):
    """What is known of one question, kept so that a kill costs a part."""

    qid: str
    signals: Mapping[str, float | None]
    near_shallow: float | None
    near_deep: float | None
    far_shallow: float | None
    far_deep: float | None


class TakesRow(Frozen):
    """What one depth takes, kept likewise."""

    policy: str
    usd_per_1k: float | None
    p50_ms: float | None
    p95_ms: float | None


class SignalPart(Part):
    """One signal: what it is worth alone, on the half that its threshold was not fitted on."""

    signal: str
    words: str = Field(description="what it measures")
    threshold: float | None = Field(description="fitted together with the others; null where it is not used")
    alone: float | None = Field(description="threshold fitted without the others; null where none beats random")
    share: Number = Field(description="of the questions that it alone sends deep")
    above_random: ScorePart | None = Field(description="gain at the great cutoff above as many random questions, alone")


class PolicyPart(Part):
    """One way to choose depths."""

    policy: str
    share: Number = Field(description="of the questions that go deep")
    mean_k: Number = Field(description="mean candidates of a question")
    near: ScorePart = Field(description="quality at the small cutoff")
    far: ScorePart = Field(description="quality at the great cutoff")
    usd_per_1k: Number = Field(description="USD for 1,000 questions, of all questions; null where nobody knows")
    p50_ms: Number = Field(description="median over queries of their usual waits; null where no wait was measured")
    p95_ms: Number = Field(description="time within which 95% of single searches ended; null likewise")


class HalfPart(Part):
    """A router on the half that it was not fitted on, by differences of the same questions."""

    questions: int
    escalated: int
    thresholds: Mapping[str, float]
    near_change: ScorePart = Field(description="routed less shallow, at the small cutoff")
    far_change: ScorePart = Field(description="routed less shallow, at the great cutoff")
    above_random: ScorePart = Field(description="routed less random of the same share, at the great cutoff")
    below_deep: ScorePart = Field(description="routed less deep for all, at the great cutoff")

    @property
    def share(self) -> float:
        """Of the questions that go deep."""
        return self.escalated / self.questions if self.questions else 0.0


class DepthFound(Found):
    """What was found. Thresholds are fitted on even questions by id; figures are of odd ones but for cost and wait."""

    near: str = Field(description="the measure that must not fall")
    far: str = Field(description="the measure that is to rise")
    mode: str
    reranker: str | None = Field(description="its name; null without one")
    base: int
    deep: int
    loss: float = Field(description="by which the mean of `near` may fall")
    slo_ms: float | None
    undefined: int = Field(description="questions left out, since a measure is not defined for them")
    unknown: int = Field(0, description="questions of which the embedder knows no word: found by words alone")
    told: HalfPart = Field(description="fitted on even questions, told on odd ones: what the verdict rests on")
    swapped: HalfPart = Field(description="fitted on odd questions, told on even ones")
    policies: tuple[PolicyPart, ...]
    signals: tuple[SignalPart, ...]
    absent: tuple[str, ...] = Field(description="signals that could not be read, and why")
    path: tuple[tuple[float, float], ...] = Field(description="share and quality after each step of the fit")
    oracle: tuple[tuple[float, float], ...] = Field(description="the same for one who knows each question's gain")
    config: str | None = Field(
        description="the run's YAML with the router; null where it does not pay, or without a run"
    )
