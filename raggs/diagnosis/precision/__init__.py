"""Diagnosis `precision`: the effect of low-precision scores (float16, bfloat16) on an evaluation.

`measuring` computes the ranked lists of embedders, rerankers and run files at each precision, and the effect of the
order of equal scores. This module contains the diagnosis, its tables and its plots. Points are hundredths of a score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from raggs.base.arrays import Vectors
from raggs.base.document import Legend, Section, Table, formatted, table_of
from raggs.base.errors import UsageError
from raggs.base.precision import PrecisionSettings
from raggs.base.settings import Causes, Flag, split_commas
from raggs.base.text import plural
from raggs.base.types import Number
from raggs.diagnosis.base import Bench, Diagnosis, DiagnosisConfig, verdict_sentences
from raggs.diagnosis.models import KeyFigure, NextAction
from raggs.diagnosis.precision.measuring import (
    CurvePart,
    ListScoring,
    PrecisionFindings,
    PrecisionLists,
    PrecisionRow,
    PrecisionSystemPart,
    ReversalPart,
    asked_of,
    check_queries_known,
    content_of,
    dense,
    favoured,
    leaks_of,
    lists_of_file,
    reranked,
)
from raggs.evaluation.svg import MAX_LINES, ChartAxis, Curve, chart
from raggs.golden.sources import NamedSystem, open_systems, split_name
from raggs.metrics.names import parse_measure
from raggs.parts.rerankers.local import LocalConfig
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.parts.run_files import read_two_logits
from raggs.stats.score_precision import ScoreForm

FAVOURS = {
    1: "ties in the run files leak labels: relevant passages come first",
    -1: "in the run files, ties are broken against relevant passages",
}
TIE_TABLE_HEAD = ("name", "precision", "measure", "oblivious", "expected", "ends", "range", "across", "bias", "moved")
LEGEND = (Legend("[ ]", "95% confidence interval over queries, in points (hundredths of the score)"),)
HEAD = ("model", "form", "measure", "range", "range, HPS", "bias", "bias, HPS")
PUBLISHED = (
    ("Qwen3-Reranker-0.6B", "softmax", "ndcg@10", "25.59", "1.13", "6.66", "0.24"),
    ("Qwen3-Reranker-0.6B", "softmax", "mrr@10", "38.03", "1.21", "9.08", "0.21"),
    ("bge-reranker-v2-m3", "sigmoid", "ndcg@10", "3.90", "0.16", "1.05", "0.06"),
    ("bge-reranker-v2-m3", "sigmoid", "mrr@10", "6.72", "0.19", "1.51", "0.10"),
    ("gte-multilingual-reranker-base", "sigmoid", "ndcg@10", "0.97", "0.14", "0.26", "0.05"),
    ("Qwen3-Embedding-0.6B", "product", "ndcg@10", "1.90", "0.00", "0.54", "0.00"),
    ("multilingual-e5-large", "product", "ndcg@10", "4.62", "0.00", "0.89", "0.00"),
)
ABOUT_PUBLISHED = (
    "Published for MIRACLReranking (717 queries with 100 candidates each): points in bfloat16, without "
    "and with high-precision scoring (HPS). Without HPS, Qwen3-Reranker scores higher than gte (75.04 and 74.48); "
    "averaged over tie orders, it scores lower (68.38 and 74.22)."
)


def _worst(systems: Sequence[PrecisionSystemPart]) -> PrecisionSystemPart | None:
    """Return the system that depends most on the order of ties; None if no scores were rounded."""
    rounded = [part for part in systems if part.dtype != "f32" and not part.hps]
    return max(rounded, key=lambda part: (_widest_range(part), part.dtype == "bf16"), default=None)


def verdict(systems: Sequence[PrecisionSystemPart], reversals: Sequence[ReversalPart], favours: int) -> str:
    """Return the system whose scores depend most on the order of ties."""
    worst = _worst(systems)
    more = [FAVOURS[favours]] if favours else []
    if worst is None or not _widest_range(worst):
        return verdict_sentences("; ".join(["No score depends on the order of ties at any precision", *more]))
    widest = max(worst.at, key=lambda tied: tied.range or 0.0)
    found = f"In {worst.dtype} (16-bit numbers), scores of {worst.name} depend on the order of ties: "
    found += f"{widest.measure} varies by {_points_in_text(widest.range)} points"
    if pairs := {frozenset((each.first, each.second)) for each in reversals}:
        found += f", and {plural(len(pairs), 'pair')} of systems change{'s' * (len(pairs) == 1)} places"
    return verdict_sentences("; ".join([found, *more]))


def _reversals_section(found: PrecisionFindings) -> Section:
    title = "Systems that change places"
    if not found.reversals:
        alone = len({part.name for part in found.systems}) < 2
        return Section(title, ("only one system was measured" if alone else "none",))
    columns = ("first", "second", "precision", "measure", "oblivious", "expected", "hps")
    return Section(title, (), table_of(found.reversals, *columns))


def _leaking(found: PrecisionFindings) -> Section:
    title = "Effect of the file order on ties"
    if not found.leaks:
        return Section(title, ("no effect: no tie changes a score, or the files are sorted by score",))
    said = FAVOURS.get(found.favours, "no significant effect")
    return Section(title, (said,), table_of(found.leaks, "system", "precision", "measure", "bias", "up", "down", "p"))


def _widest_range(part: PrecisionSystemPart) -> float:
    return max((tied.range or 0.0 for tied in part.at), default=0.0)


def _points_in_text(value: Number) -> str:
    """Return a value as text, in points."""
    return formatted(None if value is None else 100 * value, "z.2f")


PLOTTED_CUTOFFS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 500, 700, 1000)
TICKED = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
NON_WORD_PATTERN = re.compile(r"\W+")  # characters not used in file names
Line = tuple[str, Sequence[Number]]


def _difference_lines(part: PrecisionSystemPart, curve: CurvePart, full: CurvePart) -> Iterator[Line]:
    """Yield the differences from the expected scores in f32, in points."""
    expected = part.precision if part.hps else f"{part.precision}, mean over tie orders"
    yield expected, _subtract_values(curve.expected, full.expected)
    if not part.hps:
        yield f"{part.precision}, ties in file order", _subtract_values(curve.oblivious, full.expected)
    if part.dtype == "bf16" and not part.hps:
        yield f"{part.precision}, best tie order", _subtract_values(curve.most, full.expected)
        yield f"{part.precision}, worst tie order", _subtract_values(curve.least, full.expected)


def _subtract_values(values: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    pairs = zip(values, others, strict=True)
    return [None if value is None or other is None else round(100 * (value - other), 4) for value, other in pairs]


def _draw(title: str, quantity: str, lines: Sequence[Line]) -> str | None:
    """Return a plot of lines by cutoff. A line has the mark of its place in `lines`, so that a series looks the same in
    all plots; identical lines are merged, and those in float32 (HPS) are grey.
    """
    alike: dict[tuple[tuple[float, float], ...], list[tuple[int, str]]] = {}
    for mark, (name, values) in enumerate(sorted(lines, key=lambda line: "HPS" in line[0])):
        points = [(float(k), values[k - 1]) for k in PLOTTED_CUTOFFS if k <= len(values)]
        known = tuple((k, value) for k, value in points if value is not None)
        if known:
            alike.setdefault(known, []).append((MAX_LINES if "HPS" in name else mark, name))
    if not alike:
        return None
    deepest = max(points[-1][0] for points in alike)
    ticks = [float(k) for k in TICKED if k <= deepest]
    shown = [Curve(tuple(name for _, name in found), points, mark=found[0][0]) for points, found in alike.items()]
    return chart(title, (ChartAxis("cutoff k", ticks=ticks, log=True), ChartAxis(quantity)), lines=shown)


FULL_PRECISION = PrecisionSettings()


class PrecisionConfig(DiagnosisConfig):
    """Settings of the diagnosis `precision`: measures, cutoffs and systems."""

    type: Literal["precision"] = "precision"
    measures: Annotated[tuple[str, ...], BeforeValidator(split_commas), Flag(("--measures", "-m"))] = Field(
        ("ndcg", "mrr", "recall", "map"), min_length=1, description="metrics, without cutoffs"
    )
    cutoff: Annotated[int, Flag(("--cutoff", "-k"), "K")] = Field(
        10, ge=1, le=1000, description="cutoff of the per-query results and the tables"
    )
    deepest: Annotated[int, Flag(value="K")] = Field(
        100, ge=1, le=1000, description="last cutoff of the curves, which start at 1"
    )
    candidates: int = Field(100, ge=2, le=10_000, description="number of candidates per query that rerankers read")
    runs: Annotated[tuple[str, ...], Flag(("--run", "-r"), "[NAME=]PATH")] = Field(
        (), description="run files with scores, [NAME=]PATH, to diagnose instead of models"
    )
    scores: Literal["score", "logit", "logits"] = Field(
        "score",
        description="meaning of the numbers in these files: scores, one logit (sigmoid), or two logits in the columns "
        "logit_no and logit_yes (softmax)",
    )
    limit: Annotated[float | None, Flag(value="POINTS")] = Field(
        None, ge=0, le=100, description="maximum range over orders of ties with which the diagnosis passes, in points"
    )


class PrecisionDiagnosis(Diagnosis[PrecisionFindings]):
    """Measure the effect of 16-bit scores: ties, ranges, reversals, label leaks.

    Scores are computed in f32, f16 and bf16. If the last step is known, they are
    also computed in 16 bits with this step in float32 (HPS). Each measure is
    reported with ties in file order, as the mean over all orders of ties, and as
    the minimum and maximum over these orders.
    """

    Config = PrecisionConfig
    Result = PrecisionFindings
    TITLE = "Do scores depend on the order of ties when they are computed in 16 bits?"
    EXAMPLES = (
        "--config raggs.yaml",
        "--golden qrels.txt --run a.trec --run b.trec",
    )
    NEEDS = ("golden",)
    TAKES = ("run", "corpus", "embedder", "reranker")
    TIME = "seconds"
    PACKAGES = ("numpy",)

    config: PrecisionConfig

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings, including the contents of run files."""
        found = super().causes(bench)
        if not self.config.runs:
            return found
        files = {system.name: content_of(system, numbers) for system, numbers in self._given}
        return {**found, "embedder": None, "reranker": None, "corpus": None, "files": files}

    def models(self, bench: Bench) -> tuple[str, ...]:
        """Return the paid models; empty if scores come from files."""
        return () if self.config.runs else super().models(bench)

    def check(self, bench: Bench) -> None:
        """Check that there is a source of scores, and that the measures can be computed under ties."""
        for name in self.config.measures:
            if "@" in name:
                raise UsageError(f"{name} contains a cutoff", remedy=f"--measures {name.partition('@')[0]} --cutoff K")
            measure = parse_measure(f"E[{name}@{self.config.cutoff}]").measure
            if measure.GOLDEN and not bench.judgments.qrels.scale.golden:
                raise UsageError(f"{name} needs grades from 1 to 5", remedy="--measures ndcg,mrr,recall,map")
        if self.config.runs:
            for system, _ in self._given:
                check_queries_known(system, bench.judgments)
            return
        bench.require(("corpus", "embedder"))

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        if self.config.runs:
            return (f"scores of {len(self.config.runs)} run files at three precisions",)
        asked = asked_of(bench)
        texts = list(asked.texts.values())
        bench.count_vectors(texts, stored=True)
        bench.count_reranking(texts, self.config.candidates)
        names = ", ".join((*bench.embedders, *bench.rerankers))
        return (f"{len(texts):,} queries over {len(asked.store):,} passages by {names}, at three precisions",)

    def measure(self, bench: Bench) -> PrecisionFindings:
        """Measure each system at each precision, and combine the results."""
        own = self.config
        weighing = ListScoring(bench.judgments.qrels, own.measures, own.cutoff, own.deepest, bench.seed)
        kept = self._of_files(bench, weighing) if own.runs else self._of_models(bench, weighing)
        leaks, reversals = leaks_of(kept), weighing.turned(kept)
        systems = tuple(each.part for each in kept)
        configured = [tied.range or 0.0 for part in systems if part.configured for tied in part.at]
        return PrecisionFindings(
            verdict=verdict(systems, reversals, favoured(leaks)),
            passed=None if own.limit is None else 100 * max(configured, default=0.0) <= own.limit,
            cutoff=own.cutoff,
            queries=len(bench.judgments.qrels.qids),
            systems=systems,
            reversals=reversals,
            leaks=leaks,
            favours=favoured(leaks),
        )

    def decision_effect(self, found: PrecisionFindings) -> str:
        if found.reversals:
            return "It can change: systems change places with the order of ties (see the details)."
        worst = _worst(found.systems)
        if worst is None or not _widest_range(worst):
            return "Unchanged: no score depends on the order of ties."
        return (
            f"Unchanged: no systems change places. Be careful if {worst.name} differs from another system by less than "
            f"{_points_in_text(_widest_range(worst))} points."
        )

    def action(self, found: PrecisionFindings) -> NextAction | None:
        worst = _worst(found.systems)
        if worst is None or not _widest_range(worst):
            return None
        alike = (part for part in found.systems if (part.name, part.dtype) == (worst.name, worst.dtype))
        spared = next((part for part in alike if part.hps), None)
        if spared is None:
            return NextAction(text="report expected scores and ranges: raggs eval --details")
        left = _points_in_text(_widest_range(spared))
        rest = "removes this dependence" if left == "0.00" else f"leaves at most {left} points"
        return NextAction(text=f"compute the last step in float32, which {rest}")

    def rests_on(self, found: PrecisionFindings) -> int:
        return found.queries

    def sections(self, found: PrecisionFindings) -> tuple[Section, ...]:
        """Return the tables: scores at the cutoff, reversals, label leaks, published figures."""
        sizes: dict[str, list[str]] = {}
        for part in found.systems:
            sizes.setdefault(part.name, []).append(f"{part.largest:,} ({part.precision})")
        told = tuple(f"{name}: largest group of equal scores: {', '.join(each)}" for name, each in sizes.items())
        tied = table_of([(part, tied) for part in found.systems for tied in part.at], *TIE_TABLE_HEAD)
        return (
            Section(f"Scores by precision, at {found.cutoff}", told, tied, LEGEND),
            _reversals_section(found),
            _leaking(found),
            Section("Published results", (ABOUT_PUBLISHED,), Table.of(HEAD, PUBLISHED)),
        )

    def key_figure(self, found: PrecisionFindings) -> KeyFigure | None:
        """Return the widest range of a measure over all orders of ties."""
        worst = _worst(found.systems)
        if worst is None or not worst.at:
            return None
        widest = max(worst.at, key=lambda tied: tied.range or 0.0)
        label = f"of {widest.measure} between the best and the worst order of ties ({worst.label})"
        return KeyFigure.in_points(label, (widest.range, widest.range_low, widest.range_high), "z.2f")

    def main_table(self, found: PrecisionFindings) -> Table | None:
        """Return the table of scores that depend on the order of ties, the widest range first."""
        rows = [(part, tied) for part in found.systems for tied in part.at if tied.range]
        rows.sort(key=lambda row: -(row[1].range or 0.0))
        return table_of(rows, "name", "precision", "measure", "oblivious", "ends", "moved")

    def plots(self, found: PrecisionFindings) -> Mapping[str, str]:
        """Return plots of the first system: one plot per measure, and one plot of the ranges in bf16.

        The result is empty if no measure is defined.
        """
        parts = [part for part in found.systems if part.name == found.systems[0].name]
        drawn: dict[str, str] = {}
        for place, full in enumerate(parts[0].curves if parts else ()):
            lines = [line for part in parts[1:] for line in _difference_lines(part, part.curves[place], full)]
            if svg := _draw(
                f"How far does low precision move {full.measure}@k of {parts[0].name}?",
                f"difference of {full.measure}@k from f32, in hundredths",
                lines,
            ):
                drawn[NON_WORD_PATTERN.sub("-", full.measure).strip("-")] = svg
        wide = [
            (f"{part.precision}, {curve.measure}", _subtract_values(curve.most, curve.least))
            for part in parts
            if part.dtype == "bf16"
            for curve in part.curves
        ]
        if parts and (
            svg := _draw(
                f"How far can the order of ties move the scores of {parts[0].name}?",
                "largest minus smallest, in hundredths",
                wide,
            )
        ):
            drawn["range"] = svg
        return drawn

    def _of_models(self, bench: Bench, weighing: ListScoring) -> list[PrecisionRow]:
        own, asked = self.config, asked_of(bench)
        depth, first = max(own.deepest, own.cutoff), next(iter(bench.embedders.values()))
        retrievers = () if bench.run is None else bench.run.retrieve.retrievers
        own_dense = (spec.scoring for spec in retrievers if isinstance(spec, DenseRetriever.Config))
        configured = next(own_dense, FULL_PRECISION)  # precision of the first dense retriever in the configuration
        kept: list[PrecisionRow] = []
        for name, embedder in bench.embedders.items():
            lists = _deferred_lists(dense, bench, embedder, asked, depth)
            kept += self._kept(bench, weighing, name, embedder.causes(), lists, configured)
        for name, reranker in bench.rerankers.items():
            spec = bench.given.rerankers[name]
            lists = _deferred_lists(reranked, bench, reranker, first, asked, own.candidates)
            scoring = spec.scoring if isinstance(spec, LocalConfig) else FULL_PRECISION
            kept += self._kept(bench, weighing, name, [reranker.causes(), first.causes()], lists, scoring)
        return kept

    def _of_files(self, bench: Bench, weighing: ListScoring) -> list[PrecisionRow]:
        forms: Mapping[str, ScoreForm] = {"logit": "sigmoid", "logits": "softmax"}
        form = forms.get(self.config.scores, "score")
        kept: list[PrecisionRow] = []
        for system, numbers in self._given:
            kept += [
                weighing.weigh(system.name, listed, FULL_PRECISION) for listed in lists_of_file(system, form, numbers)
            ]
        return kept

    def _kept(
        self,
        bench: Bench,
        weighing: ListScoring,
        name: str,
        causes: object,
        lists: Callable[[], Iterable[PrecisionLists]],
        configured: PrecisionSettings,
    ) -> list[PrecisionRow]:
        parts = {need: bench.causes(need) for need in ("golden", "corpus")}
        own = {key: value for key, value in self.own_causes().items() if key != "limit"}
        every = ["precision", name, bench.seed, own, causes, parts, configured.model_dump(mode="json")]
        return bench.kept(every, PrecisionRow, lambda: [weighing.weigh(name, listed, configured) for listed in lists()])

    @cached_property
    def _given(self) -> list[tuple[NamedSystem, Vectors]]:
        """Return the systems of the run files, each with the numbers in its rows, shape (rows,) or (rows, 2).

        Raises:
            RaggsError: a file is missing or not valid.
        """
        if self.config.scores != "logits":
            return [(system, system.run.score.astype(np.float32)) for system in open_systems(list(self.config.runs))]
        found = []
        for spec in self.config.runs:
            name, path = split_name(spec)
            run, numbers = read_two_logits(path)
            found.append((NamedSystem(name or path.stem, str(path), run), numbers))
        return found


def _deferred_lists(
    make: Callable[..., Iterable[PrecisionLists]], *given: object
) -> Callable[[], Iterable[PrecisionLists]]:
    return lambda: make(*given)
