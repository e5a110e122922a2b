"""The report of an evaluation: what eval.json holds. A number that is not defined is null.

The form is versioned by `v`; fields are added, not renamed. The built-in analyses have fields of their own; those of
others leave their parts in `analyses`, as plain JSON, so that a report can be read where they are not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from raggs.jsontypes import Number
from raggs.version import __version__

Verdict = Literal["win", "loss", "tie", "unresolvable"]


class Part(BaseModel):
    """A piece of the report: frozen, and without numbers that JSON has not."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class GoldenPart(Part):
    """What was scored against."""

    source: str = Field(description="the run directory or file")
    queries: int
    judgments: int
    lowest: int = Field(description="lowest grade of the scale")
    highest: int
    relevant: int = Field(description="lowest relevant grade")
    gains: tuple[float, ...] = Field(description="the gain of each grade, from the lowest")
    digest: str = Field(description="sha256 over all judgments; evaluations with another one cannot be compared")


class ScorePart(Part):
    """One measure of one system, over queries."""

    mean: Number
    low: Number = Field(description="bound of the bootstrap interval")
    high: Number
    valid: int = Field(description="queries where the measure is defined; the mean is over these")
    lowest: Number = Field(None, description="mean with every unjudged passage at the lowest grade, where asked for")
    highest: Number = Field(None, description="the same at the highest grade")


class TiePart(Part):
    """What ties make of a measure, mean over queries."""

    measure: str
    expected: Number
    least: Number
    most: Number
    bias: Number = Field(description="the mean as the run stands, less the expected one")
    queries: int = Field(description="queries whose value depends on how ties are broken")
    across: Number = Field(None, description="the range by the tie group across the cutoff alone; null without cutoff")
    reached: float = Field(0.0, description="share of the queries with judged passages in ties that reach the cutoff")


class BottleneckPart(Part):
    """Where a system loses (PROC)."""

    measure: str
    pool: int
    actual: Number
    ceiling: Number
    of_means: Number = Field(None, description="%PROC as ratio of means: actual / ceiling")
    of_queries: Number = Field(None, description="%PROC as mean of ratios: what pct_proc_* says")
    retrieval: Number = Field(description="what better retrieval could give at most")
    ordering: Number = Field(description="what a perfect order of the pool could give")
    kind: Literal["retrieval", "ordering", "none"]
    queries: Mapping[str, int] = Field(description="queries by their own bottleneck")
    by_query: Mapping[str, str]


class RobustnessPart(Part):
    """The distribution of recall over queries."""

    measure: str
    mean: Number
    zero: Number = Field(description="share of queries without any relevant passage")
    area: Number = Field(description="under the robustness curve; equals the mean")
    shares: Mapping[str, float] = Field(description="share of queries with at least this recall")
    percentiles: Mapping[str, float] = Field(description="recall at the worst p % of queries")
    histogram: tuple[int, ...] = Field(description="queries by recall in tenths")
    beside: Mapping[str, Number] = Field(description="MAP, nDCG and MRR of the same run")


class AnswersPart(Part):
    """Acc|Hit: answers given that all evidence was shown."""

    measure: str
    accuracy: Number
    low: Number
    high: Number
    hits: int
    correct: int
    queries: int


class ProjectionPart(Part):
    """The golden set as it falls on the passages of a system that are cut in another way."""

    corpus: str | None = Field(description="hash of the content of the system's corpus")
    judged_corpus: str | None = Field(description="hash of the content of the corpus that was judged")
    by: Literal["cover", "share", "mean", "max"] = Field(description="how characters give a passage its grade")
    least: float = Field(description="the share of characters that a grade needs")
    known: float = Field(description="a passage less judged than this share is a hole, unless it earned `proof`")
    proof: int
    overlap: Literal["highest", "lowest"] = Field(description="what a character is worth that several passages hold")
    passages: int = Field(description="passages of the system's corpus that got a grade, over all queries")
    holes: int = Field(description="passages that hold something judged and got none")
    judged_length: float = Field(description="median characters of a judged passage")
    length: float = Field(description="median characters of a passage that holds something judged")
    lost: float = Field(description="share of the judged characters that no passage of the system's corpus holds")
    cutoff: int
    judged: Number = Field(description="share of the characters retrieved up to the cutoff that are judged")


class SystemPart(Part):
    """One system."""

    name: str
    source: str
    missing: int = Field(description="judged queries without a list; they score 0, as with trec_eval -c")
    unknown: int = Field(description="queries of the run that are not judged; they are left out")
    tied: int = Field(description="passages that share their score with another of the same query")
    scores: Mapping[str, ScorePart] = Field(description="by measure")
    ties: tuple[TiePart, ...] = ()
    bottleneck: tuple[BottleneckPart, ...] = ()
    robustness: tuple[RobustnessPart, ...] = ()
    answers: AnswersPart | None = None
    projection: ProjectionPart | None = None


class ComparisonPart(Part):
    """A system against the baseline on one measure."""

    system: str
    baseline: str
    measure: str
    difference: Number
    low: Number
    high: Number
    p: Mapping[str, Number] = Field(description="two-sided, by test")
    corrected: Mapping[str, Number] = Field(description="after Holm's correction over the systems")
    effect: Number = Field(description="Cohen's d_z")
    wins: int
    ties: int
    losses: int
    verdict: Verdict
    negligible: bool
    queries_needed: int | None = Field(description="queries that would resolve the difference with a power of 80%")


class PoolPart(Part):
    """Systems under test that the golden set was pooled from."""

    makers: tuple[str, ...]
    stated: bool = Field(description="whether the set itself says so; else all that they show at the top is judged")
    relevant: int = Field(description="relevant passages that any of them found")
    alone: int | None = Field(description="those that only one of them found; null for a single system")

    @property
    def share(self) -> Number:
        """Of the relevant passages, those that only one of them found."""
        return None if self.alone is None or not self.relevant else self.alone / self.relevant


class SettingPart(Part):
    """One point of the sensitivity grid of RA-nWG."""

    alpha: float
    cap4: float
    cap3: float
    means: Mapping[str, Number]
    order: tuple[str, ...]
    swapped: tuple[tuple[str, str], ...] = Field(description="pairs whose order differs from the usual parameters'")


class FoundPart(Part):
    """What an analysis without a field of its own found."""

    system: str = Field(description="the system that it is about; empty where it is about all of them")
    part: Mapping[str, JsonValue]


class Report(Part):
    """eval.json."""

    v: Literal[1] = 1
    raggs: str = __version__
    golden: GoldenPart
    measures: tuple[str, ...]
    higher_is_better: Mapping[str, bool]
    ties: Literal["trec", "file"]
    condensed: bool
    confidence: float
    seed: int
    label_uncertainty: bool = Field(description="whether the intervals also cover doubt about the labels")
    systems: tuple[SystemPart, ...]
    comparisons: tuple[ComparisonPart, ...] = ()
    sensitivity: tuple[SettingPart, ...] = ()
    analyses: Mapping[str, tuple[FoundPart, ...]] = Field({}, description="of further analyses, by name")
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = Field((), description="why the numbers may say nothing of the systems")
    per_query: Mapping[str, Mapping[str, Mapping[str, Number]]] = Field(
        description="by system, measure and query; queries where a measure is not defined are left out"
    )

    def with_systems(self, changes: Mapping[str, Mapping[str, object]]) -> Report:
        """The same with some fields of some systems replaced; they are taken as they are.

        Args:
            changes: by system, the fields that change.
        """
        systems = tuple(system.model_copy(update=changes.get(system.name, {})) for system in self.systems)
        return self.model_copy(update={"systems": systems})
