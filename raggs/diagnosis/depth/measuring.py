"""Measurements and findings of `raggs diagnose depth`: diagnose/depth.json.

Two systems of a sweep that differ only in their depth search every judged query. `BenchContext` gives the components
of sweeps access to the bench's inputs. The values of each query are stored. Thresholds and quality are computed from
these values without new searches. Cost and latency are measured after the fit, because they depend on the thresholds.
Thresholds are fitted on the even-numbered queries and evaluated on the odd-numbered ones, and then with the halves
swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.arrays import Flags, Floats
from raggs.base.artifacts import Frozen
from raggs.base.document import Column
from raggs.base.errors import DataError
from raggs.base.hashing import hash_value
from raggs.base.text import plural
from raggs.base.types import Number, finite_or_none
from raggs.diagnosis.base import Bench, DiagnosisFindings, capital, verdict_sentences
from raggs.evaluation.models import ReportPart, ScorePart
from raggs.evaluation.report import score_part
from raggs.llm.ledger import LEDGER_FILE
from raggs.metrics.columns import Run
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.rerankers import RerankerConfig
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.depth import RoutedDepth, RoutingThresholds
from raggs.parts.retrievers.reranked import RerankedConfig
from raggs.stages.embed import EmbedConfig
from raggs.stats.search_depth import (
    SIGNALS,
    DepthWorth,
    RouterFitStep,
    RouterReport,
    escalated_questions,
    fit,
    judge,
    oracle_path,
    path,
    thresholds,
)
from raggs.sweeps.config import Mode, SweepConfig
from raggs.sweeps.grid import RetrievalStack, make_grid
from raggs.sweeps.measuring import SystemCosts
from raggs.sweeps.parts import SystemParts
from raggs.sweeps.reranking import Router
from raggs.sweeps.scoring import SystemScorer, run_of
from raggs.sweeps.store import SweepStore
from raggs.sweeps.timing import StepTimer
from raggs.sweeps.world import SweepContext


class QuestionRow(Frozen):
    """Values of one query, stored so that an interrupted diagnosis can be resumed."""

    qid: str
    signals: Mapping[str, float | None]
    near_shallow: float | None
    near_deep: float | None
    far_shallow: float | None
    far_deep: float | None


class DepthCostRow(Frozen):
    """Cost and latency of one depth, stored so that an interrupted diagnosis can be resumed."""

    policy: str
    usd_per_1k: float | None
    p50_ms: float | None
    p95_ms: float | None


class SignalPart(ReportPart):
    """One signal, with its fitted threshold, and with the result if it were the only signal. Results are for the half
    of the queries that was not used for the fit.
    """

    signal: Annotated[str, Column("signal")]
    words: Annotated[str, Column("definition")] = Field(description="definition of the signal")
    threshold: Annotated[float | None, Column("threshold", text="{:.4g}")] = Field(
        description="threshold fitted jointly with the other signals; null if the router does not use the signal"
    )
    alone: Annotated[
        float | None,
        Column(
            "own threshold",
            text="{:.4g}",
            legend="threshold if this is the only signal; the next two columns belong to it",
        ),
    ] = Field(description="threshold if this is the only signal; null if no threshold is better than random selection")
    share: Annotated[Number, Column("searched deeper", text="{:.0%}")] = Field(
        description="share of queries searched deeper, if this is the only signal"
    )
    above_random: Annotated[ScorePart | None, Column("{far} above random", "signed", none="–")] = Field(
        description="gain at the deep cutoff over the same number of random queries, if this is the only signal"
    )


class PolicyPart(ReportPart):
    """Quality, cost and latency of one way to choose depths."""

    policy: str
    share: Annotated[Number, Column("searched deeper", text="{:.0%}")] = Field(
        description="share of queries searched deeper"
    )
    mean_k: Annotated[Number, Column("mean K", text="{:.1f}")] = Field(
        description="mean number of candidates per query"
    )
    near: Annotated[ScorePart, Column("{near}", "score")] = Field(description="quality at the small cutoff")
    far: Annotated[ScorePart, Column("{far}", "score")] = Field(description="quality at the deep cutoff")
    usd_per_1k: Annotated[Number, Column("per 1,000", text="${:,.2f}")] = Field(
        description="cost in USD per 1,000 queries; null if unknown"
    )
    p50_ms: Annotated[Number, Column("p50", text="{:,.1f} ms")] = Field(
        description="median latency over queries; null if not measured"
    )
    p95_ms: Annotated[Number, Column("p95", text="{:,.1f} ms")] = Field(
        description="95th percentile of the latency of single searches; null if not measured"
    )


class HalfPart(ReportPart):
    """A router, evaluated by paired differences on the half of the queries that was not used for the fit."""

    questions: int
    escalated: int
    thresholds: Mapping[str, float]
    near_change: ScorePart = Field(description="router minus the shallow search for all queries, at the small cutoff")
    far_change: ScorePart = Field(description="router minus the shallow search for all queries, at the deep cutoff")
    above_random: ScorePart = Field(
        description="router minus the same share of queries chosen at random, at the deep cutoff"
    )
    below_deep: ScorePart = Field(description="router minus the deep search for all queries, at the deep cutoff")

    @property
    def share(self) -> float:
        """Share of the queries that are escalated."""
        return self.escalated / self.questions if self.questions else 0.0


class DepthFindings(DiagnosisFindings):
    """Findings. Queries are numbered from 0 in the order of their ids. Thresholds are fitted on the even-numbered
    queries. Quality is that of the odd-numbered queries, except in `swapped`. Measured cost and latency are not
    limited to these.
    """

    near: str = Field(description="metric that must not fall")
    far: str = Field(description="metric that should rise")
    mode: str
    reranker: str | None = Field(description="name of the reranker; null if there is none")
    base: int
    deep: int
    loss: float = Field(description="maximum loss of the mean of `near`")
    slo_ms: float | None
    undefined: int = Field(description="queries omitted because a metric is not defined for them")
    unknown: int = Field(
        0, description="queries of which the embedder knows no word, so only lexical search finds passages for them"
    )
    told: HalfPart = Field(
        description="fitted on the even-numbered queries, evaluated on the odd-numbered ones; basis of the verdict"
    )
    swapped: HalfPart = Field(description="fitted on the odd-numbered queries, evaluated on the even-numbered ones")
    policies: tuple[PolicyPart, ...]
    signals: tuple[SignalPart, ...]
    absent: tuple[str, ...] = Field(description="signals that cannot be computed, with the reason")
    path: tuple[tuple[float, float], ...] = Field(description="share and quality after each step of the fit")
    oracle: tuple[tuple[float, float], ...] = Field(
        description="share and quality of an oracle, which knows each query's gain"
    )
    config: str | None = Field(
        description="configuration with the router (YAML); null if routing is not worthwhile, or if no run was given"
    )


CACHE_PREFIX = "depth"


class BenchContext(SweepContext):
    """Context that the components of a sweep need, made from the inputs of a bench.

    Args:
        bench: gives the golden set, queries, passages and workspace.
        config: configuration of a sweep with the systems and cutoffs. The sweep itself is not run.

    Raises:
        DataError: none of the bench's queries has a grade.
    """

    def __init__(self, bench: Bench, config: SweepConfig) -> None:
        self.config, self.hear, self.workspace = config, bench.hear, bench.workspace
        self.golden, self.judgments, self.passages = bench.golden, bench.judgments, bench.passages
        judged = set(self.judgments.qrels.qids)
        self.queries = {qid: query for qid, query in bench.queries.items() if qid in judged}
        if not self.queries:
            raise DataError(
                "has no grade for any of the queries", where=bench.golden.source, remedy="pass another --golden"
            )

    @property
    def folder(self) -> Path:
        """Folder of the latency measurements, inside the cache folder."""
        return self.workspace.cache.at("diagnoses").folder / f"{CACHE_PREFIX}-{hash_value(self.fingerprint)[:16]}"

    @property
    def ledger(self) -> Path:
        """Ledger in which the calls of the diagnosis are recorded."""
        return self.workspace.ledger.path or self.folder / LEDGER_FILE

    def book(self, what: str) -> None:
        """Record the next calls under the name of this part of the work, in the ledger of the diagnosis."""
        self.workspace.ledger.turn_to(self.ledger, what)


NO_THRESHOLDS = RoutingThresholds(name=True)  # any thresholds: the signals do not depend on them
NO_REWRITE = "none"
EMBEDDER = "pass another --embedder, or queries in a language that it knows"


class SystemDepths:
    """A system at two depths on a bench.

    Args:
        bench: has a golden set, passages and an embedder.
        mode: how it searches.
        depths: numbers of candidates, the smaller one first.
        cutoffs: cutoffs of the measures, the small one first.
        timed: number of queries that are timed; 0 measures no latency.
    """

    def __init__(self, bench: Bench, mode: Mode, depths: tuple[int, int], cutoffs: tuple[int, int], timed: int) -> None:
        self._bench, self._mode, self.timed = bench, mode, timed
        self.base, self.deep = depths
        self._cutoffs = cutoffs

    @property
    def embedder(self) -> EmbedderConfig:
        """First embedder of the bench."""
        return next(iter(self._bench.given.embedders.values()))

    @property
    def reranker(self) -> RerankerConfig | None:
        """First reranker of the bench; None if the bench has no reranker."""
        return next(iter(self._bench.given.rerankers.values()), None)

    @property
    def rewrite(self) -> AdapterConfig:
        """Query rewriter of the run, or the default rewriter if there is no run."""
        return (EmbedConfig() if self._bench.run is None else self._bench.run.embed).rewrite

    @property
    def duplicates(self) -> float | None:
        """Minimum similarity of candidates that the reranker treats as duplicates: the setting of the run's first
        reranking retriever, or the default of sweeps if there is none.
        """
        specs = () if self._bench.run is None else self._bench.run.retrieve.retrievers
        usual: float | None = SweepConfig.model_fields["duplicates"].default
        return next((spec.duplicates for spec in specs if isinstance(spec, RerankedConfig)), usual)

    @cached_property
    def world(self) -> BenchContext:
        """Context that both systems are created with."""
        axes = {
            "mode": self._mode,
            "k": [self.base, self.deep],
            "embedder": [self.embedder.model_dump()],
            "rewrite": [self.rewrite.model_dump()],
            "reranker": ["none" if self.reranker is None else self.reranker.model_dump()],
        }
        config = SweepConfig.model_validate(
            {
                "name": "depth",
                "golden": ".",
                "axes": axes,
                "cutoffs": self._cutoffs,
                "duplicates": self.duplicates,
                "hybrid": {"depth": max(self.deep, 100)},
                "latency": {"passes": 1, "queries": max(1, self.timed)},
                "llm": self._bench.workspace.settings.model_dump(),
            }
        )
        return BenchContext(self._bench, config)

    @cached_property
    def systems(self) -> tuple[RetrievalStack, RetrievalStack]:
        """The shallow and the deep system."""
        shallow, deep = make_grid(self.world.config).systems
        return shallow, deep

    @cached_property
    def _parts(self) -> SystemParts:
        return SystemParts(self.world, self.systems)

    def measures(self) -> tuple[str, str]:
        """Return the names of the measures at the small and at the large cutoff."""
        name = "ra_nwg" if self.world.judgments.qrels.scale.golden else "ndcg"
        near, far = self._cutoffs
        return f"{name}@{near}", f"{name}@{far}"

    def readable(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the signals that can be computed, and for each of the others a sentence with the reason."""
        absent: dict[str, str] = {}
        if self._mode == "dense":
            absent["agreement"] = "agreement: needs two retrieved lists, but mode dense has only one"
        if self.reranker is None:
            absent["entropy"] = "entropy: needs a reranker"
        if self.rewrite.type == NO_REWRITE:
            absent["rewrite"] = "rewrite: needs a query rewriter"
        if self.base <= 10:
            absent["tail_margin"] = "tail_margin: needs more than 10 candidates"
        return tuple(name for name in SIGNALS if name not in absent), tuple(absent.values())

    def questions(self) -> Iterator[QuestionRow]:
        """Yield a row for each judged query: its signals, and its values at both depths."""
        names = self.measures()
        scorer = SystemScorer(self.world.config.model_copy(update={"quality": names}), self.world.labels, many=True)
        values = [self._values(scorer, system) for system in self.systems]
        depth = RoutedDepth(base=self.base, deep=self.deep, when=NO_THRESHOLDS)
        found = Router(self._parts, replace(self.systems[1], depth=depth), depth).signals(self.readable()[0])
        for at, qid in enumerate(scorer.judgments.qrels.qids):
            near, far = ([finite_or_none(each[name][at]) for each in values] for name in names)
            yield QuestionRow(
                qid=qid,
                signals=found[qid],
                near_shallow=near[0],
                near_deep=near[1],
                far_shallow=far[0],
                far_deep=far[1],
            )

    def unknown(self) -> int:
        """Return the number of queries of which the embedder knows no word. Their vectors are zero and have no
        neighbours.

        Raises:
            DataError: the embedder knows no word of any query, so dense retrieval returned nothing.
        """
        searches = self._parts.searches(self.systems[1])
        reads = ((each, REGISTRY.of(each.retriever).reads(each.retriever)) for each in searches)
        lists = next(self._parts.hits(each) for each, read in reads if read == "vectors")
        judged = self.world.judgments.qrels.qids
        found = sum(not lists.get(qid) for qid in judged)
        if found == len(judged):
            raise DataError(f"the embedder returns no vector for any of {plural(found, 'query')}", remedy=EMBEDDER)
        return found

    def takes(self, when: Mapping[str, float]) -> Iterator[DepthCostRow]:
        """Yield cost and latency of both depths. If there are thresholds, also yield those of a router with these
        thresholds.
        """
        shallow, deep = self.systems
        systems = {"shallow": shallow, "deep": deep}
        if when:
            systems["routed"] = replace(deep, depth=self.depth(when))
        clock = StepTimer(self.world, self._parts, SweepStore(self.world.folder))
        costs = SystemCosts(self.world, self._parts)
        for policy, system in systems.items():
            final = self._parts.final(system)
            if self.timed:
                clock.note_paid(system)
                clock.note_reranked(system, final)
                clock.time([system], 1)
            total = clock.latency(system).total if self.timed else None
            yield DepthCostRow(
                policy=policy,
                usd_per_1k=costs.cost(system, final).total,
                p50_ms=None if total is None else round(total.p50, 2),
                p95_ms=None if total is None else round(total.p95, 2),
            )

    def depth(self, when: Mapping[str, float]) -> RoutedDepth:
        """Return the settings of a router."""
        thresholds: dict[str, object] = {name: True if name == "name" else value for name, value in when.items()}
        return RoutedDepth(base=self.base, deep=self.deep, when=RoutingThresholds.model_validate(thresholds))

    def _values(self, scorer: SystemScorer, system: RetrievalStack) -> Mapping[str, Floats]:
        run: Run = run_of(list(self._parts.final(system).lists.items()))
        return scorer.score(system.name, run, system.k).values


CURVE_POINTS = 60  # number of points of the oracle's curve


@dataclass(frozen=True)
class RouterLimits:
    """Limits of a router.

    Attributes:
        most: maximum share of escalated queries.
        loss: maximum loss of quality at the small cutoff.
        slo_ms: maximum 95th percentile of the latency in milliseconds; None for no limit.
        seed: random seed of the resamples.
    """

    most: float
    loss: float
    slo_ms: float | None
    seed: int


class FittedRouter:
    """A router fitted on one half of the queries and evaluated on the other.

    Args:
        rows: all queries with defined values, by id.
        names: the signals that can be computed.
        limits: limits of the fit.
        even: whether the router is fitted on the even-numbered queries and evaluated on the odd-numbered ones. If
            False, the halves are swapped.
    """

    def __init__(
        self, rows: Sequence[QuestionRow], names: Sequence[str], limits: RouterLimits, *, even: bool = True
    ) -> None:
        signals = {name: np.array([row.signals.get(name) for row in rows], dtype=np.float64) for name in names}
        seen: Flags = (np.arange(len(rows)) % 2 == 0) == even
        worth = _depth_worth(rows)
        self._limits, self._seen = limits, {name: values[seen] for name, values in signals.items()}
        self._other: dict[str, Floats] = {name: values[~seen] for name, values in signals.items()}
        self._worth, self._judged = worth.part(seen), worth.part(~seen)
        self.steps = self._fit(names)
        self.when = thresholds(self.steps)
        self.report = self._judge(self.when)

    @property
    def half(self) -> HalfPart:
        """Results of the router on the half that was not used for the fit."""
        found = self.report
        return HalfPart(
            questions=found.questions,
            escalated=found.escalated,
            thresholds=self.when,
            near_change=score_part(found.near_change),
            far_change=score_part(found.far_change),
            above_random=score_part(found.above_random),
            below_deep=score_part(found.below_deep),
        )

    @property
    def path(self) -> tuple[tuple[float, float], ...]:
        """Share of escalated queries and quality after each step of the fit, on the half that was not used for the
        fit.
        """
        return path(self.steps, self._other, self._judged)

    @property
    def oracle(self) -> tuple[tuple[float, float], ...]:
        """Share of escalated queries and quality of an oracle that knows each query's gain, at several points."""
        whole = oracle_path(self._judged)
        kept = sorted({round(at * (len(whole) - 1) / CURVE_POINTS) for at in range(CURVE_POINTS + 1)})
        return tuple(whole[at] for at in kept)

    def policies(self, takes: Mapping[str, DepthCostRow], depths: tuple[int, int]) -> tuple[PolicyPart, ...]:
        """Return the results of all ways to choose depths, on the half that was not used for the fit."""
        base, deep = depths

        def mixed(share: float) -> float | None:
            """Return the mean cost per query if this share of the queries, chosen at random, is escalated."""
            least, most = takes["shallow"].usd_per_1k, takes["deep"].usd_per_1k
            return None if least is None or most is None else least + share * (most - least)

        return tuple(
            PolicyPart(
                policy=name,
                share=each.share,
                mean_k=base + each.share * (deep - base),
                near=score_part(each.near),
                far=score_part(each.far),
                usd_per_1k=takes[name].usd_per_1k if name in takes else mixed(each.share),
                p50_ms=takes[name].p50_ms if name in takes else None,
                p95_ms=takes[name].p95_ms if name in takes else None,
            )
            for name, each in self.report.policies.items()
        )

    def signals(self) -> tuple[SignalPart, ...]:
        """Return each signal, with its threshold in the router, and with its result as the only signal."""
        found: list[SignalPart] = []
        for name in self._seen:
            when = thresholds(self._fit([name]))
            report: RouterReport | None = self._judge(when) if when else None
            found.append(
                SignalPart(
                    signal=name,
                    words=SIGNALS[name].words,
                    threshold=self.when.get(name),
                    alone=when.get(name),
                    share=None if report is None else report.share,
                    above_random=None if report is None else score_part(report.above_random),
                )
            )
        return tuple(found)

    def _fit(self, names: Sequence[str]) -> tuple[RouterFitStep, ...]:
        chosen = {name: self._seen[name] for name in names}
        return fit(chosen, self._worth, most=self._limits.most, loss=self._limits.loss)

    def _judge(self, when: Mapping[str, float]) -> RouterReport:
        return judge(escalated_questions(self._other, when), self._judged, seed=self._limits.seed)


def defined(rows: Sequence[QuestionRow]) -> list[QuestionRow]:
    """Return the queries for which both measures are defined at both depths, by id."""
    return sorted((row for row in rows if None not in _values(row)), key=lambda row: row.qid)


def is_router_worthwhile(half: HalfPart, limits: RouterLimits, p95_ms: float | None) -> bool:
    """Return whether a router pays off: it escalates some queries, loses no more than allowed, is significantly
    better than random escalation, and meets the latency limit.
    """
    low, beats = half.near_change.low, half.above_random.low
    in_time = limits.slo_ms is None or (p95_ms is not None and p95_ms <= limits.slo_ms)
    return bool(
        half.escalated and low is not None and low >= -limits.loss and beats is not None and beats > 0 and in_time
    )


def verdict(
    half: HalfPart, limits: RouterLimits, p95_ms: float | None, measures: tuple[str, str], depths: tuple[int, int]
) -> str:
    """Return the verdict: one sentence, or two or three if no query is escalated."""
    (near, far), (base, deep) = measures, depths
    if not half.escalated:
        return _nobody_deep_verdict(half, far, depths)
    begin = f"searching {half.share:.0%} of the queries with {deep} candidates"
    beyond = f"{_change_text(half.above_random)} {far} more than the same number of random queries"
    if is_router_worthwhile(half, limits, p95_ms):
        return f"Routing is worthwhile: {begin} (others: {base}) gains {beyond}, without a relevant loss of {near}."
    low, beats = half.near_change.low, half.above_random.low
    if beats is None or beats <= 0:
        told = f"changes {far} by {_change_text(half.above_random)} compared with the same number of random queries"
        worse = half.above_random.high is not None and half.above_random.high < 0
        return f"Routing is not worthwhile: {begin} {told}{'' if worse else ', which may be chance'}."
    if low is None or low < -limits.loss:
        told = _change_text(half.near_change)
        return f"Routing is not worthwhile: {begin} changes {near} by {told}; the loss may exceed {limits.loss:g}."
    wait = "latency was not measured" if p95_ms is None else f"the p95 latency is {p95_ms:,.0f} ms"
    return f"Routing is not worthwhile: {begin} gains {beyond}, but {wait}; the limit is {limits.slo_ms:,.0f} ms."


def _nobody_deep_verdict(half: HalfPart, far: str, depths: tuple[int, int]) -> str:
    """Return the verdict if no query is escalated. In this case, `half.below_deep` is the effect of the deep list
    for all queries, with the sign reversed.
    """
    base, deep = depths
    less = half.below_deep
    if less.mean is None or less.low is None or less.high is None or less.low == less.high == 0:
        return f"Routing is not worthwhile: {deep} candidates change {far} for no query. Use {base} for all."
    for_all = f"{deep} for all changes {far} by {-less.mean:+.4f} [{-less.high:+.4f}, {-less.low:+.4f}]"
    why = (
        "no signal predicts which queries gain"
        if not half.thresholds
        else "the signals select no query of the other half"
    )
    return verdict_sentences(
        f"Routing is not worthwhile: {why}. {capital(for_all)}",
        f"Use {deep} candidates for all queries" if less.high < 0 else "",
    )


def _change_text(part: ScorePart) -> str:
    if part.mean is None or part.low is None or part.high is None:
        return "an undefined amount"
    return f"{part.mean:+.4f} [{part.low:+.4f}, {part.high:+.4f}]"


def _values(row: QuestionRow) -> tuple[float | None, ...]:
    return row.near_shallow, row.near_deep, row.far_shallow, row.far_deep


def _depth_worth(rows: Sequence[QuestionRow]) -> DepthWorth:
    return DepthWorth(*np.array([_values(row) for row in rows], dtype=np.float64).reshape(-1, 4).T)
