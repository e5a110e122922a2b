"""Settings of a sweep, with all defaults.

An axis is a list of levels. A level is a name, or the settings of a component. A level with a list of plain values
(`dims: [64, 256]`) expands to one level per value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.settings import AddedLater, AnchoredPath, Effort, Settings, SourcePath
from raggs.config.models import RunName
from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts import chunkers, corpora, indexes, queries, rerankers, retrievers
from raggs.parts.chunkers import ChunkerConfig
from raggs.parts.embedders import default_embedder
from raggs.parts.rerankers import RerankerConfig
from raggs.parts.retrievers import RetrieverConfig
from raggs.parts.retrievers.depth import DepthLevel
from raggs.stages.embed import EmbedderSpec, RewriterSpec
from raggs.stages.retrieve import RetrieverSpec

PLAIN_TYPES = (str, int, float, bool)
NO_RERANKER = "none"
SCALE = r"^[0-9]{1,3}(-|\.\.)[0-9]{1,3}$"
AS_IT_IS = "corpus"  # level of the axis `chunker` that keeps the chunks of the corpus
LIST_SETTINGS = ("separators",)  # these settings of chunkers are lists, so a list is one value, not several levels
MAX_EXHAUSTIVE_SYSTEMS = 50  # maximum number of systems for which halving is not used by default


def is_none(value: object) -> bool:
    """Return whether a setting is None. Such a setting is not stored."""
    return value is None


def _spread(level: Mapping[str, object], whole: Collection[str] = ()) -> Iterator[dict[str, object]]:
    """Yield one mapping per combination of settings that are lists of plain values, except those in `whole`."""
    lists = {
        key: value
        for key, value in level.items()
        if key not in whole
        and isinstance(value, list)
        and value
        and all(isinstance(each, PLAIN_TYPES) for each in value)
    }
    for values in product(*lists.values()):
        yield {**level, **dict(zip(lists, values, strict=True))}


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _named_settings(value: object) -> object:
    """Return the settings for a short name."""
    return {"type": value} if isinstance(value, str) else value


def _levels(value: object) -> list[object]:
    """Return an axis as a list of settings, from any accepted form."""
    found: list[object] = []
    for level in map(_named_settings, _as_list(value)):
        found += _spread(level) if isinstance(level, Mapping) else [level]
    return found


def _without_none(value: object) -> object:
    """Convert a level of the reranker axis; "none" becomes None."""
    return None if value is None or (isinstance(value, Mapping) and value.get("type") == NO_RERANKER) else value


def _without_corpus(value: object) -> object:
    """Convert a level of the chunker axis; "corpus" becomes None."""
    return None if isinstance(value, Mapping) and value.get("type") == AS_IT_IS else value


def _chunker_levels(value: object) -> list[object]:
    """Return an axis of chunkers as a list of settings, from any accepted form."""
    found: list[object] = []
    for level in map(_named_settings, _as_list(value)):
        found += _spread(level, LIST_SETTINGS) if isinstance(level, Mapping) else [level]
    return found


def _modes(value: object) -> list[object]:
    """Return an axis of modes or depths: names, numbers or settings."""
    return [each for level in _as_list(value) for each in (_spread(level) if isinstance(level, Mapping) else [level])]


Mode = Literal["dense", "lexical", "hybrid"]
MODES = ("dense", "lexical", "hybrid")
IndexSpec = Annotated[AdapterConfig, OneOf(indexes.REGISTRY)]
RerankerSpec = Annotated[RerankerConfig, OneOf(rerankers.REGISTRY)]
ChunkerSpec = Annotated[ChunkerConfig, OneOf(chunkers.REGISTRY)]
MaybeChunker = Annotated[ChunkerSpec | None, BeforeValidator(_without_corpus)]
MaybeReranker = Annotated[RerankerSpec | None, BeforeValidator(_without_none)]
CorpusSpec = Annotated[AdapterConfig, OneOf(corpora.REGISTRY)]
QueriesSpec = Annotated[AdapterConfig, OneOf(queries.REGISTRY)]


def _mode(value: object) -> object:
    if isinstance(value, str) and value not in MODES:
        raise ValueError(f"{value!r} is not a mode: dense, lexical, hybrid, or the settings of a retriever")
    return value


ModeLevel = Annotated[Mode | RetrieverSpec, BeforeValidator(_mode)]


class Axes(Settings):
    """Axes of the grid: every distinct valid combination of levels is a system, except excluded ones."""

    chunker: AddedLater[Annotated[tuple[MaybeChunker, ...], BeforeValidator(_chunker_levels)]] = Field(
        (None,),
        min_length=1,
        description='chunkers of a corpus `folder`; "corpus": the chunks of the corpus',
    )
    rewrite: Annotated[tuple[RewriterSpec, ...], BeforeValidator(_levels)] = Field(
        ({"type": "clean"},), validate_default=True, min_length=1, description="rewriter of the queries"
    )
    embedder: Annotated[tuple[EmbedderSpec, ...], BeforeValidator(_levels)] = Field(
        default_factory=lambda: (default_embedder(),),
        validate_default=True,
        min_length=1,
        description="embedder",
    )
    index: Annotated[tuple[IndexSpec, ...], BeforeValidator(_levels)] = Field(
        ({"type": "flat"},), validate_default=True, min_length=1, description="vector index"
    )
    mode: Annotated[tuple[ModeLevel, ...], BeforeValidator(_modes)] = Field(
        ("hybrid",),
        min_length=1,
        description="dense, lexical, hybrid, or the settings of any retriever, e.g. a run file or your own function",
    )
    k: Annotated[tuple[DepthLevel, ...], BeforeValidator(_modes)] = Field(
        (50,),
        min_length=1,
        description="number of candidates per query, or {type: routed, ...} to choose this number for each query",
    )
    reranker: Annotated[tuple[MaybeReranker, ...], BeforeValidator(_levels)] = Field(
        (None,), min_length=1, description='reranker of the candidates; "none": no reranking'
    )

    @field_validator("chunker")
    @classmethod
    def _each_once(cls, found: tuple[ChunkerConfig | None, ...]) -> tuple[ChunkerConfig | None, ...]:
        if twice := next((level for at, level in enumerate(found) if level in found[:at]), None):
            raise ValueError(f"{twice.type} occurs twice with the same settings")
        return found


class SystemSpec(Settings):
    """A single system in addition to the grid."""

    chunker: AddedLater[Annotated[MaybeChunker, BeforeValidator(_named_settings)]] = Field(
        None, description="chunker; null: the chunks of the corpus"
    )
    rewrite: Annotated[RewriterSpec, BeforeValidator(_named_settings)] = Field(
        {"type": "clean"}, validate_default=True, description="rewriter of the queries"
    )
    embedder: Annotated[EmbedderSpec, BeforeValidator(_named_settings)] = Field(
        default_factory=default_embedder, validate_default=True, description="embedder"
    )
    index: Annotated[IndexSpec, BeforeValidator(_named_settings)] = Field(
        {"type": "flat"}, validate_default=True, description="vector index"
    )
    mode: ModeLevel = Field("hybrid", description="dense, lexical, hybrid, or the settings of a retriever")
    k: DepthLevel = Field(
        50, description="number of candidates per query, or {type: routed, ...} to choose it for each query"
    )
    reranker: MaybeReranker = Field(None, description="reranker of the candidates; null: no reranking")


class UnitPrice(Settings):
    """Prices of a model or of the generator."""

    input: float | None = Field(None, ge=0, description="USD per 1M input tokens")
    output: float = Field(0, ge=0, description="USD per 1M output tokens")
    per_1k_searches: float | None = Field(
        None, ge=0, description="USD per 1,000 searches of a reranker, each with up to 100 passages"
    )


class SystemLimits(Settings):
    """Limits that the recommended system must satisfy."""

    latency_ms: float | None = Field(
        None, gt=0, description="limit on the p95 latency before generation, in milliseconds; null for no limit"
    )
    usd_per_1k: float | None = Field(
        None, ge=0, description="limit on the cost of 1,000 queries in USD; null for no limit"
    )
    quality: float | None = Field(
        None, description="minimum mean of the primary measure; the fastest system that reaches it is recommended"
    )


class LatencySettings(Settings):
    """Settings of the latency measurement."""

    passes: int = Field(
        3,
        ge=1,
        le=100,
        description="number of timing rounds, spread over the sweep; p50 uses their medians, p95 uses all searches",
    )
    warmup: int = Field(5, ge=0, le=1000, description="number of warm-up queries per round, which are not timed")
    queries: int = Field(
        50, ge=1, description="number of timed queries, evenly spread over all queries; they are timed one at a time"
    )
    jitter_ms: float = Field(75, ge=0, description="latency differences below this many milliseconds count as equal")
    generation_ms: float = Field(
        0, ge=0, description="latency of the generated answer in milliseconds, for the end-to-end efficiency"
    )


class HybridSettings(Settings):
    """Settings of the search modes lexical and hybrid."""

    lexical: RetrieverSpec = Field({"type": "bm25"}, validate_default=True, description="lexical retriever")
    depth: int = Field(100, ge=1, description="number of passages per retriever that are fused")
    rrf_k: int = Field(60, ge=1, description="constant of reciprocal rank fusion")


class SearchSettings(Settings):
    """Settings that select which systems are measured on which queries."""

    type: Literal["exhaustive", "halving"] | None = Field(
        None,
        description="measure all systems on all queries, or use successive halving; null for halving from "
        f"{MAX_EXHAUSTIVE_SYSTEMS + 1} "
        "systems on",
    )
    queries: tuple[Annotated[int, Field(ge=1)] | Literal["all"], ...] = Field(
        (30, 100, "all"),
        min_length=1,
        description="halving: numbers of queries after which clearly worse systems are dropped",
    )
    error: float = Field(0.01, gt=0, lt=1, description="halving: maximum probability of dropping the best system")

    def halves(self, systems: int) -> bool:
        """Return whether successive halving is used for this number of systems."""
        return self.type == "halving" or (self.type is None and systems > MAX_EXHAUSTIVE_SYSTEMS)


def reads_corpus(mode: Mode | RetrieverConfig) -> bool:
    """Return whether a mode searches the corpus itself, so that any chunking applies."""
    return not isinstance(mode, RetrieverConfig) or retrievers.REGISTRY.of(mode).whole_corpus(mode)


class SweepConfig(Settings):
    """Configuration of a sweep. Paths are relative to its file."""

    name: RunName = Field(description="name of the sweep; its directory is <folder>/<name>")
    folder: AnchoredPath = Field(Path("sweeps"), validate_default=True, description="folder of the sweeps")
    workspace: AnchoredPath = Field(
        Path("runs"), validate_default=True, description="folder of the caches, shared with the runs in this folder"
    )
    golden: SourcePath = Field(description="a run directory, or labels with a file of queries next to them")
    scale: AddedLater[Annotated[str, StringConstraints(pattern=SCALE)] | None] = Field(
        None,
        exclude_if=is_none,
        description="lowest and highest grade of the labels, e.g. 0-3; null to take them from the labels",
    )
    corpus: CorpusSpec | None = Field(None, description="settings of the corpus; null for the golden set's corpus")
    queries: QueriesSpec | None = Field(None, description="settings of the queries; null for the golden set's queries")
    axes: Axes = Field(default_factory=Axes)
    excluded: tuple[dict[str, object], ...] = Field(
        (), description="combinations to omit: levels by axis; a level is a name, some settings, or a list of these"
    )
    systems: dict[RunName, SystemSpec] = Field(default_factory=dict, description="systems in addition to the grid")
    hybrid: HybridSettings = HybridSettings()
    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (10, 20, 30), min_length=1, description="cutoffs of the measures"
    )
    measures: tuple[str, ...] = Field((), description="additional measures; those without a cutoff use `cutoffs`")
    quality: tuple[str, ...] = Field(
        (),
        description="deciding measures, primary first; empty: RA-nWG and N-Recall4 at the smallest and the largest of "
        "`cutoffs` (nDCG and recall if grades are not 1 to 5)",
    )
    baseline: str | None = Field(
        None, description="system that the others are compared with; null for the cheapest system"
    )
    generator: int = Field(10, ge=1, description="number of passages that the generator reads")
    prices: Effort[dict[str, UnitPrice]] = Field(
        default_factory=dict, description="prices by model; `generator`: the model that answers"
    )
    cost_jitter: Effort[float] = Field(
        0.01, ge=0, lt=1, description="costs that differ by less than this share count as equal on the front"
    )
    margin: Effort[float] = Field(
        0.01,
        ge=0,
        description="systems are equivalent to the best if the interval of the difference is within -margin to margin",
    )
    limits: Effort[SystemLimits] = SystemLimits()
    slos: Effort[tuple[Annotated[float, Field(gt=0)], ...]] = Field(
        (350.0, 500.0), description="limits on p95 in milliseconds for which the report shows the front side by side"
    )
    latency: Effort[LatencySettings] = LatencySettings()
    search: SearchSettings = SearchSettings()
    duplicates: float | None = Field(
        0.95,
        gt=0,
        le=1,
        description="minimum similarity of two candidates of which the reranker reads only one; null to read all",
    )
    language: str = Field("en", description="language if a query's language is not detected")
    confidence: float = Field(0.95, gt=0, lt=1, description="confidence of intervals and tests")
    seed: int = Field(1, ge=0, description="random seed")
    budget: BudgetSettings = BudgetSettings()
    llm: LLMSettings = LLMSettings()

    @property
    def ends(self) -> tuple[int, int] | None:
        """Lowest and highest grade; None if the labels determine them."""
        if self.scale is None:
            return None
        low, _, high = self.scale.replace("..", "-").partition("-")
        return int(low), int(high)

    @property
    def cuts(self) -> tuple[ChunkerConfig | None, ...]:
        """All distinct chunkings of the systems; None stands for the chunks of the corpus."""
        found: list[ChunkerConfig | None] = []
        elsewhere = () if all(map(reads_corpus, self.axes.mode)) else (None,)
        for level in (*self.axes.chunker, *elsewhere, *(spec.chunker for spec in self.systems.values())):
            found += [level] if level not in found else []
        return tuple(found)

    @property
    def recuts(self) -> bool:
        """Whether any system uses other chunks than those of the corpus."""
        return any(level is not None for level in self.cuts)

    @model_validator(mode="before")
    @classmethod
    def _except(cls, values: object) -> object:
        """Combinations to omit: the setting `except`, which is not a valid name in Python."""
        if isinstance(values, Mapping) and "except" in values:
            rest = {key: value for key, value in values.items() if key != "except"}
            return {**rest, "excluded": values["except"]}
        return values

    @field_validator("excluded")
    @classmethod
    def _axes_exist(cls, found: tuple[dict[str, object], ...]) -> tuple[dict[str, object], ...]:
        for each in found:
            if strange := sorted(set(each) - set(Axes.model_fields)):
                raise ValueError(f"{strange[0]!r} is not an axis; axes are {', '.join(Axes.model_fields)}")
        return found
