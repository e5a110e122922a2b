"""Settings and findings of `raggs diagnose index`: indexes at every measured effort, indexes at equal mean recall, and
the selected settings.
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
    """Values of each query of one set, stored for later invocations."""

    origin: str
    hits: tuple[int, ...]
    ap: tuple[float, ...]
    ndcg: tuple[float, ...]
    rr: tuple[float, ...]


class PointRow(Frozen):
    """One index at one effort, for one K; stored between invocations."""

    qps: float
    cpu_ms: float
    load: Number
    build_s: float
    bytes: int
    answered: tuple[QuerySetValues, ...]


Values = Mapping[str, MeanPart]


class QuerySetPart(ReportPart):
    """Origin and size of a set of queries."""

    origin: Origin
    questions: int


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:,.0f}"


def _joined_ids(qids: tuple[str, ...]) -> str:
    return ", ".join(qids) or "none"


class IndexAtEffort(ReportPart):
    """An index at one effort, for one K: the common fields of the parts below."""

    index: Annotated[str, Column("index")] = Field(description="its settings, without the effort")
    effort: int
    setting: str = Field(description="name of the setting that controls the effort")
    k: int

    @property
    def tried(self) -> Annotated[str, Column("effort")]:
        """The effort with the name of its setting, as in ef=16."""
        return f"{self.setting} {self.effort}".strip()


class PointPart(IndexAtEffort):
    """Results and cost of one point."""

    origin: Origin
    qps: Annotated[float, Column("qps", text="{:,.0f}")] = Field(
        description="queries per second; queries are sent one at a time, on one thread"
    )
    cpu_ms: Annotated[float, Column("CPU ms", text="{:.3f}")] = Field(
        description="processor time per query in milliseconds"
    )
    values: Annotated[Values, Column("{key}", "score")] = Field(
        description="recall, map, ndcg and mrr; for each delta, r<delta> (robustness)"
    )
    build_s: Annotated[float, Column("built in s", text="{:.1f}")]
    bytes: Annotated[int, Column("MB", text=_megabytes)]


class MatchedPart(ReportPart):
    """An index at one level of mean recall. If its measured points do not bracket the level, there are no numbers."""

    index: Annotated[str, Column("index")]
    k: int
    origin: Origin
    level: Annotated[float, Column("recall", text="{:g}")] = Field(description="mean recall")
    bracketed: bool
    effort: Annotated[Number, Column("effort", text="{:.3g}", none="not bracketed")] = None
    qps: Annotated[Number, Column("qps", text="{:,.0f}")] = None
    values: Annotated[Values, Column("{key}", "score", none="–")] = Field(
        {}, description="mean values, with the same names as those of a measured point"
    )
    against: Annotated[Values, Column("{key}", "signed", none="–")] = Field(
        {}, description="differences from the first index, paired by query"
    )
    sure: tuple[str, ...] = Field(
        (),
        description="robustness levels with a significant difference from the first index",
    )
    deviation: Annotated[Values, Column("{key}", "signed", none="–")] = Field(
        {}, description="relative deviation from the mean over all indexes"
    )


class ChosenPart(IndexAtEffort):
    """A measured point with the three quantities of the three-way choice."""

    origin: Origin
    recall: Annotated[float, Column("recall", "score")]
    robustness: Annotated[float, Column("r{delta}", "score")]
    qps: Annotated[float, Column("qps", text="{:,.0f}")]


class FrontPart(ReportPart):
    """The three-way choice: the number of points that reach the constraint, and their Pareto front on the other two
    quantities.
    """

    what: str
    least: float
    delta: float
    reached: int = Field(description="points that reach the constraint")
    points: int
    front: tuple[ChosenPart, ...]


class LossPart(ReportPart):
    """Loss at one effort, compared with the exact search."""

    effort: int
    losses: Annotated[Mapping[str, MeanPart], Column("{key}", "signed")] = Field(
        description="relative loss by metric, with the cutoff in the name of the metric"
    )


class TunedPart(ReportPart):
    """The minimum effort of an index whose loss is significantly within the limit."""

    index: str
    setting: str
    limit: float
    depth: int
    origin: Origin
    questions: int
    effort: int | None = Field(description="lowest sufficient effort; null if no effort is sufficient")
    yaml: str | None = Field(description="the retriever's index as YAML for the configuration")
    tried: tuple[LossPart, ...]


class BinPart(ReportPart):
    """Correctness of the answers to queries with about the same recall."""

    recall: Annotated[float, Column("recall from", text="{:g}")]
    answers: Annotated[int, Column("answers", text="{:,}")]
    accuracy: Annotated[float, Column("correct", "score")]
    exact: Annotated[float, Column("by the exact search", "score")] = Field(
        description="accuracy of answers from the exact search, for the same queries"
    )
    ratio: Annotated[MeanPart, Column("ratio", "score")]


class RequiredRecallPart(ReportPart):
    """How much recall is needed for correct answers."""

    k: int
    near: float
    delta: Number = Field(description="required recall; null if the answers do not determine it")
    bins: tuple[BinPart, ...]


class LowRecallPart(IndexAtEffort):
    """Queries for which the recall of an index is below a limit."""

    below: float = Field(description="all of these queries have a recall below this value")
    share: Annotated[float, Column("share", "score")] = Field(description="share of all queries")
    qids: Annotated[tuple[str, ...], Column("such as", text=_joined_ids)] = Field(
        description="example queries, lowest recall first; row numbers if the queries have no ids"
    )


class IndexFindings(DiagnosisFindings):
    """Findings of `raggs diagnose index`."""

    v: Literal[1] = 1
    rows: int
    dims: int
    source: str = Field(description="source of the vectors")
    asked: tuple[QuerySetPart, ...]
    exact_qps: Number = Field(description="queries per second of the exact search")
    load: Number = Field(description="highest processor load during the measurement")
    deltas: tuple[float, ...]
    points: tuple[PointPart, ...]
    matched: tuple[MatchedPart, ...]
    left_out: tuple[LowRecallPart, ...] = ()
    front: FrontPart | None = None
    tuned: tuple[TunedPart, ...] = ()
    delta: RequiredRecallPart | None = None


def _share(given: object) -> object:
    """Convert a share; a text such as "1%" becomes 0.01."""
    if isinstance(given, str) and given.strip().endswith("%"):
        try:
            return float(given.strip()[:-1]) / 100
        except ValueError:
            return given
    return given


def _vary(given: object) -> object:
    """Convert arguments such as "m=8,16" to a mapping."""
    if not isinstance(given, list | tuple):
        return given
    found: dict[str, list[str]] = {}
    for word in given:
        name, equals, values = str(word).partition("=")
        if not equals or not values:
            raise UsageError(
                f"{word!r} is not a setting with values", remedy="write a setting with values, e.g. m=8,16"
            )
        found.setdefault(name.strip(), []).extend(values.split(","))
    return found


def _fixed(given: object) -> object:
    """Convert arguments such as "recall=0.9" to a mapping."""
    if not isinstance(given, str):
        return given
    what, _, least = given.partition("=")
    return {"what": what.strip(), "least": _share(least)}


IndexSpec = Annotated[IndexConfig, OneOf(indexes.REGISTRY), from_word(indexes.REGISTRY, IndexConfig)]
Share = Annotated[float, Field(gt=0, le=1)]
FixableMeasure = Literal["recall", "robustness", "qps"]


class FixedTarget(Settings):
    """The constraint: one of three quantities, and its minimum. The Pareto front is computed for the other two."""

    what: FixableMeasure = Field("recall", description="recall, robustness (at `robust_at`) or qps")
    least: float = Field(0.9, gt=0, description="minimum value")


class IndexDiagnosisConfig(DiagnosisConfig):
    """Settings of `raggs diagnose index`."""

    type: Literal["index"] = "index"
    indexes: Annotated[tuple[IndexSpec, ...], BeforeValidator(split_commas), Flag(("--index",), "LIST")] = Field(
        (), description="indexes; default: hnsw, ivf and, if 4 divides the dimensions, ivf with product quantisation"
    )
    vary: Annotated[Mapping[str, tuple[int, ...]], BeforeValidator(_vary), Flag(("--vary",), "NAME=LIST")] = Field(
        {}, description="values to try for a setting, e.g. m=8,16; used for every index that has the setting"
    )
    k: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        (10, 100), min_length=1, description="number of nearest neighbours to retrieve"
    )
    held_out: int = Field(
        500, ge=0, description="number of passages that are not indexed, but used as queries (at most a tenth of all)"
    )
    deltas: Annotated[tuple[Share, ...], Flag(("--deltas",), "SHARE")] = Field(
        (0.1, 0.3, 0.5, 0.7, 0.9), min_length=1, description="recall levels that define robustness"
    )
    recall_levels: Annotated[tuple[Share, ...], Flag(value="SHARE")] = Field(
        (0.8, 0.9, 0.95), min_length=1, description="mean recall levels at which indexes are compared"
    )
    timed: int = Field(100, ge=1, description="number of timed queries per measured point")
    rounds: int = Field(3, ge=1, description="repetitions of each timed query; the median counts")
    tune: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, BeforeValidator(_share), Flag(value="LOSS")] = Field(
        None, description="maximum loss, such as 0.01 or 1%; raggs finds the lowest effort that does not exceed it"
    )
    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (10, 30), min_length=1, description="cutoffs at which the loss of --tune is measured"
    )
    measure: str | None = Field(
        None,
        description="metric for the loss of --tune, without @k (needs a golden set); default: recall of the exact "
        "neighbours",
    )
    depth: int | None = Field(
        None,
        ge=1,
        description="number of neighbours per query when tuning; default: the dense retriever's k, or 50, "
        "but at least the largest cutoff",
    )
    constraint: Annotated[FixedTarget | None, BeforeValidator(_fixed), Flag(value="WHAT=LEAST")] = Field(
        None, description="minimum of recall, robustness or qps; the report shows the best points by the other two"
    )
    robust_at: Annotated[Share, Flag(value="SHARE")] = Field(
        0.3, description="recall that defines robustness in --constraint, unless --correct determines it"
    )
    correct: Path | None = Field(
        None,
        description="CSV file with the columns qid, setting and correct (0 or 1), to determine the recall that correct "
        "answers need",
    )
    accuracy_share: Annotated[Share, Flag(value="SHARE")] = Field(
        NEAR_ACCURACY_SHARE, description="accuracy that is sufficient, as a share of the exact search's accuracy"
    )
    vectors: Path | None = Field(None, description="NumPy file with passage vectors, instead of a corpus")
    queries: Path | None = Field(None, description="NumPy file with query vectors (needs --vectors)")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.queries is not None and self.vectors is None:
            raise ValueError("--queries needs --vectors")
        if self.tune is not None and self.depth is not None and self.depth < max(self.cutoffs):
            raise ValueError(f"depth {self.depth} is smaller than the largest cutoff {max(self.cutoffs)}")
        return self
