"""What a depth is measured by: two systems of a sweep that differ in it alone, question by question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from raggs.base.adapter import AdapterConfig
from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.text import plural
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.depth.models import QuestionRow, TakesRow
from raggs.diagnosis.depth.world import BenchWorld
from raggs.metrics.columns import Run
from raggs.parts.embedders.base import EmbedderConfig
from raggs.parts.rerankers.base import RerankerConfig
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.depth import Reads, RoutedDepth, When
from raggs.parts.retrievers.reranked import RerankedConfig
from raggs.stages.embed import EmbedConfig
from raggs.stats.probes.uncertainty import SIGNALS
from raggs.sweeps.config import Mode, SweepConfig
from raggs.sweeps.costing import Costs
from raggs.sweeps.grid import System, make_grid
from raggs.sweeps.parts import Parts
from raggs.sweeps.partstore import PartStore
from raggs.sweeps.routing import Router
from raggs.sweeps.scoring import Scorer, run_of
from raggs.sweeps.searches import Search
from raggs.sweeps.store import SweepStore
from raggs.sweeps.timing import Clock

NOTHING = When(name=True)  # any: what is read does not hang on it
NO_REWRITE = "none"
EMBEDDER = "name another --embedder, or questions in a language that it knows"


class Depths:
    """A system at two depths on a bench.

    Args:
        bench: with a golden set, passages and an embedder.
        mode: how it searches.
        base, deep: candidates.
        cutoffs: of the measures, the small one first.
        timed: questions that are timed; 0: none.
        reads: the first reranker of the bench orders the candidates, where there is one.
    """

    def __init__(self, bench: Bench, mode: Mode, depths: tuple[int, int], cutoffs: tuple[int, int], timed: int) -> None:
        self._bench, self._mode, self.timed = bench, mode, timed
        self.base, self.deep = depths
        self._cutoffs = cutoffs

    @property
    def embedder(self) -> EmbedderConfig:
        """The first of the bench."""
        return next(iter(self._bench.given.embedders.values()))

    @property
    def reranker(self) -> RerankerConfig | None:
        """The first of the bench; None without one."""
        return next(iter(self._bench.given.rerankers.values()), None)

    @property
    def rewrite(self) -> AdapterConfig:
        """As the run has it, or as any run would."""
        return (EmbedConfig() if self._bench.run is None else self._bench.run.embed).rewrite

    @property
    def duplicates(self) -> float | None:
        """The likeness from which candidates are the same to the reranker: as the run has it, or as any would."""
        specs = () if self._bench.run is None else self._bench.run.retrieve.retrievers
        usual: float | None = SweepConfig.model_fields["duplicates"].default
        return next((spec.duplicates for spec in specs if isinstance(spec, RerankedConfig)), usual)

    @cached_property
    def world(self) -> BenchWorld:
        """The surroundings."""
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
                "llm": self._bench.workshop.llm.settings.model_dump(),
            }
        )
        return BenchWorld(self._bench, config)

    @cached_property
    def systems(self) -> tuple[System, System]:
        """The shallow and the deep one."""
        shallow, deep = make_grid(self.world.config).systems
        return shallow, deep

    @cached_property
    def _parts(self) -> Parts:
        return Parts(self.world, PartStore(self.world.workshop.places.sweeps), self.systems)

    def measures(self) -> tuple[str, str]:
        """What is looked at, at the small and at the great cutoff."""
        name = "ra_nwg" if self.world.judgments.qrels.scale.golden else "ndcg"
        near, far = self._cutoffs
        return f"{name}@{near}", f"{name}@{far}"

    def readable(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The signals that can be read, and a sentence on each other one."""
        absent: dict[str, str] = {}
        if self._mode == "dense":
            absent["agreement"] = "agreement of lists: mode dense has one list"
        if self.reranker is None:
            absent["entropy"] = "entropy: no reranker is named"
        if self.rewrite.type == NO_REWRITE:
            absent["rewrite"] = "distance of the rewrite: nothing rewrites the questions"
        if self.base <= 10:
            absent["tail_margin"] = "tail margin: the base is no deeper than rank 10"
        return tuple(name for name in SIGNALS if name not in absent), tuple(absent.values())

    def questions(self) -> Iterator[QuestionRow]:
        """A row for each judged question: its signals, and its values at both depths."""
        names = self.measures()
        scorer = Scorer(self.world.config.model_copy(update={"quality": names}), self.world.labels, many=True)
        values = [self._values(scorer, system) for system in self.systems]
        found = self._router(NOTHING).signals(self.readable()[0])
        for at, qid in enumerate(scorer.judgments.qrels.qids):
            near, far = ([_number(each[name][at]) for each in values] for name in names)
            yield QuestionRow(
                qid=qid,
                signals=found[qid],
                near_shallow=near[0],
                near_deep=near[1],
                far_shallow=far[0],
                far_deep=far[1],
            )

    def unknown(self) -> int:
        """Questions of which the embedder knows no word, so that their vectors are zeros and have no neighbours.

        Raises:
            DataError: of all of them, so that nothing was searched by vectors.
        """
        searches = self._parts.searches(self.systems[1])
        lists = next(self._parts.hits(each) for each in searches if _reads(each) == "vectors")
        judged = self.world.judgments.qrels.qids
        found = sum(not lists.get(qid) for qid in judged)
        if found == len(judged):
            raise DataError(f"the embedder gives no vector to any of {plural(found, 'question')}", remedy=EMBEDDER)
        return found

    def takes(self, when: Mapping[str, float]) -> Iterator[TakesRow]:
        """What the depths take, and a router of these thresholds; none where it has none."""
        shallow, deep = self.systems
        systems = {"shallow": shallow, "deep": deep}
        if when:
            systems["routed"] = replace(deep, depth=self.depth(when))
        clock = Clock(self.world, self._parts, SweepStore(self.world.folder))
        costs = Costs(self.world, self._parts)
        for policy, system in systems.items():
            final = self._parts.final(system)
            if self.timed:
                clock.note_paid(system)
                clock.note_reranked(system, final)
                clock.time([system], 1)
            total = clock.latency(system).total if self.timed else None
            yield TakesRow(
                policy=policy,
                usd_per_1k=costs.cost(system, final).total,
                p50_ms=None if total is None else round(total.p50, 2),
                p95_ms=None if total is None else round(total.p95, 2),
            )

    def depth(self, when: Mapping[str, float]) -> RoutedDepth:
        """The settings of a router."""
        thresholds: dict[str, object] = {name: True if name == "name" else value for name, value in when.items()}
        return RoutedDepth(base=self.base, deep=self.deep, when=When.model_validate(thresholds))

    def _router(self, when: When) -> Router:
        depth = RoutedDepth(base=self.base, deep=self.deep, when=when)
        return Router(self._parts, replace(self.systems[1], depth=depth), depth)

    def _values(self, scorer: Scorer, system: System) -> Mapping[str, Floats]:
        run: Run = run_of(list(self._parts.final(system).lists.items()))
        return scorer.score(system.name, run, system.k).values


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _reads(search: Search) -> Reads | None:
    return REGISTRY.of(search.retriever).reads(search.retriever)


def column(rows: Sequence[QuestionRow], signal: str) -> list[float]:
    """A signal of each question; NaN where it could not be read."""
    return [math.nan if (value := row.signals.get(signal)) is None else value for row in rows]
