"""What a sweep found: the records of `timings.jsonl` and `systems.jsonl`, and the report in `sweep.json`.

A number that is not known is null, never 0. Fields are added, not renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.evaluation.models import ComparisonPart, GoldenPart, Part, ProjectionPart, ScorePart
from raggs.jsontypes import Number
from raggs.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

FIRST_PAGE, PAGE = 1, 2  # forms of sweep.md
StepKind = Literal["embed", "retrieve", "rerank"]


class Timing(Part):
    """timings.jsonl: one step in one round, timed for some questions one at a time."""

    step: str = Field(description="hash of what is timed; equal steps of different systems are one")
    kind: StepKind
    what: str = Field(description="the step in words")
    round: int = Field(ge=1, description="of `latency.passes`; 1 for the calls of a provider, which are timed once")
    paid: bool = Field(False, description="whether these are calls of a provider, timed when they were paid")
    load: float | None = Field(None, description="tasks that wanted a processor in the minute before, per processor")
    ms: Mapping[str, float] = Field(description="milliseconds by question")


class Spread(Part):
    """Milliseconds over questions."""

    p50: float
    p95: float
    calls: int = Field(description="measurements that this rests on")
    paid: bool = Field(False, description="whether a provider was timed, when it was paid")


class LatencyPart(Part):
    """What a question waits for before anything is generated."""

    embed: Spread | None = Field(None, description="rewriting and embedding; null where nothing of it was timed")
    retrieve: Spread | None = None
    rerank: Spread | None = None
    total: Spread | None = Field(None, description="the sum; null where a step that the system has was not timed")


class CostPart(Part):
    """USD for 1,000 questions."""

    embed: Number = Field(description="rewriting and embedding the question; null where a price is not known")
    rerank: Number
    generate: Number = Field(description="what the generator reads; 0 where no price of it was named")
    total: Number
    question_tokens: float = Field(description="mean tokens of a question as it is embedded")
    candidate_tokens: Number = Field(description="mean tokens that the reranker reads for a candidate")
    candidate_tokens_sd: Number
    context_tokens: Number = Field(description="mean tokens of the passages that the generator reads")

    def usd(self) -> Mapping[str, Number]:
        """The amounts by what they are for."""
        return {"embed": self.embed, "rerank": self.rerank, "generate": self.generate, "total": self.total}


class MemoryPart(Part):
    """Bytes that are to be in memory for a search at full speed, vectors and index together."""

    kind: str = Field(description='the index and what its rows are kept as, such as "hnsw-int8"')
    rows: int
    dims: int
    bytes: int
    million: int = Field(description="bytes at one million vectors, by the same bytes a vector")
    ten_million: int
    built_s: float = Field(description="seconds that building took, whenever that was; 0 where nothing is built")


class CutPart(Part):
    """cuts.jsonl: one way in which systems have the corpus cut."""

    label: str = Field(description="as the axis `chunker` has it")
    chunker: str = Field(description="the chunker with its settings, in words")
    content: str = Field(description="hash of its passages")
    passages: int
    seconds: Number = Field(description="that cutting took when the passages were made; null where nobody knows")
    golden: bool = Field(description="whether the golden set was judged on these passages; else grades are projected")


class SystemRow(Part):
    """systems.jsonl: one system and all that was measured of it."""

    name: str
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
    scores: Mapping[str, ScorePart] = Field(default_factory=dict, description="by measure")
    realised: Mapping[str, Number] = Field(
        default_factory=dict, description="%PROC as a ratio of means: mean score over mean ceiling, by measure"
    )
    holes: Mapping[str, Number] = Field(default_factory=dict, description="unjudged share of the top, by cutoff")
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
    efficiency: Number = Field(None, description="mean quality over seconds of reranking, or of retrieval without one")
    efficiency_all: Number = Field(None, description="the same over all seconds before generation")

    @property
    def plain(self) -> bool:
        """Whether all questions have the same number of candidates."""
        return self.levels.get("k", "0").isdigit()


class EffectPart(Part):
    """What an axis buys: the change from one level to another, over pairs of systems that differ in nothing else."""

    axis: str
    level: str
    against: str
    pairs: int
    quality: Number = Field(description="mean change of the first measure that decides")
    low: Number
    high: Number
    clear: bool = Field(description="whether it is not chance, with Bonferroni's correction over all effects")
    latency_ms: Number = Field(description="mean change of the median wait")
    usd_per_1k: Number


class InteractionPart(Part):
    """How far the gain of one axis depends on the level of another."""

    axes: tuple[str, str]
    strength: Number
    low: Number
    high: Number
    clear: bool
    sentence: str


class DeltaPart(Part):
    """What an index loses against the exact one, as shares of what that has: -.12 is 12% less."""

    system: str
    exact: str
    quality: Mapping[str, Number]
    latency: Number = Field(description="of the median search")
    loss: Number = Field(description="the greatest loss of a measure; an index is good enough up to .02, aim at .01")


class StepPart(Part):
    """What more candidates bring."""

    system: str
    smaller: str
    k: int
    from_k: int
    quality: Number = Field(description="by how much the first measure that decides rises")
    ms: Number = Field(description="by how much the median wait rises")
    usd_per_1k: Number
    per_ms: Number = Field(description="quality for a millisecond; null where the step takes none")
    per_usd: Number = Field(description="quality for a USD on 1,000 questions")
    within_jitter: bool = Field(description="whether the two waits count as equal")


class WinPart(Part):
    """How often a system would be the choice, were the questions drawn anew."""

    system: str
    share: float


class LoyaltyPart(Part):
    """What a system loses when the passages that it alone brought into the pool count as unjudged."""

    system: str
    group: str = Field(description="systems that search alike are left out together")
    measure: str
    score: Number
    without: Number
    alone: int = Field(description="judged passages that this group alone brought, over all questions")
    overtaken_by: tuple[str, ...] = Field(description="systems of other groups that would be ahead then")


class ChoicePart(Part):
    """Which system to ship under the limits, and why."""

    winner: str | None
    sentence: str
    changes: tuple[str, ...] = Field((), description="what would change the choice")
    unknown: tuple[str, ...] = Field((), description="what the data cannot tell")
    excluded: Mapping[str, str] = Field(default_factory=dict, description="by system, the limit that excludes it")
    limits: Mapping[str, float] = Field(default_factory=dict)


class SweepReport(Part):
    """sweep.json."""

    v: Literal[1] = 1
    page: int = Field(FIRST_PAGE, exclude_if=FIRST_PAGE.__eq__, description="form of sweep.md; 2 says what explains it")
    raggs: str = __version__
    name: str
    golden: GoldenPart
    questions: int
    quality: tuple[str, ...] = Field(description="the measures that decide, most important first")
    measures: tuple[str, ...]
    cutoffs: tuple[int, ...]
    ceilings: tuple[str, ...] = Field(description="measures with a ceiling (PROC); none where grades are not 1 to 5")
    jitter_ms: float
    cost_jitter: float = Field(0.0, description="share below which costs count as equal on the front")
    confidence: float
    seed: int
    systems: tuple[SystemRow, ...]
    cuts: tuple[CutPart, ...] = Field((), description="ways in which the corpus is cut, where systems differ in it")
    left_out: tuple[str, ...] = Field((), description="combinations that are no systems, and why")
    front: tuple[str, ...] = ()
    dominated: Mapping[str, str] = Field(default_factory=dict, description="by system, one that dominates it")
    choice: ChoicePart
    effects: tuple[EffectPart, ...] = ()
    interactions: tuple[InteractionPart, ...] = ()
    deltas: tuple[DeltaPart, ...] = ()
    steps: tuple[StepPart, ...] = ()
    wins: tuple[WinPart, ...] = ()
    baseline: str | None = None
    comparisons: tuple[ComparisonPart, ...] = ()
    loyalty: tuple[LoyaltyPart, ...] = ()
    notes: tuple[str, ...] = ()

    def system(self, name: str) -> SystemRow:
        """The system of a name.

        Raises:
            KeyError: there is none.
        """
        return next(iter(row for row in self.systems if row.name == name))

    def frame(self) -> DataFrame:
        """A row for each system, with the columns of sweep.csv.

        Raises:
            PrerequisiteError: pandas is not installed.
        """
        from raggs.sweeps.frame import make_frame

        return make_frame(self)


class PlanLine(Part):
    """Something that is paid for."""

    what: str
    model: str
    calls: int
    tokens: int
    usd: Number = Field(description="null where the price is not known")


class Plan(Part):
    """A dry run."""

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
        """The sum; None where a price is not known."""
        amounts = [line.usd for line in self.paid]
        return None if None in amounts else sum(amount or 0.0 for amount in amounts)
