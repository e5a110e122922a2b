"""Records of a sweep: lines of `timings.jsonl` and `systems.jsonl`, and the report in `sweep.json`.

An unknown number is null, never 0. Fields are added, not renamed.
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
    """A line of timings.jsonl: one step in one round, timed for some queries one by one."""

    step: str = Field(description="hash of what is timed; equal steps of different systems are one")
    kind: StepKind
    what: str = Field(description="the step in words")
    round: int = Field(ge=1, description="of `latency.passes`; 1 for the calls of a provider, which are timed once")
    paid: bool = Field(False, description="whether these are calls of a provider, timed when they were paid")
    load: float | None = Field(None, description="tasks that wanted a processor in the minute before, per processor")
    ms: Mapping[str, float] = Field(description="milliseconds by question")


class LatencySpread(ReportPart):
    """Latency of queries in milliseconds. The usual latency of a query is the median over rounds, summed over steps."""

    p50: Annotated[float, Column("p50", text=ms)] = Field(description="median over queries of their usual waits")
    p95: Annotated[float, Column("p95", text=ms)] = Field(
        description="time within which 95% of all single searches ended, over all queries and rounds"
    )
    low: Annotated[Number, Column("low", text=ms)] = Field(
        description="lower bound of the interval of p95 over resampled queries and rounds"
    )
    high: Annotated[Number, Column("high", text=ms)] = Field(
        description="upper bound; null where there are too few searches to bound p95"
    )
    searches: Annotated[int, Column("searches", text="{:,}")] = Field(description="single searches that p95 rests on")
    p95_of_medians: Annotated[float, Column("p95 of medians", text=ms)] = Field(
        description="95th percentile over queries of their usual waits, below p95 as a rule"
    )
    calls: int = Field(description="measurements that this rests on")
    paid: bool = Field(False, description="whether a provider was timed, when it was paid")


class LatencyPart(ReportPart):
    """Latency of a query before generation."""

    embed: LatencySpread | None = Field(None, description="rewriting and embedding; null where nothing of it was timed")
    retrieve: LatencySpread | None = None
    rerank: LatencySpread | None = None
    total: LatencySpread | None = Field(
        None, description="the sum; null where a step that the system has was not timed"
    )


CostStep = Literal["embed", "rerank", "generate"]
UNITS: Mapping[str, int] = {"tokens": 1_000_000, "searches": 1000, "answers": 1000}  # units per price


class CostLine(ReportPart):
    """Price and usage of one paid model."""

    step: CostStep
    model: str = Field(description='"generator" for what reads the passages')
    unit: Literal["tokens", "searches", "answers"] = Field(description='"answers": measured, what an answer cost')
    per_query: float = Field(description="units that a query takes, mean")
    price: Number = Field(description="USD for 1M tokens, 1,000 searches or 1,000 answers; null where it is not known")

    def usd(self) -> Number:
        """Return USD per 1000 queries."""
        return None if self.price is None else 1000 * self.per_query * self.price / UNITS[self.unit]


class CostPart(ReportPart):
    """USD per 1000 queries."""

    embed: Number = Field(description="rewriting and embedding the question; null where a price is not known")
    rerank: Number
    generate: Number = Field(description="what the generator reads; 0 where no price of it was named")
    total: Number
    question_tokens: float = Field(description="mean tokens of a question as it is embedded")
    candidate_tokens: Number = Field(description="mean tokens that the reranker reads for a candidate")
    candidate_tokens_sd: Number
    context_tokens: Number = Field(description="mean tokens of the passages that the generator reads")
    lines: tuple[CostLine, ...] = Field((), description="what the amounts are made of; an audit derives them again")

    @classmethod
    def of(cls, lines: Sequence[CostLine], **tokens: Number) -> CostPart:
        """Return the cost of some lines.

        Args:
            tokens: fields on tokens.
        """
        steps: tuple[CostStep, ...] = ("embed", "rerank", "generate")
        usd = {step: add([line.usd() for line in lines if line.step == step]) for step in steps}
        return cls.model_validate({**usd, "total": add(list(usd.values())), "lines": tuple(lines), **tokens})

    def usd(self) -> Mapping[str, Number]:
        """Return the amounts by purpose."""
        return {"embed": self.embed, "rerank": self.rerank, "generate": self.generate, "total": self.total}


def add(amounts: Sequence[Number]) -> Number:
    """Return the sum; None if an amount is unknown."""
    return None if None in amounts else sum(each or 0.0 for each in amounts)


class MemoryPart(ReportPart):
    """Bytes in memory for a search at full speed, vectors and index together."""

    kind: str = Field(description='the index and what its rows are kept as, such as "hnsw-int8"')
    rows: int
    dims: int
    bytes: Annotated[int, Column("here", text=byte_size)]
    million: Annotated[int, Column("1 million", text=byte_size)] = Field(
        description="bytes at one million vectors, by the same bytes a vector"
    )
    ten_million: Annotated[int, Column("10 million", text=byte_size)]
    built_s: Annotated[float, Column("built in", text=lambda seconds: f"{seconds:,.1f} s" if seconds else None)] = (
        Field(description="seconds that building took, whenever that was; 0 where nothing is built")
    )


class CutPart(ReportPart):
    """A line of cuts.jsonl: one chunking of the corpus."""

    label: Annotated[str, Column("chunking")] = Field(description="as the axis `chunker` has it")
    chunker: Annotated[str, Column("chunker")] = Field(description="the chunker with its settings, in words")
    content: str = Field(description="hash of its passages")
    passages: Annotated[int, Column("passages", text="{:,}")]
    seconds: Annotated[Number, Column("chunked in", text=cut_time)] = Field(
        description="that cutting took when the passages were made; null where nobody knows"
    )
    golden: Annotated[bool, Column("scored", text=lambda judged: "as judged" if judged else "by projection")] = Field(
        description="whether the golden set was judged on these passages; else grades are projected"
    )


class FitPart(ReportPart):
    """Fit of the weight of a `boosted` reranker: chosen on each half of the queries for the other half."""

    measure: str = Field(description="whose mean was the greatest")
    seed: int = Field(description="by which the halves were drawn")
    first: tuple[str, ...] = Field(description="the questions of the first half; all others are the second")
    weights: tuple[float, ...] = Field(description="that were tried")
    chosen: tuple[float, float] = Field(
        description="the weight of the first half, chosen on the second, and that of the second, chosen on the first"
    )
    files: tuple[str, ...] = Field((), description="the lists at each weight, below the sweep's folder")


class SystemRow(ReportPart):
    """A line of systems.jsonl: one system and all of its measurements."""

    name: Annotated[str, Column("system")]
    levels: Mapping[str, str] = Field(description="by axis, the level")
    fingerprint: str = Field(description="hash of everything that its lists depend on")
    file: str | None = Field(
        description="its lists as a TREC run, below the sweep's folder; whole path of a run that was made elsewhere; "
        "null where unfinished"
    )
    sha256: str | None = Field(None, description="of a run that was made elsewhere; null for the sweep's own")
    k: int = Field(description="candidates; the most of any question where depth is routed")
    mean_k: Number = Field(None, description="mean candidates of a question where depth is routed, else null")
    escalated: Number = Field(None, description="share of the questions that were searched deeper, there")
    questions: int = Field(description="questions that it was measured on")
    failed: str | None = Field(None, description="why it is unfinished")
    dropped: str | None = Field(None, description="why halving gave it up")
    undecided: str | None = Field(
        None, exclude_if=_is_none, description="why halving did not give it up, although it is worse as labels stand"
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
            legend="share of the top {key} that is unjudged and counts as not relevant",
        ),
    ] = Field(default_factory=dict, description="unjudged share of the top, by cutoff")
    unjudged_characters: Mapping[str, Number] = Field(
        default_factory=dict,
        description="share of the top's characters that nobody judged, by cutoff; where systems differ in their cut",
    )
    projection: ProjectionPart | None = Field(None, description="how grades were carried over to this system's cut")
    steps: Mapping[StepKind, tuple[str, ...]] = Field(
        default_factory=dict, description="the steps in timings.jsonl that a question waits for"
    )
    latency: LatencyPart = LatencyPart()
    cost: CostPart | None = None
    memory: MemoryPart | None = None
    fit: FitPart | None = Field(
        None, exclude_if=_is_none, description="of a reranker whose weight the sweep chose, how; else left out"
    )
    efficiency: Annotated[
        Number,
        Column(
            "efficiency",
            text=per_second,
            legend="mean quality per second (p50) of reranking, or of retrieval without a reranker",
        ),
    ] = Field(None, description="mean quality over seconds of reranking, or of retrieval without one")
    efficiency_all: Annotated[
        Number,
        Column(
            "end to end",
            text=per_second,
            legend="mean quality per second of all stages before generation, plus generation_ms",
        ),
    ] = Field(None, description="the same over all seconds before generation")

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
        """USD per 1000 queries."""
        return None if self.cost is None else self.cost.total

    @property
    def vectors(self) -> Annotated[str, Column("vectors")]:
        """Vectors of the system, and the index that holds them."""
        return " in ".join(filter(None, map(self.levels.get, ("embedder", "index", "chunker"))))


class EffectPart(ReportPart):
    """Main effect: the change from one level of an axis to another, over pairs of otherwise equal systems."""

    axis: Annotated[str, Column("axis")]
    level: str
    against: str
    pairs: Annotated[int, Column("pairs")]
    quality: Annotated[Number, Column("{quality}", "signed", bounds=("low", "high"), mark="doubt")] = Field(
        description="mean change of the first measure that decides"
    )
    low: Number
    high: Number
    clear: bool = Field(
        description="whether it is not chance, with Bonferroni's correction over all effects, whatever unjudged "
        "passages turn out to be"
    )
    unjudged: UnjudgedPart | None = Field(
        None, exclude_if=_is_none, description="of an effect that unjudged passages could reverse, why"
    )
    latency_ms: Annotated[Number, Column("p50", text=ms_change)] = Field(description="mean change of the median wait")
    usd_per_1k: Annotated[Number, Column("per 1,000", text=usd_change)]

    @property
    def change(self) -> Annotated[str, Column("from → to")]:
        """The two levels."""
        return f"{self.against} → {self.level}"

    @property
    def doubt(self) -> str:
        """Mark of an effect that may be due to chance."""
        return "" if self.clear else UNCERTAIN_MARK


class InteractionPart(ReportPart):
    """Interaction: how much the effect of one axis depends on the level of another."""

    axes: tuple[str, str]
    strength: Number
    low: Number
    high: Number
    clear: bool = Field(description="as of an effect, over all interactions that were compared")
    sentence: str
    unjudged: UnjudgedPart | None = Field(
        None, exclude_if=_is_none, description="of an interaction that unjudged passages could reverse, why"
    )


class IndexLossPart(ReportPart):
    """Loss of an approximate index against the exact one, as shares: -0.12 is 12% less."""

    system: Annotated[str, Column("system")]
    exact: str
    quality: Annotated[Mapping[str, Number], Column("{key}", text="{:+.1%}")]
    latency: Annotated[Number, Column("search", text="{:+.1%}")] = Field(description="of the median search")
    loss: Number = Field(description="the greatest loss of a measure; an index is good enough up to .02, aim at .01")
    unjudged: UnjudgedPart | None = Field(
        None,
        exclude_if=_is_none,
        description="if unjudged passages could move a measure across the loss that is good enough, why",
    )

    @property
    def verdict(self) -> Annotated[str, Column("verdict")]:
        """Whether the index is good enough."""
        if self.unjudged is not None:
            return inconclusive(self.unjudged)
        return f"{'' if self.loss is not None and self.loss <= MAX_LOSS else 'not '}within {MAX_LOSS:.0%}"


class StepPart(ReportPart):
    """Effect of more candidates."""

    system: Annotated[str, Column("system")]
    smaller: str
    k: int
    from_k: int
    quality: Annotated[Number, Column("{quality}", "signed", mark="doubt")] = Field(
        description="by how much the first measure that decides rises"
    )
    ms: Annotated[Number, Column("p50", text=ms_change)] = Field(description="by how much the median wait rises")
    usd_per_1k: Annotated[Number, Column("per 1,000", text=usd_change)]
    per_ms: Number = Field(description="quality for a millisecond; null where the step takes none")
    per_usd: Number = Field(description="quality for a USD on 1,000 questions")
    within_jitter: bool = Field(description="whether the two waits count as equal")
    unjudged: UnjudgedPart | None = Field(
        None,
        exclude_if=_is_none,
        description="if unjudged passages could decide whether the measure rises, falls or stays, why",
    )

    @property
    def step(self) -> Annotated[str, Column("k")]:
        """The smaller and the larger k."""
        return f"{self.from_k} → {self.k}"

    @property
    def gain(self) -> Annotated[Number, Column("quality per USD", text=change)]:
        """Quality per USD, if it is positive and conclusive."""
        return self.per_usd if self.per_usd and self.per_usd > 0 and self.unjudged is None else None

    @property
    def doubt(self) -> str:
        """Mark of a step that unjudged passages could reverse."""
        return "" if self.unjudged is None else UNCERTAIN_MARK


class WinPart(ReportPart):
    """Share of resamples in which a system is chosen."""

    system: Annotated[str, Column("system")]
    share: Annotated[float, Column("chosen", text="{:.0%}")]


class UniqueContributionPart(ReportPart):
    """Score of a system with its unique contributions to the pool as unjudged."""

    system: Annotated[str, Column("system")]
    group: str = Field(description="systems that search alike are left out together")
    measure: str
    score: Annotated[Number, Column("{quality}", "score")]
    without: Annotated[Number, Column("without its own", "score")]
    alone: Annotated[int, Column("passages")] = Field(
        description="judged passages that this group alone brought, over all questions"
    )
    overtaken_by: Annotated[tuple[str, ...], Column("then behind", text=", ".join)] = Field(
        description="systems of other groups that would be ahead then"
    )


class ChoicePart(ReportPart):
    """Recommended system under the limits, and the reasons."""

    winner: str | None
    best: str | None = Field(
        None, description="the best mean of the first measure under the limits; null with a target"
    )
    tied: tuple[str, ...] = Field((), description="systems statistically tied with the best, itself among them")
    sentence: str
    changes: tuple[str, ...] = Field((), description="what would change the choice")
    unknown: tuple[str, ...] = Field((), description="what the data cannot tell")
    excluded: Mapping[str, str] = Field(default_factory=dict, description="by system, the limit that excludes it")
    limits: Mapping[str, float] = Field(default_factory=dict)
    inconclusive: Mapping[str, UnjudgedPart] = Field(
        default_factory=dict,
        exclude_if=_is_empty,
        description="by system, why unjudged passages could put it before the winner; with a limit on quality, also "
        "why they could move it across that limit, the winner among them",
    )


class FrontierPart(ReportPart):
    """Systems within one limit on latency: the frontier among them, and the choice."""

    slo_ms: Number = Field(description="limit on p95 in milliseconds; null: none")
    allowed: int = Field(description="systems that keep it")
    over: tuple[str, ...] = Field(description="systems whose p95 is above it, or unknown")
    front: tuple[str, ...] = Field(description="best first")
    choice: str | None = Field(description="chosen under it and the other limits; null where none keeps them")
    inconclusive: Mapping[str, UnjudgedPart] = Field(
        default_factory=dict,
        exclude_if=_is_empty,
        description="by system, why unjudged passages could change that choice",
    )


class SweepReport(ReportPart):
    """Content of sweep.json."""

    v: Literal[2] = 2
    raggs: str = __version__
    name: str
    golden: GoldenPart
    questions: int
    quality: tuple[str, ...] = Field(description="the measures that decide, most important first")
    measures: tuple[str, ...]
    cutoffs: tuple[int, ...]
    ceilings: tuple[str, ...] = Field(description="measures with a ceiling (PROC); none where grades are not 1 to 5")
    jitter_ms: float
    margin: float = Field(0.0, description="a mean difference within it counts as none when systems are compared")
    cost_jitter: float = Field(0.0, description="share below which costs count as equal on the front")
    confidence: float
    seed: int
    systems: tuple[SystemRow, ...]
    cuts: tuple[CutPart, ...] = Field((), description="ways in which the corpus is cut, where systems differ in it")
    left_out: tuple[str, ...] = Field((), description="combinations that are no systems, and why")
    front: tuple[str, ...] = ()
    dominated: Mapping[str, str] = Field(default_factory=dict, description="by system, one that dominates it")
    choice: ChoicePart
    frontiers: tuple[FrontierPart, ...] = Field((), description="for each SLO, and without one")
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
            KeyError: there is none.
        """
        return next(iter(row for row in self.systems if row.name == name))


class CeilingPart(ReportPart):
    """A score, and the score of the best order of the system's candidates."""

    score: Number
    proc: Number = Field(description="pool-restricted oracle ceiling (PROC), mean over queries")
    pct_proc: Number = Field(description="%PROC: mean score over mean ceiling, in 0..1")


class OutcomePart(ReportPart):
    """Claims of a sweep, stored in its manifest so that they can be verified without the report."""

    limits: Mapping[str, float] = Field(description="of the choice: latency_ms (the SLO), usd_per_1k, quality")
    choice: str | None = Field(description="the system that was chosen under them")
    front: tuple[str, ...] = Field(description="the frontier over cost, latency and quality, best first")
    frontiers: tuple[FrontierPart, ...] = Field(description="the frontier and the choice for each SLO")
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
    """A paid part of a sweep."""

    what: Annotated[str, Column("part")]
    model: Annotated[str, Column("model")]
    calls: Annotated[int, Column("calls", text="{:,}")]
    tokens: Annotated[int, Column("tokens", text="{:,}")]
    usd: Annotated[Number, Column("USD", text="{:,.4f}", none="unknown")] = Field(
        description="null where the price is not known"
    )


class SweepPlan(ReportPart):
    """Plan of a dry run."""

    name: str
    systems: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]] = Field(
        default_factory=dict, description="the grid's levels by axis; `systems`: those beside it"
    )
    questions: int
    passages: int = Field(description="of all cuts of the corpus together")
    cuts: int = Field(1, description="ways in which the corpus is cut")
    left_out: tuple[str, ...]
    kept: int = Field(description="lists of systems that are kept from before, of all lists")
    lists: int
    paid: tuple[PlanLine, ...]
    hours: float = Field(description="of paid calls alone, a second each")

    @property
    def usd(self) -> Number:
        """The sum; None if a price is unknown."""
        return add([line.usd for line in self.paid])
