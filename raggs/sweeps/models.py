"""Records of a sweep: lines of `timings.jsonl` and `systems.jsonl`, and the report in `sweep.json`.

An unknown number is null, never 0. New versions of raggs add fields, but do not rename fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from raggs.base import __version__
from raggs.base.document import Column
from raggs.base.types import Number
from raggs.evaluation.messages import inconclusive
from raggs.evaluation.models import ComparisonPart, GoldenPart, ProjectionPart, ReportPart, ScorePart, UnjudgedPart
from raggs.stats.front import MAX_LOSS
from raggs.sweeps.messages import byte_size, change, cut_time, ms, ms_change, per_second, usd, usd_change

UNCERTAIN_MARK = "?"
MEDIAN_LEGEND = "median latency before generation: median over queries of the median over rounds"
TAIL_LEGEND = "95th percentile of all single searches, over queries and rounds; latency limits apply to it"
PRICE = "USD per 1,000 queries: embedding, reranking, and the passages that the generator reads"
StepKind = Literal["embed", "retrieve", "rerank"]


def _is_none(value: object) -> bool:
    return value is None


def _is_empty(value: Mapping[str, object]) -> bool:
    return not value


class Timing(ReportPart):
    """A line of timings.jsonl: durations of one step in one round, for some queries that were processed one by one."""

    step: str = Field(description="hash of the timed step; equal steps of different systems have the same hash")
    kind: StepKind
    what: str = Field(description="the step as text")
    round: int = Field(
        ge=1, description="number of the round, from 1 to `latency.passes`; 1 for provider calls, which are timed once"
    )
    paid: bool = Field(False, description="whether the step calls a provider; such calls are timed when they are made")
    load: float | None = Field(None, description="system load per processor, averaged over the previous minute")
    ms: Mapping[str, float] = Field(description="milliseconds by query")


class LatencySpread(ReportPart):
    """Latency of queries in milliseconds.

    The usual latency of a query is the sum over steps of the step's median over rounds.
    """

    p50: Annotated[float, Column("p50", text=ms)] = Field(description="median over queries of their usual latency")
    p95: Annotated[float, Column("p95", text=ms)] = Field(
        description="time within which 95% of all single searches ended, over all queries and rounds"
    )
    low: Annotated[Number, Column("low", text=ms)] = Field(
        description="lower bound of the interval of p95 over resampled queries and rounds"
    )
    high: Annotated[Number, Column("high", text=ms)] = Field(
        description="upper bound of this interval; null if there are too few searches"
    )
    searches: Annotated[int, Column("searches", text="{:,}")] = Field(
        description="number of single searches from which p95 is computed"
    )
    p95_of_medians: Annotated[float, Column("p95 of medians", text=ms)] = Field(
        description="95th percentile over queries of their usual latency, usually below p95"
    )
    calls: int = Field(description="number of measurements; for several steps, the largest number of one step")
    paid: bool = Field(False, description="whether the times include calls to a provider")


class LatencyPart(ReportPart):
    """Latency of a query before generation."""

    embed: LatencySpread | None = Field(None, description="rewriting and embedding; null if not timed")
    retrieve: LatencySpread | None = None
    rerank: LatencySpread | None = None
    total: LatencySpread | None = Field(
        None, description="sum over the steps; null if a step of the system was not timed"
    )


CostStep = Literal["embed", "rerank", "generate"]
# number of units that a price is for
UNITS: Mapping[str, int] = {"tokens": 1_000_000, "searches": 1000, "answers": 1000}


class CostLine(ReportPart):
    """Price and usage of one paid model."""

    step: CostStep
    model: str = Field(description='"generator" for the model that reads the passages')
    unit: Literal["tokens", "searches", "answers"] = Field(description='"answers" if the cost per answer was measured')
    per_query: float = Field(description="mean number of units per query")
    price: Number = Field(description="USD per 1M tokens, 1,000 searches or 1,000 answers; null if unknown")

    def usd(self) -> Number:
        """Return the cost in USD per 1,000 queries; None if the price is unknown."""
        return None if self.price is None else 1000 * self.per_query * self.price / UNITS[self.unit]


class CostPart(ReportPart):
    """Cost of a system in USD per 1,000 queries."""

    embed: Number = Field(description="rewriting and embedding the query; null if a price is unknown")
    rerank: Number
    generate: Number = Field(description="input of the generator; 0 if no price of a generator is configured")
    total: Number
    question_tokens: float = Field(description="mean tokens of a query as it is embedded")
    candidate_tokens: Number = Field(description="mean tokens that the reranker reads per candidate")
    candidate_tokens_sd: Number
    context_tokens: Number = Field(description="mean tokens of the passages that the generator reads")
    lines: tuple[CostLine, ...] = Field(
        (), description="price and usage of each paid model, from which an audit recomputes the amounts"
    )

    @classmethod
    def of(cls, lines: Sequence[CostLine], **tokens: Number) -> CostPart:
        """Return the cost as the sum of some lines.

        Args:
            lines: price and usage of each paid model.
            tokens: the fields that contain numbers of tokens.
        """
        steps: tuple[CostStep, ...] = ("embed", "rerank", "generate")
        usd = {step: add([line.usd() for line in lines if line.step == step]) for step in steps}
        return cls.model_validate({**usd, "total": add(list(usd.values())), "lines": tuple(lines), **tokens})

    def usd(self) -> Mapping[str, Number]:
        """Return the cost in USD per 1,000 queries, by step and in total."""
        return {"embed": self.embed, "rerank": self.rerank, "generate": self.generate, "total": self.total}


def add(amounts: Sequence[Number]) -> Number:
    """Return the sum; None if an amount is unknown."""
    return None if None in amounts else sum(each or 0.0 for each in amounts)


class MemoryPart(ReportPart):
    """Memory in bytes that vectors and index together need for a search at full speed."""

    kind: str = Field(description='index and data type of its vectors, such as "hnsw-int8"')
    rows: int
    dims: int
    bytes: Annotated[int, Column("here", text=byte_size)]
    million: Annotated[int, Column("1 million", text=byte_size)] = Field(
        description="bytes at one million vectors, with the same bytes per vector"
    )
    ten_million: Annotated[int, Column("10 million", text=byte_size)]
    built_s: Annotated[float, Column("built in", text=lambda seconds: f"{seconds:,.1f} s" if seconds else None)] = (
        Field(description="build time in seconds, possibly of an earlier run; 0 if nothing is built")
    )


class CutPart(ReportPart):
    """A line of cuts.jsonl: one chunking of the corpus."""

    label: Annotated[str, Column("chunking")] = Field(description="level of the axis `chunker`")
    chunker: Annotated[str, Column("chunker")] = Field(description="chunker and its settings, as text")
    content: str = Field(description="hash of the passages of this chunking")
    passages: Annotated[int, Column("passages", text="{:,}")]
    seconds: Annotated[Number, Column("chunked in", text=cut_time)] = Field(
        description="duration of the chunking in seconds; null if unknown"
    )
    golden: Annotated[bool, Column("scored", text=lambda judged: "as judged" if judged else "by projection")] = Field(
        description="whether the golden set was judged on these passages; otherwise grades are projected"
    )


class FitPart(ReportPart):
    """Fit of the weight of a `boosted` reranker. The weight for each half of the queries is chosen on the other
    half.
    """

    measure: str = Field(description="measure that the chosen weight maximizes")
    seed: int = Field(description="random seed for splitting the queries into halves")
    first: tuple[str, ...] = Field(description="queries of the first half; all others are in the second")
    weights: tuple[float, ...] = Field(description="weights that were tried")
    chosen: tuple[float, float] = Field(
        description="weight of the first half (chosen on the second), then of the second (chosen on the first)"
    )
    files: tuple[str, ...] = Field((), description="files of the lists at each weight, relative to the sweep's folder")


class SystemRow(ReportPart):
    """A line of systems.jsonl: one system and all of its measurements."""

    name: Annotated[str, Column("system")]
    levels: Mapping[str, str] = Field(description="level by axis")
    fingerprint: str = Field(description="hash of everything that the system's lists depend on")
    file: str | None = Field(
        description="path of the system's lists as a TREC run file: relative to the "
        "sweep's folder, or absolute for an external "
        "run; null if unfinished"
    )
    sha256: str | None = Field(None, description="hash of an external run file; null for systems of the sweep itself")
    k: int = Field(description="number of candidates; the maximum over queries if depth is routed")
    mean_k: Number = Field(None, description="mean number of candidates per query if depth is routed; otherwise null")
    escalated: Number = Field(None, description="share of queries that were searched deeper, if depth is routed")
    questions: int = Field(description="number of queries on which the system was measured")
    failed: str | None = Field(None, description="why the system is unfinished")
    dropped: str | None = Field(None, description="why successive halving dropped the system")
    undecided: str | None = Field(
        None,
        exclude_if=_is_none,
        description="why successive halving kept the system, although it is worse by the current labels",
    )
    scores: Mapping[str, ScorePart] = Field(default_factory=dict, description="by measure")
    realised: Mapping[str, Number] = Field(
        default_factory=dict, description="%PROC as a ratio of means: mean score over mean ceiling, by measure"
    )
    holes: Annotated[
        Mapping[str, Number],
        Column(
            "unjudged@{key}",
            text="{:.0%}",
            legend="share of the first {key} passages that is unjudged and counts as not relevant",
        ),
    ] = Field(default_factory=dict, description="share of the first passages that is unjudged, by cutoff")
    unjudged_characters: Mapping[str, Number] = Field(
        default_factory=dict,
        description="share of the characters of the first passages that is unjudged, by "
        "cutoff; only if systems differ in chunking",
    )
    projection: ProjectionPart | None = Field(None, description="how grades were projected to this system's chunks")
    steps: Mapping[StepKind, tuple[str, ...]] = Field(
        default_factory=dict, description="hashes of the timed steps in timings.jsonl"
    )
    latency: LatencyPart = LatencyPart()
    cost: CostPart | None = None
    memory: MemoryPart | None = None
    fit: FitPart | None = Field(
        None,
        exclude_if=_is_none,
        description="how the sweep chose the weight of a reranker; omitted if the sweep did not choose it",
    )
    efficiency: Annotated[
        Number,
        Column(
            "efficiency",
            text=per_second,
            legend="mean quality per second (p50) of reranking, or of retrieval without a reranker",
        ),
    ] = Field(None, description="mean quality per second of reranking, or of retrieval without a reranker")
    efficiency_all: Annotated[
        Number,
        Column(
            "end to end",
            text=per_second,
            legend="mean quality per second of all stages before generation, plus generation_ms",
        ),
    ] = Field(None, description="mean quality per second of all stages before generation")

    @property
    def plain(self) -> bool:
        """Whether all queries have the same number of candidates."""
        return self.levels.get("k", "0").isdigit()

    @property
    def p50(self) -> Annotated[Number, Column("p50", text=ms, legend=MEDIAN_LEGEND)]:
        """Median of the total latency, in milliseconds."""
        return None if self.latency.total is None else self.latency.total.p50

    @property
    def p95(self) -> Annotated[Number, Column("p95", text=ms, legend=TAIL_LEGEND)]:
        """95th percentile of the total latency, in milliseconds."""
        return None if self.latency.total is None else self.latency.total.p95

    @property
    def price(self) -> Annotated[Number, Column("per 1,000", text=usd, legend=PRICE)]:
        """Cost in USD per 1,000 queries."""
        return None if self.cost is None else self.cost.total

    @property
    def vectors(self) -> Annotated[str, Column("vectors")]:
        """Embedder, index and chunker of the system, as text."""
        return " in ".join(filter(None, map(self.levels.get, ("embedder", "index", "chunker"))))


class EffectPart(ReportPart):
    """Main effect: the mean change from one level of an axis to another, over pairs of otherwise equal systems."""

    axis: Annotated[str, Column("axis")]
    level: str
    against: str
    pairs: Annotated[int, Column("pairs")]
    quality: Annotated[Number, Column("{quality}", "signed", bounds=("low", "high"), mark="doubt")] = Field(
        description="mean change of the first quality measure"
    )
    low: Number
    high: Number
    clear: bool = Field(
        description="whether the effect is significant for any grades of the unjudged passages, with Bonferroni's "
        "correction over all effects"
    )
    unjudged: UnjudgedPart | None = Field(
        None, exclude_if=_is_none, description="why unjudged passages could reverse the effect; omitted if they cannot"
    )
    latency_ms: Annotated[Number, Column("p50", text=ms_change)] = Field(description="mean change of median latency")
    usd_per_1k: Annotated[Number, Column("per 1,000", text=usd_change)]

    @property
    def change(self) -> Annotated[str, Column("from → to")]:
        """The two levels, as ``from → to``."""
        return f"{self.against} → {self.level}"

    @property
    def doubt(self) -> str:
        """Mark of an effect that is not significant."""
        return "" if self.clear else UNCERTAIN_MARK


class InteractionPart(ReportPart):
    """Interaction: how much the effect of one axis depends on the level of another axis."""

    axes: tuple[str, str]
    strength: Number
    low: Number
    high: Number
    clear: bool = Field(
        description="whether the interaction is significant, with Bonferroni's correction over all interactions"
    )
    sentence: str
    unjudged: UnjudgedPart | None = Field(
        None,
        exclude_if=_is_none,
        description="why unjudged passages could reverse the interaction; omitted if they cannot",
    )


class IndexLossPart(ReportPart):
    """Changes by an approximate index compared with the exact index, as shares: -0.12 means 12% less."""

    system: Annotated[str, Column("system")]
    exact: str
    quality: Annotated[Mapping[str, Number], Column("{key}", text="{:+.1%}")]
    latency: Annotated[Number, Column("search", text="{:+.1%}")] = Field(description="change of median search latency")
    loss: Number = Field(description="largest relative loss over the measures; 0.02 is acceptable, 0.01 is better")
    unjudged: UnjudgedPart | None = Field(
        None,
        exclude_if=_is_none,
        description="why unjudged passages could move a measure across the acceptable loss; omitted if they cannot",
    )

    @property
    def verdict(self) -> Annotated[str, Column("verdict")]:
        """Whether the loss is within the acceptable limit, as text."""
        if self.unjudged is not None:
            return inconclusive(self.unjudged)
        return f"{'' if self.loss is not None and self.loss <= MAX_LOSS else 'not '}within {MAX_LOSS:.0%}"


class StepPart(ReportPart):
    """Effect of retrieving more candidates."""

    system: Annotated[str, Column("system")]
    smaller: str
    k: int
    from_k: int
    quality: Annotated[Number, Column("{quality}", "signed", mark="doubt")] = Field(
        description="increase of the first quality measure"
    )
    ms: Annotated[Number, Column("p50", text=ms_change)] = Field(description="increase of the median latency")
    usd_per_1k: Annotated[Number, Column("per 1,000", text=usd_change)]
    per_ms: Number = Field(description="quality gained per millisecond; null if the latency does not increase")
    per_usd: Number = Field(description="quality gained per USD for 1,000 queries; null if the cost does not increase")
    within_jitter: bool = Field(description="whether the two latencies are so close that they count as equal")
    unjudged: UnjudgedPart | None = Field(
        None,
        exclude_if=_is_none,
        description="why unjudged passages could decide whether the measure rises, falls "
        "or stays; omitted if they cannot",
    )

    @property
    def step(self) -> Annotated[str, Column("k")]:
        """The smaller and the larger number of candidates, as text."""
        return f"{self.from_k} → {self.k}"

    @property
    def gain(self) -> Annotated[Number, Column("quality per USD", text=change)]:
        """Quality gained per USD; None if it is not positive or is inconclusive."""
        return self.per_usd if self.per_usd and self.per_usd > 0 and self.unjudged is None else None

    @property
    def doubt(self) -> str:
        """Mark of a change whose direction unjudged passages could reverse."""
        return "" if self.unjudged is None else UNCERTAIN_MARK


class WinPart(ReportPart):
    """Share of resamples in which a system is chosen."""

    system: Annotated[str, Column("system")]
    share: Annotated[float, Column("chosen", text="{:.0%}")]


class UniqueContributionPart(ReportPart):
    """Score of a system, and its score if the passages that only its group returned count as unjudged."""

    system: Annotated[str, Column("system")]
    group: str = Field(
        description="group of systems whose unique passages count as unjudged together, "
        "because these systems search alike"
    )
    measure: str
    score: Annotated[Number, Column("{quality}", "score")]
    without: Annotated[Number, Column("without its own", "score")]
    alone: Annotated[int, Column("passages")] = Field(
        description="judged passages that only this group returned, over all queries"
    )
    overtaken_by: Annotated[tuple[str, ...], Column("then behind", text=", ".join)] = Field(
        description="systems of other groups that rank above this system only if these passages count as unjudged"
    )


class ChoicePart(ReportPart):
    """Recommended system under the limits, and the reasons for it."""

    winner: str | None
    best: str | None = Field(
        None, description="system with the best mean of the first measure under the limits; null with a quality target"
    )
    tied: tuple[str, ...] = Field((), description="systems equivalent to the best, including itself")
    sentence: str
    changes: tuple[str, ...] = Field((), description="limits under which another system would be chosen, as sentences")
    unknown: tuple[str, ...] = Field((), description="sentences on the choice in resampled queries, and on ties")
    excluded: Mapping[str, str] = Field(default_factory=dict, description="by system, why it was not chosen")
    limits: Mapping[str, float] = Field(default_factory=dict)
    inconclusive: Mapping[str, UnjudgedPart] = Field(
        default_factory=dict,
        exclude_if=_is_empty,
        description="by system, why unjudged passages could put it before the winner; with a limit on quality, also "
        "why they could move it, or the winner, across that limit",
    )


class FrontierPart(ReportPart):
    """Systems within one limit on latency: the front of these systems, and the chosen system."""

    slo_ms: Number = Field(description="limit on the p95 latency in milliseconds; null if there is no limit")
    allowed: int = Field(description="number of systems within the limit")
    over: tuple[str, ...] = Field(description="systems whose p95 is above the limit, or unknown")
    front: tuple[str, ...] = Field(description="best first")
    choice: str | None = Field(
        description="system chosen within this limit and the others; null if no system meets all limits"
    )
    inconclusive: Mapping[str, UnjudgedPart] = Field(
        default_factory=dict,
        exclude_if=_is_empty,
        description="by system, why unjudged passages could change `choice`",
    )


class SweepReport(ReportPart):
    """Content of sweep.json."""

    v: Literal[2] = 2
    raggs: str = __version__
    name: str
    golden: GoldenPart
    questions: int
    quality: tuple[str, ...] = Field(description="quality measures, most important first")
    measures: tuple[str, ...]
    cutoffs: tuple[int, ...]
    ceilings: tuple[str, ...] = Field(description="measures with a ceiling (PROC); empty if grades are not 1 to 5")
    jitter_ms: float
    margin: float = Field(
        0.0, description="systems are equivalent if the interval of their difference is within -margin to margin"
    )
    cost_jitter: float = Field(0.0, description="relative difference below which costs count as equal on the front")
    confidence: float
    seed: int
    systems: tuple[SystemRow, ...]
    cuts: tuple[CutPart, ...] = Field((), description="chunkings of the corpus; empty if all systems use its chunks")
    left_out: tuple[str, ...] = Field((), description="combinations of the grid that are not systems, and why")
    front: tuple[str, ...] = ()
    dominated: Mapping[str, str] = Field(
        default_factory=dict, description="for each dominated system, another system that dominates it"
    )
    choice: ChoicePart
    frontiers: tuple[FrontierPart, ...] = Field(
        (), description="front for each limit on latency (SLO), and without a limit"
    )
    effects: tuple[EffectPart, ...] = ()
    interactions: tuple[InteractionPart, ...] = ()
    deltas: tuple[IndexLossPart, ...] = ()
    steps: tuple[StepPart, ...] = ()
    wins: tuple[WinPart, ...] = ()
    baseline: str | None = None
    comparisons: tuple[ComparisonPart, ...] = ()
    loyalty: tuple[UniqueContributionPart, ...] = ()
    notes: tuple[str, ...] = ()

    def system(self, name: str) -> SystemRow:
        """Return the system with a name.

        Raises:
            StopIteration: no system has this name.
        """
        return next(iter(row for row in self.systems if row.name == name))


class CeilingPart(ReportPart):
    """A score, and the maximum score that reordering the system's candidates could achieve."""

    score: Number
    proc: Number = Field(description="pool-restricted oracle ceiling (PROC), mean over queries")
    pct_proc: Number = Field(description="%PROC: mean score over mean ceiling, in 0..1")


class OutcomePart(ReportPart):
    """Claims of a sweep, stored in its manifest so that they can be verified without the report."""

    limits: Mapping[str, float] = Field(description="limits of the choice: latency_ms (the SLO), usd_per_1k, quality")
    choice: str | None = Field(description="system chosen under the limits")
    front: tuple[str, ...] = Field(description="the front over cost, latency and quality, best first")
    frontiers: tuple[FrontierPart, ...] = Field(description="the front and the choice for each limit on latency (SLO)")
    ceilings: Mapping[str, Mapping[str, CeilingPart]] = Field(description="by system and measure")

    @classmethod
    def of(cls, report: SweepReport) -> OutcomePart:
        """Return the claims of a report."""
        return cls(
            limits=report.choice.limits,
            choice=report.choice.winner,
            front=report.front,
            frontiers=report.frontiers,
            ceilings={
                row.name: {
                    measure: CeilingPart(
                        score=row.scores[measure].mean, proc=row.scores[f"proc_{measure}"].mean, pct_proc=share
                    )
                    for measure, share in row.realised.items()
                }
                for row in report.systems
            },
        )


class PlanLine(ReportPart):
    """Part of a sweep that calls a paid model."""

    what: Annotated[str, Column("part")]
    model: Annotated[str, Column("model")]
    calls: Annotated[int, Column("calls", text="{:,}")]
    tokens: Annotated[int, Column("tokens", text="{:,}")]
    usd: Annotated[Number, Column("USD", text="{:,.4f}", none="unknown")] = Field(
        description="null if the price is unknown"
    )


class SweepPlan(ReportPart):
    """Plan of a sweep, printed by a dry run."""

    name: str
    systems: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]] = Field(
        default_factory=dict, description="levels of the grid by axis; `systems` lists the systems outside it"
    )
    questions: int
    passages: int = Field(description="number of passages in all chunkings of the corpus")
    cuts: int = Field(1, description="number of chunkings of the corpus")
    left_out: tuple[str, ...]
    kept: int = Field(description="number of lists that are reused from an earlier sweep")
    lists: int
    paid: tuple[PlanLine, ...]
    hours: float = Field(
        description="estimated duration of the paid calls in hours, at one second per call "
        "and the configured concurrency"
    )

    @property
    def usd(self) -> Number:
        """Total cost of the paid parts in USD; None if a price is unknown."""
        return add([line.usd for line in self.paid])
