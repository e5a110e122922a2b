"""What `raggs diagnose index` found: indexes at their points, at equal mean recall, and what is chosen by that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from raggs.base.frozen import Frozen
from raggs.base.jsontypes import Number
from raggs.diagnosis.base import Found
from raggs.diagnosis.parts import MeanPart
from raggs.evaluation.models import Part

Origin = Literal["questions", "held-out passages"]


class Answered(Frozen):
    """What one set of questions got, by question: kept between invocations."""

    origin: str
    hits: tuple[int, ...]
    ap: tuple[float, ...]
    ndcg: tuple[float, ...]
    rr: tuple[float, ...]


class PointRow(Frozen):
    """One index at one effort, for one K: kept between invocations."""

    qps: float
    cpu_ms: float
    load: Number
    build_s: float
    bytes: int
    answered: tuple[Answered, ...]


Values = Mapping[str, MeanPart]


class AskedPart(Part):
    """A set of questions."""

    origin: Origin
    questions: int


class PointPart(Part):
    """An index at one effort."""

    index: str = Field(description="its settings, but for the effort")
    effort: int
    setting: str = Field(description="the name of the effort's setting")
    k: int
    origin: Origin
    qps: float = Field(description="questions a second, one at a time on one thread")
    cpu_ms: float = Field(description="milliseconds of processor time of a question")
    values: Values = Field(description="recall, map, ndcg, mrr, and r<delta> of each delta")
    build_s: float
    bytes: int


class MatchedPart(Part):
    """An index at one mean recall; without numbers where its points do not bracket that."""

    index: str
    k: int
    origin: Origin
    level: float = Field(description="the mean recall")
    bracketed: bool
    effort: Number = None
    qps: Number = None
    values: Values = Field({}, description="as at a point")
    against: Values = Field({}, description="minus those of the first index, paired by question")
    sure: tuple[str, ...] = Field((), description="shares of questions that differ, by intervals that hold together")
    deviation: Values = Field({}, description="from the mean of all indexes, as a share of that")


class ChosenPart(Part):
    """A point of the front of two things, where a third is fixed."""

    index: str
    effort: int
    setting: str
    k: int
    origin: Origin
    recall: float
    robustness: float
    qps: float


class FrontPart(Part):
    """The three-way choice."""

    what: str
    least: float
    delta: float
    reached: int = Field(description="points that reach it")
    points: int
    front: tuple[ChosenPart, ...]


class LossPart(Part):
    """What an effort loses against the exact search."""

    effort: int
    losses: Mapping[str, MeanPart] = Field(description="by measure with its cutoff, as shares")


class TunedPart(Part):
    """The least effort of an index whose loss is within the limit beyond doubt."""

    index: str
    setting: str
    limit: float
    depth: int
    origin: Origin
    questions: int
    effort: int | None = Field(description="null: none suffices")
    yaml: str | None = Field(description="the retriever's index, as it is written in the configuration")
    tried: tuple[LossPart, ...]


class BinPart(Part):
    """Answers to questions of about one recall."""

    recall: float
    answers: int
    accuracy: float
    exact: float = Field(description="accuracy by the exact search on the same questions")
    ratio: MeanPart


class DeltaPart(Part):
    """How much recall answers need."""

    k: int
    near: float
    delta: Number = Field(description="null: the answers do not say")
    bins: tuple[BinPart, ...]


class LowRecallPart(Part):
    """The questions that an index gives least."""

    index: str
    effort: int
    setting: str
    k: int
    below: float = Field(description="the recall that they do not reach")
    share: float = Field(description="of all questions")
    qids: tuple[str, ...] = Field(description="some of them, those with least first; rows of the file without ids")


class IndexFound(Found):
    """What `raggs diagnose index` found."""

    v: Literal[1] = 1
    rows: int
    dims: int
    source: str = Field(description="whose vectors they are")
    asked: tuple[AskedPart, ...]
    exact_qps: Number = Field(description="questions a second of the exact search")
    load: Number = Field(description="greatest load of a processor while points were timed")
    deltas: tuple[float, ...]
    points: tuple[PointPart, ...]
    matched: tuple[MatchedPart, ...]
    left_out: tuple[LowRecallPart, ...] = ()
    front: FrontPart | None = None
    tuned: tuple[TunedPart, ...] = ()
    delta: DeltaPart | None = None
