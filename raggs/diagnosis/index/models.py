"""What `raggs diagnose index` found: indexes at their points, at equal mean recall, and what is chosen by that.

What is asked of `raggs diagnose index`: which indexes, how far each is tried, and what is decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from raggs.base.adapter import OneOf
from raggs.base.artifacts import Frozen
from raggs.base.document import Column
from raggs.base.errors import UsageError
from raggs.base.settings import Flag, Settings, split_commas
from raggs.base.types import Number
from raggs.diagnosis.base import DiagnosisConfig, DiagnosisFindings, from_word
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import ReportPart
from raggs.parts import indexes
from raggs.parts.indexes import IndexConfig
from raggs.stats.index_loss import NEAR_ACCURACY_SHARE

MEGABYTE = 1e6
Origin = Literal["questions", "held-out passages"]


class QuerySetValues(Frozen):
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
    answered: tuple[QuerySetValues, ...]


Values = Mapping[str, MeanPart]


class QuerySetPart(ReportPart):
    """A set of questions."""

    origin: Origin
    questions: int


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:,.0f}"


def _joined_ids(qids: tuple[str, ...]) -> str:
    return ", ".join(qids) or "none"


class IndexAtEffort(ReportPart):
    """An index at one effort, for one K."""

    index: Annotated[str, Column("index")] = Field(description="its settings, but for the effort")
    effort: int
    setting: str = Field(description="the name of the effort's setting")
    k: int

    @property
    def tried(self) -> Annotated[str, Column("effort")]:
        """The effort as it is set."""
        return f"{self.setting} {self.effort}".strip()


class PointPart(IndexAtEffort):
    """What it found, and what that took."""

    origin: Origin
    qps: Annotated[float, Column("qps", text="{:,.0f}")] = Field(
        description="questions a second, one at a time on one thread"
    )
    cpu_ms: Annotated[float, Column("CPU ms", text="{:.3f}")] = Field(
        description="milliseconds of processor time of a question"
    )
    values: Annotated[Values, Column("{key}", "score")] = Field(
        description="recall, map, ndcg, mrr, and r<delta> of each delta"
    )
    build_s: Annotated[float, Column("built in s", text="{:.1f}")]
    bytes: Annotated[int, Column("MB", text=_megabytes)]


class MatchedPart(ReportPart):
    """An index at one mean recall; without numbers where its points do not bracket that."""

    index: Annotated[str, Column("index")]
    k: int
    origin: Origin
    level: Annotated[float, Column("recall", text="{:g}")] = Field(description="the mean recall")
    bracketed: bool
    effort: Annotated[Number, Column("effort", text="{:.3g}", none="not bracketed")] = None
    qps: Annotated[Number, Column("qps", text="{:,.0f}")] = None
    values: Annotated[Values, Column("{key}", "score", none="–")] = Field({}, description="as at a point")
    against: Annotated[Values, Column("{key}", "signed", none="–")] = Field(
        {}, description="minus those of the first index, paired by question"
    )
    sure: tuple[str, ...] = Field((), description="shares of questions that differ, by intervals that hold together")
    deviation: Annotated[Values, Column("{key}", "signed", none="–")] = Field(
        {}, description="from the mean of all indexes, as a share of that"
    )


class ChosenPart(IndexAtEffort):
    """A point of the front of two things, where a third is fixed."""

    origin: Origin
    recall: Annotated[float, Column("recall", "score")]
    robustness: Annotated[float, Column("r{delta}", "score")]
    qps: Annotated[float, Column("qps", text="{:,.0f}")]


class FrontPart(ReportPart):
    """The three-way choice."""

    what: str
    least: float
    delta: float
    reached: int = Field(description="points that reach it")
    points: int
    front: tuple[ChosenPart, ...]


class LossPart(ReportPart):
    """What an effort loses against the exact search."""

    effort: int
    losses: Annotated[Mapping[str, MeanPart], Column("{key}", "signed")] = Field(
        description="by measure with its cutoff, as shares"
    )


class TunedPart(ReportPart):
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


class BinPart(ReportPart):
    """Answers to questions of about one recall."""

    recall: Annotated[float, Column("recall from", text="{:g}")]
    answers: Annotated[int, Column("answers", text="{:,}")]
    accuracy: Annotated[float, Column("correct", "score")]
    exact: Annotated[float, Column("by the exact search", "score")] = Field(
        description="accuracy by the exact search on the same questions"
    )
    ratio: Annotated[MeanPart, Column("ratio", "score")]


class RequiredRecallPart(ReportPart):
    """How much recall answers need."""

    k: int
    near: float
    delta: Number = Field(description="null: the answers do not say")
    bins: tuple[BinPart, ...]


class LowRecallPart(IndexAtEffort):
    """The questions that an index gives least."""

    below: float = Field(description="the recall that they do not reach")
    share: Annotated[float, Column("share", "score")] = Field(description="of all questions")
    qids: Annotated[tuple[str, ...], Column("such as", text=_joined_ids)] = Field(
        description="some of them, those with least first; rows of the file without ids"
    )


class IndexFindings(DiagnosisFindings):
    """What `raggs diagnose index` found."""

    v: Literal[1] = 1
    rows: int
    dims: int
    source: str = Field(description="whose vectors they are")
    asked: tuple[QuerySetPart, ...]
    exact_qps: Number = Field(description="questions a second of the exact search")
    load: Number = Field(description="greatest load of a processor while points were timed")
    deltas: tuple[float, ...]
    points: tuple[PointPart, ...]
    matched: tuple[MatchedPart, ...]
    left_out: tuple[LowRecallPart, ...] = ()
    front: FrontPart | None = None
    tuned: tuple[TunedPart, ...] = ()
    delta: RequiredRecallPart | None = None


def _share(given: object) -> object:
    """A share, or per cent in words: "1%"."""
    if isinstance(given, str) and given.strip().endswith("%"):
        try:
            return float(given.strip()[:-1]) / 100
        except ValueError:
            return given
    return given


def _vary(given: object) -> object:
    """A mapping, or words such as "m=8,16"."""
    if not isinstance(given, list | tuple):
        return given
    found: dict[str, list[str]] = {}
    for word in given:
        name, equals, values = str(word).partition("=")
        if not equals or not values:
            raise UsageError(f"{word!r} varies nothing", remedy="write a setting and its values: m=8,16")
        found.setdefault(name.strip(), []).extend(values.split(","))
    return found


def _fixed(given: object) -> object:
    """A mapping, or words such as "recall=0.9"."""
    if not isinstance(given, str):
        return given
    what, _, least = given.partition("=")
    return {"what": what.strip(), "least": _share(least)}


IndexSpec = Annotated[IndexConfig, OneOf(indexes.REGISTRY), from_word(indexes.REGISTRY, IndexConfig)]
Share = Annotated[float, Field(gt=0, le=1)]
FixableMeasure = Literal["recall", "robustness", "qps"]


class FixedTarget(Settings):
    """The one of three that must be reached; of the other two the front is shown."""

    what: FixableMeasure = Field("recall", description="recall, robustness (at `delta`) or qps")
    least: float = Field(0.9, gt=0, description="its least value")


class IndexDiagnosisConfig(DiagnosisConfig):
    """Settings of the kind `index`."""

    type: Literal["index"] = "index"
    indexes: Annotated[tuple[IndexSpec, ...], BeforeValidator(split_commas), Flag(("--index",), "LIST")] = Field(
        (), description="indexes; none: hnsw, ivf, and ivf with pq of a quarter of the dimensions"
    )
    vary: Annotated[Mapping[str, tuple[int, ...]], BeforeValidator(_vary), Flag(("--vary",), "NAME=LIST")] = Field(
        {}, description="values of settings, such as m or reorder, that each index which has them is tried with"
    )
    k: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field((10, 100), min_length=1, description="hits wanted")
    held_out: int = Field(500, ge=0, description="passages, a tenth at most, kept out of the indexes and asked for")
    deltas: Annotated[tuple[Share, ...], Flag(("--deltas",), "SHARE")] = Field(
        (0.1, 0.3, 0.5, 0.7, 0.9), min_length=1, description="recalls to be reached"
    )
    levels: Annotated[tuple[Share, ...], Flag(value="SHARE")] = Field(
        (0.8, 0.9, 0.95), min_length=1, description="mean recalls to compare indexes at"
    )
    timed: int = Field(100, ge=1, description="questions of each point that are timed")
    rounds: int = Field(3, ge=1, description="times that each of them is; its time is the median")
    tune: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, BeforeValidator(_share), Flag(value="LOSS")] = Field(
        None, description="loss allowed, 0.01 or 1%: find the least effort"
    )
    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = Field((10, 30), min_length=1, description="where loss counts")
    measure: str | None = Field(
        None, description="measure that the loss is of, without @k, by a golden set; null: recall of the exact nearest"
    )
    depth: int | None = Field(None, ge=1, description="hits wanted when tuning; null: the dense retriever's k, or 50")
    fix: Annotated[FixedTarget | None, BeforeValidator(_fixed), Flag(value="WHAT=LEAST")] = Field(
        None, description="a threshold, to see the front of the other two of three"
    )
    delta: Annotated[Share, Flag(value="SHARE")] = Field(0.3, description="the delta of the front's robustness")
    correct: Path | None = Field(None, description="CSV of qid, setting, correct: answers, to choose delta by")
    near: Annotated[Share, Flag(value="SHARE")] = Field(
        NEAR_ACCURACY_SHARE, description="share of the exact search's accuracy that is near enough"
    )
    vectors: Path | None = Field(None, description="vectors in a file of numpy, in place of a corpus")
    queries: Path | None = Field(None, description="vectors of questions in a file of numpy")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.queries is not None and self.vectors is None:
            raise ValueError("queries are of vectors: name these too")
        if self.tune is not None and self.depth is not None and self.depth < max(self.cutoffs):
            raise ValueError(f"depth is {self.depth}, and loss counts at {max(self.cutoffs)}")
        return self
