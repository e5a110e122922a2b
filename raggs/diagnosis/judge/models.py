"""What the diagnosis of a judge finds. A number that is not defined is null."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from raggs.base.types import Number
from raggs.diagnosis.base import Found
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import Part


class Row(Part):
    """An answer of the judge, as it is kept: one order of a list, or the course of a ranking."""

    qid: str
    sample: int = Field(description="which ask of the same list; which ranking")
    shown: tuple[str, ...] = Field(description="in the order of presentation; of a ranking the pool, best fused first")
    order: tuple[str, ...] | None = Field(description="best first; null where the judge gave none")
    error: str | None = None
    scores: tuple[float, ...] = Field((), description="of a ranking, aligned with `order`, in grades")
    sharpness: Number = None
    position_bias: Number = Field(None, description="of a ranking: what being shown first adds, in grades")
    asked: int = Field(1, description="calls that it took")
    failed: int = 0
    errors: tuple[str, ...] = ()
    first: int = Field(0, description="batches that the passage shown first won")


class Asking(Part):
    """All answers of one kind, and what they took, whenever they were paid for."""

    rows: tuple[Row, ...]
    calls: int
    tokens: int
    usd: float


class PoolsPart(MeanPart):
    """A mean over pools."""

    pools: int


class WayPart(Part):
    """One way to an order."""

    name: str
    again: PoolsPart = Field(description="share of pairs ordered otherwise, the same passages shown the same way again")
    otherwise: PoolsPart = Field(description="the same, shown in another order; of the rank stage, ranked afresh")
    tau: PoolsPart = Field(description="Kendall's, of the latter: 1 - 2 of the share")
    top: PoolsPart = Field(description="share of the first `top` that two such orders have in common")
    asked: int = Field(description="lists put before the judge")
    failed: int = Field(description="of these, without an order")
    calls: float = Field(description="lists of one order of one pool, mean")
    tokens: float = Field(description="tokens sent for one order of one pool, mean")
    usd: float = Field(description="USD for one order of one pool, mean")


class PlacePart(Part):
    """How often neighbours in an order stand in that order in another one."""

    first: int
    last: int
    again: PoolsPart = Field(description="of one prompt, in its repeat")
    against: PoolsPart = Field(description="of one prompt, in the rank stage's order")
    ranked: PoolsPart = Field(description="of the rank stage, in its repeat")


class FavourPart(Part):
    """What the place does at which a passage is shown."""

    toward: PoolsPart = Field(
        description="one prompt: of the pairs that turned with the showing, where the earlier won"
    )
    single: PoolsPart = Field(description="one prompt: what being shown first rather than last adds, in grades")
    first: PoolsPart = Field(description="rank stage: share of batches that the passage shown first wins")
    fair_first: float
    ranked: PoolsPart = Field(description="rank stage: what being shown first rather than last adds, in grades")


class JudgeFound(Found):
    """What the diagnosis of a judge finds."""

    judge: str
    pools: int
    size: int = Field(description="passages of the longest pool")
    batch: int = Field(description="passages that the rank stage shows at a time")
    showings: int
    repeats: int
    rankings: int
    top: int
    single: WayPart
    informed: WayPart = Field(description="one prompt, read with the grades that the rank stage starts from")
    ranked: WayPart
    gain: PoolsPart = Field(description="`otherwise` of `informed` less that of the rank stage, pool by pool")
    between: PoolsPart = Field(description="Kendall's tau of one prompt with the rank stage")
    favour: FavourPart
    sharpness: PoolsPart = Field(description="of one prompt, on the scale of the rank stage")
    ranked_sharpness: PoolsPart
    places: tuple[PlacePart, ...]
    grading: Mapping[str, float] = Field(description="what grades took that the rank stage starts from: calls, usd")
    errors: Mapping[str, int] = Field(description="why no order was given, how often")
