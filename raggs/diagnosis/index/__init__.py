"""Diagnosis `index`: how many of the nearest passages approximate indexes lose, and for which queries.

`models` contains settings and findings. `measuring` measures indexes at several search efforts, and `comparing`
compares them at equal mean recall. This module contains the diagnosis, its tables and its plots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from raggs.base.document import Cell, Column, ColumnSpec, Legend, Section, Table, table_of, without_intervals
from raggs.base.errors import DataError, UsageError
from raggs.base.files import hash_file
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.diagnosis.base import Bench, Diagnosis, Need
from raggs.diagnosis.index.comparing import (
    THREE,
    USUAL_LEVEL,
    delta_of,
    few_asked,
    front_of,
    ladders,
    left_out,
    matched_parts,
    most_telling,
    read_answers,
    verdict,
)
from raggs.diagnosis.index.measuring import (
    MIN_VECTORS_PER_HIT,
    QUESTIONS,
    SERVER,
    EffortTuner,
    IndexFamily,
    IndexWorkload,
    embedder_of,
    families,
    hold_out,
    open_matrix,
    open_world,
    point_of,
    points_of,
    texts_of,
)
from raggs.diagnosis.index.models import (
    FrontPart,
    IndexDiagnosisConfig,
    IndexFindings,
    LowRecallPart,
    MatchedPart,
    PointPart,
    QuerySetPart,
    RequiredRecallPart,
    TunedPart,
)
from raggs.diagnosis.models import KeyFigure
from raggs.evaluation.svg import POSITIVE, SHARE, ChartAxis, Curve, chart
from raggs.parts import indexes
from raggs.stats.index_loss import robustness

BAND = (0.70, 0.95)  # only points with a mean recall in this range get a row
MEASURES = ("map", "ndcg", "mrr")
TERMS = (
    Legend("recall", "share of the exact K nearest neighbours that the index returned"),
    Legend("r0.3", "share of queries with a recall of at least 0.3 (Robustness-0.3@K)"),
    Legend(
        "map, ndcg, mrr",
        "metrics of the returned list, with the exact search's list as the truth; ndcg discounts by the exact rank",
    ),
    Legend("qps", "queries per second; queries are sent one at a time, on one thread"),
)


def _workload_section(found: IndexFindings) -> Section:
    asked = " and ".join(f"{part.questions:,} {part.origin}" for part in found.asked)
    told = [f"{found.source}, {found.rows:,} of them indexed, {found.dims} dimensions; queries: {asked}"]
    if found.exact_qps is not None:
        told.append(f"the exact search answers {found.exact_qps:,.0f} queries per second, one at a time")
    if found.load is not None and found.load > 1:
        told.append(
            f"load per processor: {found.load:.1f}; other programs probably used the processors, so qps may be "
            "underestimated"
        )
    return Section("Measurements", tuple(told), terms=TERMS)


# --- at equal mean recall -------------------------------------------------------------------------------------


def _matched(found: IndexFindings, names: Sequence[str]) -> Iterator[Section]:
    def of(field: str, measures: Sequence[str]) -> list[ColumnSpec]:
        return [(field, name) for name in measures]

    for (k, origin), group in groupby(found.matched, key=lambda part: (part.k, part.origin)):
        parts, at = list(group), f"K {k}, {origin}"
        table = table_of(parts, "level", "index", "effort", "qps", *of("values", names))
        yield Section(f"At equal mean recall: {at}", table=table)
        if apart := table_of([part for part in parts if part.against], "level", "index", *of("against", names)):
            yield Section(f"Difference from {parts[0].index}: {at}", table=apart)
        # shows how much each metric differs between indexes (Wang et al. 2025, Fig. 3)
        measures = (*MEASURES, names[0], names[-1])
        if departs := table_of(
            [part for part in parts if part.deviation], "level", "index", *of("deviation", measures)
        ):
            yield Section(f"Deviation of each metric from the mean of the indexes: {at}", table=departs)


def _left_out(parts: Sequence[LowRecallPart]) -> Iterator[Section]:
    if table := table_of(parts, "index", "tried", "share", "qids"):
        below = f"Queries with a recall@{parts[0].k} below {parts[0].below:g}"
        yield Section(f"{below}, at the effort with a mean recall nearest to {USUAL_LEVEL:g}", table=table)


# --- points ---------------------------------------------------------------------------------------------------


def _points(points: Sequence[PointPart], names: Sequence[str]) -> Iterator[Section]:
    values = [("values", name) for name in ("recall", *names)]
    for (k, origin), group in groupby(points, key=lambda part: (part.k, part.origin)):
        shown = [part for part in group if BAND[0] <= (part.values["recall"].mean or 0.0) <= BAND[1]]
        if table := table_of(shown, "index", "tried", "qps", "cpu_ms", "bytes", "build_s", *values):
            yield Section(f"Points with a mean recall of {BAND[0]:g} to {BAND[1]:g}: K {k}, {origin}", table=table)


# --- selection ------------------------------------------------------------------------------------------------


def _tuned_section(part: TunedPart) -> Section:
    told = f"no tested setting significantly stays within a loss of {part.limit:.1%}: try other values or another index"
    if part.yaml is not None:
        told = f"to use this setting, add to the retriever of type dense: {part.yaml}"
    what = f"loss compared with the exact search, {part.depth} hits per query, {part.questions:,} {part.origin}"
    doubt = (
        f"even without any loss, {part.questions} queries are too few: up to {THREE / part.questions:.1%} of all "
        "queries may have a loss"
    )
    table = table_of(
        part.tried,
        (Column(part.setting), lambda each: Cell(f"{each.effort:,}", mark="▼" if each.effort == part.effort else "")),
        *(("losses", name) for name in part.tried[0].losses),
    )
    return Section(
        f"Lowest sufficient effort: {part.index}",
        (told, what, doubt) if few_asked(part) else (told, what),
        table,
        legend=(Legend("▼", "the lowest effort whose interval is within the limit"),),
    )


def _front(part: FrontPart) -> Section:
    told = f"{part.reached} of {part.points} points have a {part.what} of at least {part.least:g}; the best of them:"
    effort = (Column("effort"), lambda each: f"{each.setting} {each.effort}")
    table = table_of(part.front, "index", effort, "recall", "robustness", "qps", delta=f"{part.delta:g}")
    return Section(f"Points with {part.what} of at least {part.least:g}", (told,), table)


def _delta(part: RequiredRecallPart) -> Section:
    told = (
        f"no recall level keeps the accuracy at {part.near:.0%} of the exact search's accuracy, or there are "
        "too few answers"
    )
    if part.delta is not None:
        told = (
            f"delta is {part.delta:g}: from this recall on, accuracy is at least {part.near:.0%} of the exact search's"
        )
    table = table_of(part.bins, "recall", "answers", "accuracy", "exact", "ratio")
    return Section("Recall needed for correct answers", (told,), table)


MIN_PLOTTED_RECALL = 0.6  # lowest mean recall in the plots
TICKS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
LOW_DELTA, HIGH_DELTA = 0.3, 0.9


def _mean(name: str, part: PointPart) -> float:
    return part.values[name].mean or 0.0


def _over_recall(
    title: str, points: Sequence[PointPart], up: ChartAxis, k: int, value: Callable[[PointPart], float]
) -> str:
    recalls = [(part, part.values["recall"].mean or 0.0) for part in points]
    drawn = [(part, recall) for part, recall in recalls if recall >= MIN_PLOTTED_RECALL]
    lines = [
        Curve((name,), tuple(sorted(line)))
        for name in dict.fromkeys(part.index for part in points)
        if (line := [(recall, value(part)) for part, recall in drawn if part.index == name])
    ]
    return chart(title, (ChartAxis(f"mean recall@{k}", SHARE, TICKS), up), lines=lines) if lines else ""


def _over_delta(matched: Sequence[MatchedPart], deltas: Sequence[float], k: int) -> str:
    """Return the plot at the level nearest to the default one, among the levels around which most indexes were
    measured.
    """
    levels = [part.level for part in matched]
    if not levels:
        return ""
    level = max(set(levels), key=lambda each: (levels.count(each), -abs(each - USUAL_LEVEL)))
    lines = [
        Curve((part.index,), tuple((delta, part.values[robustness(delta)].mean or 0.0) for delta in sorted(deltas)))
        for part in matched
        if part.level == level
    ]
    title = f"How many queries reach each recall@{k} at a mean of {level:g}? ({matched[0].origin})"
    up = ChartAxis(f"share of queries with a recall@{k} of at least delta", SHARE)
    return chart(title, (ChartAxis("delta", SHARE, sorted(deltas)), up), lines=lines)


EXACT = "flat"
PASSAGES_PER_BLOCK = 4096  # number of passages in one step of the cost estimate


class IndexDiagnosis(Diagnosis[IndexFindings]):
    """Measure what approximate indexes lose, for which queries, and which search effort is enough."""

    Config = IndexDiagnosisConfig
    Result = IndexFindings
    TITLE = "How much recall do approximate indexes lose, and which search effort is enough?"
    EXAMPLES = (
        "--config raggs.yaml",
        "--config raggs.yaml --index hnsw --tune 1%",
        "--vectors passages.npy --queries questions.npy",
    )
    NEEDS = ("corpus", "embedder")
    TAKES = ("golden",)
    PACKAGES = ("faiss-cpu",)

    config: IndexDiagnosisConfig

    @property
    def needs(self) -> tuple[Need, ...]:
        """Required inputs. If vectors come from a file, no input is required."""
        return () if self.config.vectors is not None else self.NEEDS

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings, including the queries and the contents of files."""
        own, files = self.config, (self.config.vectors, self.config.queries, self.config.correct)
        asked = dict(texts_of(bench)) if _needs_vectors(bench, own) else {}
        return {
            **super().causes(bench),
            "questions": hash_value(asked),
            "files": [None if path is None else hash_file(path) for path in files],
            "depth": None if own.tune is None or bench.run is None else str(bench.run.retrieve.retrievers),
        }

    def check(self, bench: Bench) -> None:
        """Check that vectors, queries and faiss are available, and that the settings are valid."""
        own = self.config
        for path in (own.vectors, own.queries, own.correct):
            if path is not None and not path.is_file():
                raise DataError("no such file", where=path, remedy="check the path")
        if own.measure is not None:
            bench.require(("golden",))
        if own.correct is not None:
            read_answers(own.correct)
        rows, dims = _shape(bench, own)
        _cutoffs(own, rows)
        for family in families(own, dims):
            family.at(1).check(rows, dims, bench.workspace.cache)

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        own = self.config
        rows, dims = _shape(bench, own)
        if own.vectors is None and (embedder := embedder_of(bench)).models:
            store = bench.store(SERVER)
            for start in range(bench.workspace.vectors_begun(store, embedder), rows, PASSAGES_PER_BLOCK):
                embedder.embed(store.contents(start, min(start + PASSAGES_PER_BLOCK, rows)))
            if _needs_vectors(bench, own):
                embedder.embed_queries(list(texts_of(bench).values()))
        names = ", ".join(family.name for family in families(own, dims))
        ks = " and ".join(map(str, _cutoffs(own, rows)))
        return (f"{rows:,} vectors of {dims} dimensions indexed by {names}; {ks} neighbours per query",)

    def measure(self, bench: Bench) -> IndexFindings:
        """Measure every index at every effort, and compute the findings."""
        own, world = self.config, open_world(bench, self.config)
        asking = hold_out(world, own.held_out, bench.seed)
        if not asking.asked:
            raise UsageError(
                "no queries to search with", remedy="pass --held-out 500, or queries by --config or --queries"
            )
        rows, dims = asking.vectors.vectors.shape
        ks = _cutoffs(own, rows)
        by_answers = self._delta(bench, world, ks[0])
        delta = own.robust_at if by_answers is None or by_answers.delta is None else by_answers.delta
        deltas = tuple(sorted({*own.deltas, delta}))
        kinds = families(own, dims)
        points = [point for k in ks for each in kinds for point in points_of(bench, asking, each, k, own)]
        rungs = ladders(points, deltas, bench.seed)
        parts = tuple(part for rung in rungs for part in rung.parts())
        matched = tuple(matched_parts(rungs, sorted(set(own.recall_levels)), deltas))
        tuned = self._tuned(bench, world, asking, kinds)
        front = None if own.constraint is None else front_of(parts, own.constraint, delta)
        exact = IndexFamily(EXACT, indexes.REGISTRY.load(EXACT).Config.model_validate({"type": EXACT}))
        decided = [part.effort is not None for part in tuned] + ([] if front is None else [bool(front.front)])
        return IndexFindings(
            verdict=verdict(parts, matched, deltas, tuned, front),
            passed=all(decided) if decided else None,
            rows=rows,
            dims=dims,
            source=world.source,
            asked=tuple(
                QuerySetPart(origin=each.origin, questions=len(each.vectors)) for each in asking.asked.values()
            ),
            exact_qps=point_of(bench, asking, exact, 1, ks[0], own).row.qps,
            load=max((point.row.load for point in points if point.row.load is not None), default=None),
            deltas=deltas,
            points=parts,
            matched=matched,
            left_out=tuple(left_out(rungs, asking.asked.get(QUESTIONS), USUAL_LEVEL, delta)),
            front=front,
            tuned=tuned,
            delta=by_answers,
        )

    def _tuned(
        self, bench: Bench, world: IndexWorkload, asking: IndexWorkload, kinds: Sequence[IndexFamily]
    ) -> tuple[TunedPart, ...]:
        """Return the tuned efforts: over all vectors if there are queries, otherwise over the vectors that are not
        held out.
        """
        own = self.config
        if own.tune is None:
            return ()
        place = world if world.asked else asking
        tuner = EffortTuner(bench, place, next(iter(place.asked.values())), own)
        return tuple(tuner.tune(each, own.tune) for each in kinds if each.effort)

    def _delta(self, bench: Bench, world: IndexWorkload, k: int) -> RequiredRecallPart | None:
        own = self.config
        if own.correct is None:
            return None
        if QUESTIONS not in world.asked or not world.asked[QUESTIONS].qids:
            if own.vectors is not None:
                said = "--correct needs queries with ids, but vectors from files (--vectors) have none"
                raise UsageError(said, remedy="omit --vectors and --queries, and pass --config or --golden")
            said = "--correct needs queries with ids, but there are no queries"
            raise UsageError(said, remedy="pass --config or --golden")
        return delta_of(bench, world, world.asked[QUESTIONS], read_answers(own.correct), k, own.accuracy_share)

    def decision_effect(self, found: IndexFindings) -> str:
        return "Unchanged if the systems search exactly. With an approximate index, they lose recall (see the details)."

    def rests_on(self, found: IndexFindings) -> int:
        """Return the size of the set of queries that the comparison uses, or of the first set without a
        comparison.
        """
        part = most_telling(found.matched, found.deltas)
        origin = found.asked[0].origin if part is None else part.origin
        return next(each.questions for each in found.asked if each.origin == origin)

    def sections(self, found: IndexFindings) -> tuple[Section, ...]:
        """Return the tables: measurements, selection, comparison, and points."""
        names = [robustness(delta) for delta in found.deltas]
        return (
            _workload_section(found),
            *(_tuned_section(part) for part in found.tuned),
            *(() if found.front is None else (_front(found.front),)),
            *(() if found.delta is None else (_delta(found.delta),)),
            *_matched(found, names),
            *_left_out(found.left_out),
            *_points(found.points, names),
        )

    def key_figure(self, found: IndexFindings) -> KeyFigure | None:
        """Return the largest difference in robustness in the comparison for the verdict. Without a comparison, return
        the lowest mean recall of all indexes and efforts.
        """
        part = most_telling(found.matched, found.deltas)
        if part is None:
            least = min(found.points, key=lambda each: each.values["recall"].mean or 0.0, default=None)
            if least is None:
                return None
            recall, label = least.values["recall"], f"of the {least.k} nearest neighbours are found by {least.index}"
            label += f" at the lowest effort ({least.setting} {least.effort:,})"
            return KeyFigure.of(label, (recall.mean, recall.low, recall.high), ".1%")
        first = next(each for each in found.matched if (each.k, each.origin) == (part.k, part.origin))
        delta = max(found.deltas, key=lambda each: abs(part.against[robustness(each)].mean or 0.0))
        each, more = part.against[robustness(delta)], f"at least {delta:.0%} of the exact neighbours"
        label = f"queries that reach {more}, {part.index} minus {first.index}, at mean recall {part.level:g}"
        return KeyFigure.in_points(label, (each.mean, each.low, each.high))

    def main_table(self, found: IndexFindings) -> Table | None:
        """Return the table of the efforts tried for the first tuned index. Without tuning, return the table of the best
        points that reach the constraint, or else of the points with a mean recall in `BAND`.
        """
        names = [robustness(delta) for delta in found.deltas]
        chosen = (*map(_tuned_section, found.tuned), *([] if found.front is None else [_front(found.front)]))
        table = next((each.table for each in (*chosen, *_points(found.points, names)) if each.table), None)
        return None if table is None else without_intervals(table)

    def plots(self, found: IndexFindings) -> Mapping[str, str]:
        """Return the plots by name, up to four for each K and set of queries. Plots without a line are omitted."""
        drawn: dict[str, str] = {}
        wanted = [min(found.deltas, key=lambda each: abs(each - want)) for want in (LOW_DELTA, HIGH_DELTA)]
        for k, origin in dict.fromkeys((part.k, part.origin) for part in found.points):
            points = [part for part in found.points if (part.k, part.origin) == (k, origin)]
            end = f"{k}-{origin.split()[0]}"
            for delta in dict.fromkeys(wanted):
                title = f"How many queries reach a recall@{k} of {delta:g}? ({origin})"
                up = ChartAxis(f"share of queries with a recall@{k} of at least {delta:g}", SHARE)
                reached = partial(_mean, robustness(delta))
                drawn[f"r{delta:g}-{end}"] = _over_recall(title, points, up, k, reached)
            matched = [part for part in found.matched if (part.k, part.origin) == (k, origin) and part.bracketed]
            drawn[f"deltas-{end}"] = _over_delta(matched, found.deltas, k)
            title, up = (
                f"How fast is each index at each recall? ({origin})",
                ChartAxis("queries per second", POSITIVE),
            )
            drawn[f"qps-{end}"] = _over_recall(title, points, up, k, lambda part: part.qps)
        return {name: svg for name, svg in drawn.items() if svg}


def _needs_vectors(bench: Bench, settings: IndexDiagnosisConfig) -> bool:
    return settings.vectors is None and (bench.has("run") or bench.has("golden"))


def _shape(bench: Bench, settings: IndexDiagnosisConfig) -> tuple[int, int]:
    """Return the number of vectors, and their number of dimensions."""
    if settings.vectors is not None:
        rows, dims = open_matrix(settings.vectors).shape
        return rows, dims
    return len(bench.store(SERVER)), embedder_of(bench).dims


def _cutoffs(settings: IndexDiagnosisConfig, rows: int) -> tuple[int, ...]:
    """Return the requested values of K that are possible with so many vectors.

    Raises:
        DataError: no requested value is possible.
    """
    found = tuple(k for k in dict.fromkeys(settings.k) if MIN_VECTORS_PER_HIT * k <= rows)
    if not found:
        least = MIN_VECTORS_PER_HIT * min(settings.k)
        said = f"{rows:,} vectors are too few to test indexes for the nearest {min(settings.k)}; {least:,} are needed"
        raise DataError(said, remedy="pass a smaller --k, or use the exact search (index: flat)")
    return found
