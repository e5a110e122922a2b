"""Report of an evaluation, as in eval.json. A number that is not defined is null.

The schema is versioned by `v`. Within a version, fields may be added, but are not renamed. Some built-in analyses have
their own fields. All other analyses store their findings in `analyses` as plain JSON, so that a report can be read even
if these analyses are not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from operator import not_
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from raggs.base import __version__
from raggs.base.document import Cell, Column, NumberForm, bounded, p_value, score, signed
from raggs.base.types import Number
from raggs.runs.manifests.lineage import VersionName

Verdict = Literal["better", "worse", "equivalent", "inconclusive", "unjudged"]


def _is_none(value: object) -> bool:
    return value is None


class ReportPart(BaseModel):
    """A part of the report. It is immutable, and has no NaN or infinite numbers, because JSON has none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class GoldenPart(ReportPart):
    """The judgments that systems are scored against."""

    source: str = Field(description="the run directory or file")
    queries: int
    judgments: int
    lowest: int = Field(description="lowest grade of the scale")
    highest: int
    relevant: int = Field(description="lowest relevant grade")
    gains: tuple[float, ...] = Field(description="the gain of each grade, from the lowest")
    digest: str = Field(
        description="sha256 over all judgments; if two evaluations have different digests, their judgments differ"
    )
    version: VersionName | None = Field(
        None, exclude_if=not_, description="version of a set that raggs update made; missing for other sets"
    )


class ScorePart(ReportPart):
    """Score of one system on one measure, over queries."""

    mean: Number
    low: Number = Field(description="lower bound of the bootstrap interval")
    high: Number
    valid: int = Field(description="number of queries for which the measure is defined; the mean is over these queries")
    lowest: Number = Field(None, description="mean if unjudged passages have the lowest grade; null if not requested")
    highest: Number = Field(None, description="mean if unjudged passages have the highest grade; null if not requested")

    def cell(self, form: NumberForm = "score") -> Cell:
        """Return the cell of a table with the mean and its interval."""
        return bounded(self.mean, self.low, self.high, form)


class TiePart(ReportPart):
    """How far the mean of a measure depends on the order of tied passages."""

    measure: Annotated[str, Column("measure")]
    expected: Annotated[Number, Column("expected", "score")]
    least: Annotated[Number, Column("least", "score")]
    most: Annotated[Number, Column("most", "score")]
    bias: Annotated[Number, Column("bias", "signed")] = Field(
        description="mean with the run's order of ties, minus the expected mean over all orders"
    )
    queries: Annotated[int, Column("queries")] = Field(
        description="number of queries whose value depends on how ties are broken"
    )
    across: Annotated[Number, Column("range_at_k", "score")] = Field(
        None, description="range due to the ties at the cutoff; null if the measure has no cutoff"
    )
    reached: float = Field(
        0.0, description="share of the queries with judged passages in ties that begin at or before the cutoff"
    )

    @property
    def width(self) -> Annotated[Number, Column("range", "score")]:
        """Difference between the largest and the smallest value."""
        return None if self.most is None or self.least is None else self.most - self.least


class BottleneckPart(ReportPart):
    """Ceiling (PROC) of a system, and how much better retrieval or a better order could gain."""

    measure: Annotated[str, Column("measure")]
    pool: int
    actual: Annotated[Number, Column("actual", "score")] = Field(description="mean over queries")
    ceiling: Annotated[Number, Column("ceiling", "score")] = Field(
        description="PROC: score of the best order of the system's candidates, mean over queries"
    )
    of_means: Annotated[Number, Column("share of ceiling", "score")] = Field(
        None, description="%PROC as ratio of means: actual / ceiling"
    )
    of_queries: Annotated[Number, Column("mean share", "score")] = Field(
        None, description="%PROC as mean of ratios, as in pct_proc_*"
    )
    retrieval: Annotated[Number, Column("retrieval could give", "score")] = Field(
        description="largest possible gain by better retrieval"
    )
    ordering: Annotated[Number, Column("ordering could give", "score")] = Field(
        description="gain by a perfect order of the system's candidates"
    )
    kind: Annotated[Literal["retrieval", "ordering", "none"], Column("bottleneck")]
    queries: Mapping[str, int] = Field(description="number of queries with each bottleneck")
    by_query: Mapping[str, str]


class RobustnessPart(ReportPart):
    """Distribution of recall over queries."""

    measure: Annotated[str, Column("recall")]
    mean: Annotated[Number, Column("mean", "score")]
    zero: Annotated[Number, Column("zero", "score")] = Field(description="share of queries with recall 0")
    area: Number = Field(description="area under the robustness curve, which equals the mean recall")
    shares: Annotated[Mapping[str, float], Column(">= {key}", "score")] = Field(
        description="share of queries with at least this recall"
    )
    percentiles: Annotated[Mapping[str, float], Column("worst {key}%", "score")] = Field(
        description="for each key p, the p-th percentile of recall over the queries"
    )
    histogram: tuple[int, ...] = Field(description="number of queries in each tenth of the range of recall")
    beside: Mapping[str, Number] = Field(description="MAP, nDCG and MRR of the same run")


class AnswersPart(ReportPart):
    """Acc|Hit: accuracy of answers on queries whose evidence was retrieved, by `measure`."""

    measure: Annotated[str, Column("evidence by")]
    accuracy: Annotated[Number, Column("accuracy", "score")]
    low: Number
    high: Number
    hits: Annotated[int, Column("queries with it")]
    correct: Annotated[int, Column("correct")]
    queries: Annotated[int, Column("queries with an answer")]
    missing: int = Field(
        0,
        exclude_if=not_,
        description="number of queries with all evidence but an unknown answer; no other field counts them",
    )

    @property
    def interval(self) -> Annotated[str, Column("interval")]:
        """Interval of the accuracy."""
        return f"[{score(self.low)}, {score(self.high)}]"


class ProjectionPart(ReportPart):
    """Projection of the golden set onto a system's passages with another chunking."""

    corpus: str | None = Field(description="hash of the content of the system's corpus")
    judged_corpus: str | None = Field(description="hash of the content of the corpus that was judged")
    by: Literal["cover", "share", "mean", "max"] = Field(
        description="how the grades of characters determine the grade of a passage"
    )
    least: float = Field(description="share of characters that a passage needs for a grade (see `by`)")
    known: float = Field(
        description="minimum judged share of a passage; a passage with less is unjudged if its grade is below `proof`"
    )
    proof: int
    overlap: Literal["highest", "lowest"] = Field(description="grade of a character that is in several judged passages")
    passages: int = Field(description="number of passages of the system's corpus with a grade, over all queries")
    holes: int = Field(description="number of passages with judged characters but without a grade")
    judged_length: float = Field(description="median length of the judged passages, in characters")
    length: float = Field(description="median length of the passages with judged characters, in characters")
    lost: float = Field(description="share of the judged characters that are in no passage of the system's corpus")
    cutoff: int
    judged: Number = Field(description="share of the characters retrieved up to the cutoff that are judged")


class TaskSearchesPart(ReportPart):
    """Searches of an agent per task."""

    searches: float = Field(description="mean number of searches per task")
    usd: Number = Field(description="mean cost per task in USD; null if a search states no cost")


class SearchLatencyPart(ReportPart):
    """Latency that a run file states."""

    queries: int = Field(description="number of queries with a latency")
    p50_ms: float = Field(description="median in milliseconds")
    p95_ms: float = Field(description="95th percentile in milliseconds")


class SystemPart(ReportPart):
    """Scores and findings of one system."""

    name: str
    source: str
    missing: int = Field(
        description="number of judged queries without a list; they count as empty lists, as with trec_eval -c"
    )
    unknown: int = Field(description="number of queries of the run that are not judged; they are ignored")
    tied: int = Field(description="number of passages that share their score with another passage of the same query")
    scores: Mapping[str, ScorePart] = Field(description="score of each measure")
    ties: tuple[TiePart, ...] = ()
    bottleneck: tuple[BottleneckPart, ...] = ()
    robustness: tuple[RobustnessPart, ...] = ()
    answers: AnswersPart | None = None
    projection: ProjectionPart | None = None
    tasks: TaskSearchesPart | None = Field(
        None, exclude_if=not_, description="searches per task, if the lists are merged from several searches"
    )
    latency: SearchLatencyPart | None = Field(
        None, exclude_if=not_, description="latency of the searches, if the run file states it (`latency_ms`)"
    )


class UnjudgedTopPart(ReportPart):
    """Unjudged share of a system's top."""

    system: str
    cutoff: int
    share: float = Field(description="share of unjudged passages in the top `cutoff`")


class UnjudgedPart(ReportPart):
    """Why a verdict is inconclusive: unjudged passages could reverse it."""

    tops: tuple[UnjudgedTopPart, ...] = Field(description="systems with unjudged passages in the top")
    low: Number = Field(description="smallest difference over all possible grades of the unjudged passages")
    high: Number = Field(description="largest difference over all possible grades; null if unbounded")
    remedy: str = Field(description="how to get the passages judged")


class ComparisonPart(ReportPart):
    """Comparison of a system with the baseline on one measure."""

    system: Annotated[str, Column("system")]
    baseline: str
    measure: Annotated[str, Column("measure")]
    difference: Annotated[Number, Column("difference", "signed")]
    low: Number
    high: Number
    p: Mapping[str, Number] = Field(description="two-sided p value of each test")
    corrected: Mapping[str, Number] = Field(description="p values after Holm's correction over the systems")
    effect: Annotated[Number, Column("effect", "signed")] = Field(description="Cohen's d_z")
    wins: int
    ties: int
    losses: int
    verdict: Verdict = Field(description='"unjudged": inconclusive, because unjudged passages could reverse it')
    stands: Verdict | None = Field(
        None,
        exclude_if=_is_none,
        description='only if the verdict is "unjudged": the verdict if no unjudged passage is relevant',
    )
    negligible: bool
    queries_needed: int | None = Field(
        description="number of queries that would resolve the difference with a power of 80%"
    )
    unjudged: UnjudgedPart | None = Field(
        None, exclude_if=_is_none, description="if unjudged passages could reverse the verdict: why"
    )

    @property
    def interval(self) -> Annotated[str, Column("interval")]:
        """Interval of the difference."""
        return f"[{signed(self.low)}, {signed(self.high)}]"

    @property
    def turns(self) -> Annotated[str, Column("w/t/l")]:
        """Numbers of queries on which the system is better, equal and worse."""
        return f"{self.wins}/{self.ties}/{self.losses}"

    @property
    def holm(self) -> Annotated[Number, Column("p (Holm)", text=p_value)]:
        """Corrected p value of the randomisation test."""
        return self.corrected.get("randomisation")


class PoolPart(ReportPart):
    """Evaluated systems that the golden set was pooled from."""

    makers: Annotated[tuple[str, ...], Column("pooled from", text=", ".join)]
    stated: bool = Field(
        description="whether the set itself records this; if not, it follows from tops without unjudged passages"
    )
    relevant: Annotated[int, Column("relevant passages")] = Field(
        description="number of relevant passages that at least one of these systems found"
    )
    alone: Annotated[int | None, Column("unique to one")] = Field(
        description="number of relevant passages that only one of these systems found; null if there is only one system"
    )

    @property
    def share(self) -> Annotated[Number, Column("share", text="{:.0%}")]:
        """Share of the relevant passages that only one of these systems found."""
        return None if self.alone is None or not self.relevant else self.alone / self.relevant


class LeaveOneOutPart(ReportPart):
    """Score of a system without the judgments that are unique to it."""

    measure: Annotated[str, Column("measure")]
    score: Annotated[Number, Column("score", "score")]
    without: Annotated[Number, Column("without its own", "score")] = Field(
        description="score if the passages that only this system found are unjudged"
    )
    alone: Annotated[int, Column("passages")] = Field(
        description="number of judged passages that only this system found, over all queries"
    )
    relevant: Annotated[int, Column("relevant")] = Field(description="number of relevant ones among these passages")
    rank: Annotated[int, Column("rank")] = Field(description="rank among the systems, counted from 1")
    rank_without: Annotated[int, Column("rank without")]
    overtaken_by: Annotated[tuple[str, ...], Column("then behind", text=", ".join)] = Field(
        description="systems that are ahead only if these passages are unjudged"
    )


class SensitivityPart(ReportPart):
    """One point of the sensitivity grid of RA-nWG."""

    alpha: Annotated[float, Column("alpha", text="{:g}")]
    cap4: Annotated[float, Column("cap4", text="{:g}")]
    cap3: Annotated[float, Column("cap3", text="{:g}")]
    means: Mapping[str, Number]
    order: Annotated[tuple[str, ...], Column("order that changes", text=" > ".join)]
    swapped: tuple[tuple[str, str], ...] = Field(
        description="pairs whose order differs from that with the default parameters"
    )


class FoundPart(ReportPart):
    """Finding of an analysis for which the report has no field."""

    system: str = Field(description="name of the system; empty if the finding is about all systems")
    part: Mapping[str, JsonValue]


class InputPart(ReportPart):
    """Input file or folder of an evaluation."""

    role: Literal["golden", "run", "samples", "outputs", "facets", "correct", "reviews", "corpus"]
    name: str = Field("", description="name given to the system; empty if the file name is used")
    path: str = Field(description="path relative to the folder of eval.json")
    sha256: str | None = Field(
        None, description="sha256 of a file; null for a folder, and for a pipe, which cannot be read again"
    )
    files: Mapping[str, str] = Field(
        {}, description="for a folder: sha256 of each file that affects the result, by path"
    )


class OptionsPart(ReportPart):
    """Options of an evaluation. Together with the input files, they reproduce the evaluation."""

    measures: tuple[str, ...] = Field(description="requested measures; empty for the default measures")
    cutoffs: tuple[int, ...]
    ties: Literal["trec", "file"]
    condensed: bool
    default_k: int | None
    scale: tuple[int, int] | None
    relevant: int | None
    gains: Mapping[str, float]
    analyses: tuple[str, ...]
    baseline: str | None
    pool: int
    against_first: bool
    limits: Mapping[str, float]
    confidence: float
    seed: int
    project: Mapping[str, JsonValue] | None = Field(description="projection rule; null without projection")
    columns: Mapping[str, str] = Field(
        {}, exclude_if=not_, description="names of columns in tables of labels or lists, by role"
    )
    as_of: date | None = Field(
        None, exclude_if=not_, description="day on which queries and labels had to be valid; null: all count"
    )


class SourcesPart(ReportPart):
    """Inputs and options of an evaluation; `raggs audit eval.json` evaluates them again and compares."""

    inputs: tuple[InputPart, ...]
    options: OptionsPart
    options_sha256: str


class ValidityPart(ReportPart):
    """Queries and labels of the golden set that are not valid on a day."""

    day: date = Field(description="the day; the day of the evaluation if none was requested")
    queries: tuple[str, ...] = Field(description="ids of the queries that are not valid")
    labels: int = Field(description="number of labels of valid queries that are not valid")
    excluded: bool = Field(description="whether they were excluded; otherwise they count as usual")


class EvalReport(ReportPart):
    """Content of eval.json."""

    v: Literal[1] = 1
    raggs: str = __version__
    golden: GoldenPart
    measures: tuple[str, ...]
    higher_is_better: Mapping[str, bool]
    ties: Literal["trec", "file"]
    condensed: bool
    confidence: float
    seed: int
    label_uncertainty: bool = Field(description="whether the intervals include the uncertainty of the labels")
    systems: tuple[SystemPart, ...]
    comparisons: tuple[ComparisonPart, ...] = ()
    sensitivity: tuple[SensitivityPart, ...] = ()
    analyses: Mapping[str, tuple[FoundPart, ...]] = Field(
        {}, description="findings of analyses for which the report has no other field, by name of the analysis"
    )
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = Field((), description="why the scores may be meaningless")
    validity: ValidityPart | None = Field(
        None, exclude_if=not_, description="expired queries and labels; null if no query or label has a limit"
    )
    per_query: Mapping[str, Mapping[str, Mapping[str, Number]]] = Field(
        description="by system, measure and query; without queries for which the measure is not defined"
    )
    sources: SourcesPart | None = Field(
        None, description="files and options of the evaluation; null if lists were in memory"
    )
    shown: Mapping[str, Mapping[str, tuple[str, ...]]] = Field(
        {},
        description="by system and query, the passages down to the deepest cutoff, at most 100, best first: a later "
        "result that is compared with this one looks for unjudged passages there",
    )

    def with_systems(self, changes: Mapping[str, Mapping[str, object]]) -> EvalReport:
        """Return the report with some fields of systems replaced. The new values are not validated.

        Args:
            changes: maps each system to the fields to replace and their new values.
        """
        systems = tuple(system.model_copy(update=changes.get(system.name, {})) for system in self.systems)
        return self.model_copy(update={"systems": systems})
