"""The kind `precision`: scores in 32, 16 and bfloat16 bits, with and without high-precision scoring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Literal

import numpy as np
from pydantic import Field

from raggs.base.arrays import Vectors
from raggs.base.errors import UsageError
from raggs.base.precision import Scoring
from raggs.base.settings import Causes
from raggs.diagnosis.base import Diagnosis, DiagnosisConfig, Forecast
from raggs.diagnosis.bench import Bench, reranking
from raggs.diagnosis.precision import showing
from raggs.diagnosis.precision.lists import (
    Asked,
    Listed,
    Weighing,
    asked_of,
    content_of,
    dense,
    favoured,
    given,
    known,
    leaks_of,
    reranked,
)
from raggs.diagnosis.precision.models import Kept, PrecisionFound
from raggs.evaluation.document import Section
from raggs.golden.opened import System, open_systems, split_name
from raggs.metrics.names import parse_measure
from raggs.parts.embedders.base import Embedder
from raggs.parts.indexes.vectors import rows_done
from raggs.parts.readers.runs import read_two_logits
from raggs.parts.rerankers.local import LocalConfig
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.stats.probes.precision import Form

BLOCK = 4096
FULL = Scoring()


class PrecisionConfig(DiagnosisConfig):
    """Which measures, at which cutoffs, and of what."""

    type: Literal["precision"] = "precision"
    measures: tuple[str, ...] = Field(("ndcg", "mrr", "recall", "map"), min_length=1, description="without cutoffs")
    cutoff: int = Field(10, ge=1, le=1000, description="at which questions are told apart")
    deepest: int = Field(100, ge=1, le=1000, description="the last cutoff of the curves, which begin at 1")
    candidates: int = Field(100, ge=2, le=10_000, description="of a question, that rerankers are given")
    runs: tuple[str, ...] = Field((), description="[NAME=]PATH each: lists with scores, in place of models")
    scores: Literal["score", "logit", "logits"] = Field(
        "score",
        description="what the numbers of these files are: scores, a logit each (sigmoid), or two in columns logit_no "
        "and logit_yes (softmax)",
    )
    limit: float | None = Field(None, ge=0, le=100, description="the widest range in points that still passes")


class PrecisionDiagnosis(Diagnosis[PrecisionFound]):
    """What 16 bits make of an evaluation: ranges and biases by ties, systems that change places, leaks of labels."""

    Config = PrecisionConfig
    Result = PrecisionFound
    TITLE = "How far do scores depend on the order of ties when they are computed in 16 bits?"
    NEEDS = ("golden",)
    TAKES = ("run", "corpus", "embedder", "reranker")
    TIME = "seconds"
    PACKAGES = ("numpy",)

    config: PrecisionConfig

    def causes(self, bench: Bench) -> Causes:
        """With the contents of files."""
        found = super().causes(bench)
        if not self.config.runs:
            return found
        files = {system.name: content_of(system, numbers) for system, numbers in self._given}
        return {**found, "embedder": None, "reranker": None, "corpus": None, "files": files}

    def models(self, bench: Bench) -> tuple[str, ...]:
        """None where files say the scores."""
        return () if self.config.runs else super().models(bench)

    def check(self, bench: Bench) -> None:
        """Whether there is something that gives scores, and measures that ties are known of."""
        for name in self.config.measures:
            if "@" in name:
                raise UsageError(
                    f"{name} names its own cutoff", remedy=f"--measures {name.partition('@')[0]} --cutoff K"
                )
            measure = parse_measure(f"E[{name}@{self.config.cutoff}]").measure
            if measure.GOLDEN and not bench.judgments.qrels.scale.golden:
                raise UsageError(f"{name} needs grades 1 to 5", remedy="--measures ndcg,mrr,recall,map")
        if self.config.runs:
            for system, _ in self._given:
                known(system, bench.judgments)
            return
        bench.require(("corpus", "embedder"))

    def forecast(self, bench: Bench) -> Forecast:
        """What would be scored; what providers embed or rerank is what costs."""
        if self.config.runs:
            return Forecast((f"scores of {len(self.config.runs)} files at three precisions",))
        asked = asked_of(bench)
        for embedder in bench.embedders.values():
            if embedder.models:
                _embed(bench, embedder, asked)
        candidates = min(self.config.candidates, len(asked.store))
        read = asked.store.sample(candidates) if bench.rerankers else []
        paid = [
            line
            for reranker in bench.rerankers.values()
            for line in reranking(reranker, len(asked.texts), candidates, list(asked.texts.values()), read)
        ]
        names = ", ".join((*bench.embedders, *bench.rerankers))
        told = f"{len(asked.texts):,} questions over {len(asked.store):,} passages by {names}, at three precisions"
        return Forecast((told,), (*bench.asked(), *paid))

    def measure(self, bench: Bench) -> PrecisionFound:
        """Each system at each precision, then what they say together."""
        own = self.config
        weighing = Weighing(bench.judgments.qrels, own.measures, own.cutoff, own.deepest, bench.seed)
        kept = self._of_files(bench, weighing) if own.runs else self._of_models(bench, weighing)
        leaks, reversals = leaks_of(kept), weighing.turned(kept)
        systems = tuple(each.part for each in kept)
        configured = [tied.range or 0.0 for part in systems if part.configured for tied in part.at]
        return PrecisionFound(
            verdict=showing.verdict(systems, reversals, favoured(leaks)),
            passed=None if own.limit is None else 100 * max(configured, default=0.0) <= own.limit,
            cutoff=own.cutoff,
            queries=len(bench.judgments.qrels.qids),
            systems=systems,
            reversals=reversals,
            leaks=leaks,
            favours=favoured(leaks),
        )

    def rests_on(self, found: PrecisionFound) -> int:
        return found.queries

    def sections(self, found: PrecisionFound) -> tuple[Section, ...]:
        """At the cutoff, reversals, leaks, published figures."""
        return showing.sections(found)

    def plots(self, found: PrecisionFound) -> Mapping[str, str]:
        """Each measure and its range over the cutoff."""
        return showing.plots(found)

    def _of_models(self, bench: Bench, weighing: Weighing) -> list[Kept]:
        own, asked = self.config, asked_of(bench)
        depth, first = max(own.deepest, own.cutoff), next(iter(bench.embedders.values()))
        kept: list[Kept] = []
        for name, embedder in bench.embedders.items():
            lists = _later(dense, bench, embedder, asked, depth)
            kept += self._kept(bench, weighing, name, embedder.causes(), lists, _configured(bench))
        for name, reranker in bench.rerankers.items():
            spec = bench.given.rerankers[name]
            lists = _later(reranked, bench, reranker, first, asked, own.candidates)
            scoring = spec.scoring if isinstance(spec, LocalConfig) else FULL
            kept += self._kept(bench, weighing, name, [reranker.causes(), first.causes()], lists, scoring)
        return kept

    def _of_files(self, bench: Bench, weighing: Weighing) -> list[Kept]:
        forms: Mapping[str, Form] = {"logit": "sigmoid", "logits": "softmax"}
        form = forms.get(self.config.scores, "score")
        kept: list[Kept] = []
        for system, numbers in self._given:
            kept += [weighing.weigh(system.name, listed, FULL) for listed in given(system, form, numbers)]
        return kept

    def _kept(
        self,
        bench: Bench,
        weighing: Weighing,
        name: str,
        causes: object,
        lists: Callable[[], Iterable[Listed]],
        configured: Scoring,
    ) -> list[Kept]:
        parts = {need: bench.causes(need) for need in ("golden", "corpus")}
        own = {key: value for key, value in self.own_causes().items() if key != "limit"}
        every = ["precision", name, bench.seed, own, causes, parts, configured.model_dump(mode="json")]
        return bench.kept(every, Kept, lambda: [weighing.weigh(name, listed, configured) for listed in lists()])

    @cached_property
    def _given(self) -> list[tuple[System, Vectors]]:
        """Return the lists that are named, each with what a model gave for its rows, shape (rows,) or (rows, 2).

        Raises:
            RaggsError: a file is missing, or cannot be right.
        """
        if self.config.scores != "logits":
            return [(system, system.run.score.astype(np.float32)) for system in open_systems(list(self.config.runs))]
        found = []
        for spec in self.config.runs:
            name, path = split_name(spec)
            run, numbers = read_two_logits(path)
            found.append((System(name or path.stem, str(path), run), numbers))
        return found


def _later(make: Callable[..., Iterable[Listed]], *given: object) -> Callable[[], Iterable[Listed]]:
    return lambda: make(*given)


def _configured(bench: Bench) -> Scoring:
    """The precision of the configuration's dense retriever; full where there is none."""
    specs = () if bench.run is None else bench.run.retrieve.retrievers
    return next((spec.scoring for spec in specs if isinstance(spec, DenseRetriever.Config)), FULL)


def _embed(bench: Bench, embedder: Embedder, asked: Asked) -> None:
    """Ask for all vectors that are not there yet."""
    begun = rows_done(bench.workshop.places.vectors, embedder.identity, embedder.dims, asked.store)
    for start in range(begun, len(asked.store), BLOCK):
        embedder.embed(asked.store.contents(start, min(start + BLOCK, len(asked.store))))
    embedder.embed_queries(list(asked.texts.values()))
