"""Diagnosis `depth`: whether a router can identify the queries that need a deeper search.

It compares a system at two depths and fits thresholds of uncertainty signals. If the router pays off and a run was
given, it writes a run configuration whose `retrieve.depth` uses these thresholds. `measuring` makes the measurements
with the components of sweeps, and fits the thresholds with `raggs.stats.search_depth`. This module contains the
diagnosis, its tables and plot, and the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from raggs.base.document import Column, Legend, Section, Table, table_of, terms_of, without_intervals
from raggs.base.errors import DataError, UsageError
from raggs.base.settings import Causes, Flag
from raggs.base.text import plural
from raggs.config.models import RunConfig
from raggs.diagnosis.base import Bench, Diagnosis, DiagnosisConfig
from raggs.diagnosis.depth.measuring import (
    DepthCostRow,
    DepthFindings,
    FittedRouter,
    HalfPart,
    QuestionRow,
    RouterLimits,
    SystemDepths,
    defined,
    is_router_worthwhile,
    verdict,
)
from raggs.diagnosis.models import KeyFigure
from raggs.evaluation.svg import SHARE, ChartAxis, Curve, Point, chart
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.rerankers import RerankerConfig
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.depth import REQUIRED_SOURCES, RoutedDepth
from raggs.runs.forecast import rewritten
from raggs.stages.embed import EmbedConfig

ROUTED, SHALLOW, DEEP = "routed", "shallow", "deep"


TERMS = (
    Legend("random", "the same number of queries as the router selects, chosen at random (expected value)"),
    Legend(
        "oracle",
        "upper bounds: deeper search for all queries that gain, or for the router's number of best queries",
    ),
    Legend("[ ]", "95% confidence interval over queries (bootstrap)"),
)


def _policies(found: DepthFindings) -> Section:
    half = found.told
    told = [f"{half.questions:,} queries that were not used to fit the thresholds"]
    if found.undefined:
        told.append(f"{found.undefined:,} queries omitted: a metric is not defined for them")
    if found.unknown:
        told.append(
            f"the embedder knows no word of {plural(found.unknown, 'query')}: vector search finds nothing for them"
        )
    if found.reranker is None:
        told.append(
            f"without a reranker, the first passages are the same at any depth; {found.far} covers the deep list"
        )
    if found.passed:
        when = (f"{name}: {'true' if name == 'name' else repr(value)}" for name, value in half.thresholds.items())
        router = f"{{type: routed, base: {found.base}, deep: {found.deep}, when: {{{', '.join(when)}}}}}"
        told.append(f"to use the router, set retrieve.depth (or a value of k in a sweep): {router}")
    return Section("Depths", tuple(told), _policy_table(found), (), TERMS)


def _policy_table(found: DepthFindings, *, intervals: bool = True) -> Table | None:
    names = {SHALLOW: f"{found.base} for all", DEEP: f"{found.deep} for all"}
    table = table_of(
        found.policies,
        (Column("depth"), lambda part: names.get(part.policy, part.policy)),
        *("share", "mean_k", "near", "far"),
        *(["usd_per_1k"] if any(each.usd_per_1k for each in found.policies) else []),
        *(["p50_ms", "p95_ms"] if any(each.p50_ms is not None for each in found.policies) else []),
        near=found.near,
        far=found.far,
    )
    return table if intervals or table is None else without_intervals(table)


def _differences(found: DepthFindings) -> Section:
    halves, shallow = (found.told, found.swapped), f"routed minus {found.base} for all"
    rows = (
        (f"{shallow}, {found.near}", *(half.near_change.cell("signed") for half in halves)),
        (f"routed minus random, {found.far}", *(half.above_random.cell("signed") for half in halves)),
        (f"{shallow}, {found.far}", *(half.far_change.cell("signed") for half in halves)),
        (f"routed minus {found.deep} for all, {found.far}", *(half.below_deep.cell("signed") for half in halves)),
    )
    told = (
        f"thresholds fitted on the even-numbered queries: {_thresholds(found.told)}; on the odd-numbered queries: "
        f"{_thresholds(found.swapped)}",
        f"selected for a deeper search: {found.told.share:.0%} of the odd queries, {found.swapped.share:.0%} of "
        "the even queries",
    )
    terms = (
        Legend(
            "→", "thresholds fitted on the left half, evaluated on the right half; the verdict uses the first column"
        ),
    )
    table = Table.of(("difference", "even → odd", "odd → even"), rows)
    return Section("Differences between the router and the alternatives", told, table, (), terms)


def _thresholds(half: HalfPart) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in half.thresholds.items()) or "none"


def _plot(found: DepthFindings) -> str:
    """Return the plot of quality by share of escalated queries: random escalation, the oracle, the steps of the fit,
    and the router.
    """
    places = {each.policy: (each.share or 0.0, each.far.mean or 0.0) for each in found.policies}
    ends = [places[SHALLOW], places[DEEP]]
    lines = {"random": ends, "oracle": list(found.oracle), "steps of the fit": list(found.path)}
    marks = {SHALLOW: f"{found.base} for all", DEEP: f"{found.deep} for all", ROUTED: ROUTED}
    points = [
        Point(
            *places[policy], words, f"{words}: {places[policy][0]:.0%}, {places[policy][1]:.3f}", True, policy == ROUTED
        )
        for policy, words in marks.items()
    ]
    return chart(
        "How much does a deeper search of some queries improve the quality?",
        (ChartAxis("share of queries searched deeper", SHARE), ChartAxis(found.far, SHARE)),
        lines=[Curve((name,), tuple(line)) for name, line in lines.items() if line],
        points=points,
    )


HEAD = "# {name}: {deep} candidates for some queries, {base} for the others, as measured by `raggs diagnose depth`.\n"
SUFFIX = "-routed"
MAX_NAME_CHARS = 120


def routed_config(run: RunConfig, depth: RoutedDepth, embedder: EmbedderConfig, reranker: RerankerConfig | None) -> str:
    """Return the run configuration with the router as YAML. Its paths are absolute, so the file can be moved.

    Args:
        run: the original configuration.
        depth: settings of the router.
        embedder, reranker: those that were measured.
    """
    import yaml

    tree = {name: _plain_value(value) for name, value in run.model_dump(exclude_unset=True).items()}
    name = f"{run.name[: MAX_NAME_CHARS - len(SUFFIX)]}{SUFFIX}"
    embed = tree.get("embed")
    found = {
        **tree,
        "name": name,
        "workspace": str(run.workspace.absolute()),  # the new configuration uses the same folder for caches and runs
        "embed": {**(embed if isinstance(embed, dict) else {}), "embedder": _settings(embedder)},
        "retrieve": {"retrievers": _retrievers(run, depth, reranker), "depth": _settings(depth)},
    }
    RunConfig.model_validate(found)
    head = HEAD.format(name=name, deep=depth.deep, base=depth.base)
    return head + yaml.safe_dump(found, sort_keys=False, allow_unicode=True)


def _retrievers(run: RunConfig, depth: RoutedDepth, reranker: RerankerConfig | None) -> list[dict[str, object]]:
    """Return the run's retrievers without their own depth, plus those that the router's signals need and the run does
    not have.
    """
    found = [_without_k(_settings(spec)) for spec in run.retrieve.retrievers]
    there = {REGISTRY.of(spec).reads(spec) for spec in run.retrieve.retrievers}
    needed = {reads for signal in depth.when.thresholds for reads in REQUIRED_SOURCES.get(signal, ())}
    found += [{"type": "dense"}] if "vectors" in needed - there else []
    found += [{"type": "bm25"}] if "words" in needed - there else []
    if "candidates" in needed - there and reranker is not None:
        found.append({"type": "reranked", "of": {"type": "dense"}, "by": _settings(reranker)})
    return found


def _without_k(spec: dict[str, object]) -> dict[str, object]:
    """Return the settings of a retriever without its depth. Do the same for an inner retriever."""
    found = {name: value for name, value in spec.items() if name != "k"}
    inner = found.get("of")
    return {**found, "of": _without_k(inner)} if isinstance(inner, dict) else found


def _settings(part: BaseModel) -> dict[str, object]:
    """Return the type of a component, and those of its settings that were set explicitly."""
    kept = {"type": getattr(part, "type", None), **part.model_dump(exclude_unset=True)}
    return {name: _plain_value(value) for name, value in kept.items()}


def _plain_value(value: object) -> object:
    """Convert a setting to plain values for YAML, and make its paths absolute."""
    if isinstance(value, BaseModel):
        return _plain_value(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return {str(key): _plain_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(each) for each in value]
    return str(value.absolute()) if isinstance(value, Path) else value


MIN_JUDGED_QUERIES = 40  # twenty queries to fit the thresholds, and twenty to evaluate them
DEEP_WITH_RERANKER = 30


class DepthConfig(DiagnosisConfig):
    """Settings of the diagnosis `depth`: the depths, the measures, and the limits of a router."""

    type: Literal["depth"] = "depth"
    mode: Literal["dense", "hybrid"] = Field(
        "hybrid", description="how candidates are found: dense: by vectors; hybrid: by words and by vectors"
    )
    base: Annotated[int, Flag(value="K")] = Field(
        50, ge=2, le=10_000, description="number of candidates per query when no signal fires"
    )
    deep: Annotated[int, Flag(value="K")] = Field(
        100, ge=3, le=10_000, description="number of candidates per query when a signal fires"
    )
    min_cutoff: Annotated[int, Flag(value="K")] = Field(
        10, ge=1, description="small cutoff, at which quality must not fall"
    )
    deep_cutoff: Annotated[int | None, Flag(value="K")] = Field(
        None,
        ge=1,
        description="large cutoff, at which quality should rise; default: 30, or that of --deep without a reranker",
    )
    max_share: Annotated[float, Flag(value="SHARE")] = Field(
        0.5, gt=0, le=1, description="maximum share of queries that are searched deeper"
    )
    tolerance: float = Field(
        0.01, ge=0, description="maximum loss of quality at the small cutoff (lower bound of the interval)"
    )
    slo_ms: Annotated[float | None, Flag(("--slo",), "MS")] = Field(
        None,
        gt=0,
        description="maximum 95th percentile of a router's latency in milliseconds; default: no limit",
    )
    timed: int = Field(50, ge=0, description="number of queries that are timed, one at a time; 0 measures no latency")


class DepthDiagnosis(Diagnosis[DepthFindings]):
    """Test whether a deeper search of some queries pays off, and configure a router that selects them.

    Thresholds are fitted on the even-numbered queries and evaluated on the odd-numbered ones. If routing pays off
    and a run configuration was given, raggs writes routed.yaml, a configuration for raggs run, to the folder --out.
    """

    Config = DepthConfig
    Result = DepthFindings
    TITLE = "Do some queries need more candidates than others?"
    EXAMPLES = (
        "--config raggs.yaml --reranker onnx:models/minilm",
        "-c raggs.yaml -g runs/demo --mode dense --slo 500",
    )
    NEEDS = ("golden", "corpus", "embedder")
    TAKES = ("reranker", "run")
    STAGES = ("embed",)
    TIME = "a minute"
    config: DepthConfig

    def models(self, bench: Bench) -> tuple[str, ...]:
        """Return the paid models, including those of the query rewriter."""
        rewriter = bench.workspace.rewriter(self._depths(bench).rewrite)
        return tuple(dict.fromkeys((*super().models(bench), *rewriter.models)))

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings, including the query rewriter (it is not in the bench)."""
        return {**super().causes(bench), "rewriter": bench.workspace.rewriter(self._depths(bench).rewrite).causes()}

    def check(self, bench: Bench) -> None:
        """Check depths and cutoffs, and that the golden set has enough queries.

        Raises:
            UsageError: a depth or a cutoff is invalid, or the results would be the same at both depths.
            DataError: the golden set has too few queries.
        """
        config, far = self.config, self._far(bench)
        if config.deep <= config.base:
            raise UsageError(
                f"--deep {config.deep} is not larger than --base {config.base}", remedy="pass a larger --deep"
            )
        if config.min_cutoff >= far:
            raise UsageError(
                f"--min-cutoff {config.min_cutoff} is not below --deep-cutoff {far}",
                remedy="pass a smaller --min-cutoff",
            )
        if self._depths(bench).reranker is None and far <= config.base:
            remedy = (
                f"pass a reranker (--reranker onnx:models/minilm) or a cutoff above {config.base}: "
                f"--deep-cutoff {config.deep}"
            )
            raise UsageError(f"without a reranker the first {far} passages are the same at any depth", remedy=remedy)
        judged = len(set(bench.judgments.qrels.qids) & bench.queries.keys())
        if judged < MIN_JUDGED_QUERIES:
            raise DataError(
                f"has {plural(judged, 'judged query')}; half are used to fit and half to evaluate, so the "
                f"diagnosis needs at least {MIN_JUDGED_QUERIES}",
                where=bench.golden.source,
                remedy="judge more queries; raggs questions generates them",
            )

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        depths, config, queries = self._depths(bench), self.config, bench.queries.values()
        readable, absent = depths.readable()
        rewriter = bench.workspace.rewriter(depths.rewrite, bench.rehearsal)
        language = (EmbedConfig() if bench.run is None else bench.run.embed).language
        texts = bench.workspace.loop.run(rewritten(queries, rewriter, language)) if rewriter.models else []
        bench.count_vectors([*texts, *(query.text for query in queries)])
        for candidates in (config.base, config.deep):
            bench.count_reranking([query.text for query in queries], candidates)
        bench.counting.guess()
        return (
            f"{plural(len(queries), 'query')} searched with {config.base} and {config.deep} candidates ({config.mode})",
            f"signals: {', '.join(readable)}",
            *absent,
        )

    def measure(self, bench: Bench) -> DepthFindings:
        """Search at both depths, compute the signals, fit the thresholds, and evaluate them."""
        config, depths = self.config, self._depths(bench)
        causes = self.causes(bench)
        unknown = depths.unknown()
        whole = bench.kept({"part": "questions", **causes}, QuestionRow, depths.questions)
        rows = defined(whole)
        if len(rows) < MIN_JUDGED_QUERIES:
            raise DataError(
                f"{depths.measures()[0]} is defined for only {plural(len(rows), 'query')}; the diagnosis needs "
                f"at least {MIN_JUDGED_QUERIES}",
                where=bench.golden.source,
                remedy="judge more queries",
            )
        limits = RouterLimits(config.max_share, config.tolerance, config.slo_ms, bench.seed)
        readable, absent = depths.readable()
        names = tuple(name for name in readable if any(row.signals.get(name) is not None for row in rows))
        fitted, swapped = (FittedRouter(rows, names, limits, even=even) for even in (True, False))
        part = {"part": "takes", "when": dict(fitted.when), **causes}
        takes = {row.policy: row for row in bench.kept(part, DepthCostRow, lambda: depths.takes(fitted.when))}
        waits = takes[ROUTED].p95_ms if ROUTED in takes else None
        half, measures = fitted.half, depths.measures()
        pays = is_router_worthwhile(half, limits, waits)
        return DepthFindings(
            verdict=verdict(half, limits, waits, measures, (config.base, config.deep)),
            passed=pays,
            near=measures[0],
            far=measures[1],
            mode=config.mode,
            reranker=next(iter(bench.given.rerankers), None),
            base=config.base,
            deep=config.deep,
            loss=config.tolerance,
            slo_ms=config.slo_ms,
            undefined=len(whole) - len(rows),
            unknown=unknown,
            told=half,
            swapped=swapped.half,
            policies=fitted.policies(takes, (config.base, config.deep)),
            signals=fitted.signals(),
            absent=absent,
            path=fitted.path,
            oracle=fitted.oracle,
            config=routed_config(bench.run, depths.depth(fitted.when), depths.embedder, depths.reranker)
            if pays and bench.run is not None
            else None,
        )

    def decision_effect(self, found: DepthFindings) -> str:
        return "Unchanged: this diagnosis tests one system with more candidates, to lower its latency and cost."

    def rests_on(self, found: DepthFindings) -> int:
        return found.told.questions

    def sections(self, found: DepthFindings) -> tuple[Section, ...]:
        """Return the findings as tables and sentences."""
        told = ("several signals are tested, so one interval above 0 may be chance", *found.absent)
        columns = ("signal", "threshold", "alone", "share", "above_random", "words")
        table = table_of(found.signals, *columns, far=found.far)
        signals = Section("Signals", told, table, (), terms_of(found.signals, "alone"))
        return _policies(found), _differences(found), signals

    def key_figure(self, found: DepthFindings) -> KeyFigure | None:
        """Return the gain of the router over the same number of random queries."""
        gain = found.told.above_random
        label = f"change of {found.far} if a router, not chance, selects the queries to search deeper"
        return KeyFigure.in_points(label, (gain.mean, gain.low, gain.high))

    def main_table(self, found: DepthFindings) -> Table | None:
        """Return the table of quality, cost and latency, with one row per policy and without intervals.

        A policy searches all queries to one depth, or escalates those that the router, chance or an oracle selects.
        """
        return _policy_table(found, intervals=False)

    def outcome(self, found: DepthFindings) -> str:
        """Return "measured": a router that is not worthwhile is not a failure."""
        return "measured"

    def plots(self, found: DepthFindings) -> Mapping[str, str]:
        """Return the plot of quality by the share of escalated queries."""
        return {"share": _plot(found)}

    def files(self, found: DepthFindings) -> Mapping[str, str]:
        """Return the configuration with the router, if the router pays off."""
        return {} if found.config is None else {"routed.yaml": found.config}

    def _far(self, bench: Bench) -> int:
        if self.config.deep_cutoff is not None:
            return self.config.deep_cutoff
        return DEEP_WITH_RERANKER if bench.given.rerankers else self.config.deep

    def _depths(self, bench: Bench) -> SystemDepths:
        config = self.config
        cutoffs = (config.min_cutoff, self._far(bench))
        return SystemDepths(bench, config.mode, (config.base, config.deep), cutoffs, config.timed)
