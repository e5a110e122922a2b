"""Diagnosis `index`: which passages approximate indexes lose, and for which queries.

`models` holds settings and findings, `measuring` measures indexes at several efforts, and `comparing` compares them at
equal mean recall. This module holds the diagnosis, its tables and its plots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from raggs.base.document import Cell, Form, Legend, Row, Section, Table
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
    read_answers,
    verdict,
)
from raggs.diagnosis.index.measuring import (
    LEAST,
    QUESTIONS,
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
    store_of,
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
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.svg import Curve, curves
from raggs.parts import indexes
from raggs.stats.index_loss import robustness

BAND = (0.70, 0.95)  # mean recalls whose points are worth a row
MEASURES = ("map", "ndcg", "mrr")
MEGABYTE = 1e6
NOT_BRACKETED = "not bracketed"
TERMS = (
    Legend("recall", "share of the exact K nearest that an index returned"),
    Legend("r0.3", "share of questions with a recall of 0.3 or more (Robustness-0.3@K)"),
    Legend("map, ndcg, mrr", "against the exact list; ndcg discounts by the place there"),
    Legend("qps", "questions a second, one at a time on one thread"),
)


def sections(found: IndexFindings) -> tuple[Section, ...]:
    """All of them."""
    names = [robustness(delta) for delta in found.deltas]
    chosen = [
        *(_tuned(part) for part in found.tuned),
        *([] if found.front is None else [_front(found.front)]),
        *([] if found.delta is None else [_delta(found.delta)]),
    ]
    rest = (*_left_out(found.left_out), *_points(found.points, names))
    return (_about(found), *chosen, *_matched(found, names), *rest)


def _about(found: IndexFindings) -> Section:
    asked = " and ".join(f"{part.questions:,} {part.origin}" for part in found.asked)
    told = [f"{found.source}, {found.rows:,} of them indexed, {found.dims} dimensions; asked: {asked}"]
    if found.exact_qps is not None:
        told.append(f"the exact search answers {found.exact_qps:,.0f} questions a second, one at a time")
    if found.load is not None and found.load > 1:
        told.append(f"other work shared the processors (load {found.load:.1f} of each): qps is too low by that")
    return Section("What was measured", tuple(told), terms=TERMS)


def _cell(part: MeanPart | None, *, signed: bool = False) -> Cell:
    form: Form = "signed" if signed else "score"
    return Cell(None) if part is None else part.cell(form)


# --- at equal mean recall -------------------------------------------------------------------------------------


def _matched(found: IndexFindings, names: Sequence[str]) -> Iterator[Section]:
    for (k, origin), group in groupby(found.matched, key=lambda part: (part.k, part.origin)):
        parts = list(group)
        at = f"K {k}, {origin}"
        rows = [_matched_row(part, names) for part in parts]
        head = ("recall", "index", "effort", "qps", *names)
        yield Section(f"At equal mean recall: {at}", table=Table(head, tuple(rows)))
        first = parts[0].index
        apart = [
            (Cell(f"{part.level:g}"), Cell(part.index), *(_cell(part.against.get(name), signed=True) for name in names))
            for part in parts
            if part.against
        ]
        if apart:
            yield Section(f"Minus {first}: {at}", table=Table(("recall", "index", *names), tuple(apart)))
        yield from _deviations(parts, (*MEASURES, names[0], names[-1]), at)


def _matched_row(part: MatchedPart, names: Sequence[str]) -> Row:
    head = (Cell(f"{part.level:g}"), Cell(part.index))
    if not part.bracketed:
        return (*head, Cell(NOT_BRACKETED), Cell(None), *(Cell(None) for _ in names))
    effort, qps = part.effort or 0.0, part.qps or 0.0
    return (*head, Cell(f"{effort:.3g}"), Cell(f"{qps:,.0f}"), *(_cell(part.values.get(name)) for name in names))


def _deviations(parts: Sequence[MatchedPart], names: Sequence[str], at: str) -> Iterator[Section]:
    """How far each measure tells indexes apart (Wang et al. 2025, Fig. 3)."""
    rows = [
        (Cell(f"{part.level:g}"), Cell(part.index), *(_cell(part.deviation.get(name), signed=True) for name in names))
        for part in parts
        if part.deviation
    ]
    if rows:
        title = f"Share by which each measure departs from the mean of the indexes: {at}"
        yield Section(title, table=Table(("recall", "index", *names), tuple(rows)))


def _left_out(parts: Sequence[LowRecallPart]) -> Iterator[Section]:
    rows = [
        (
            *(Cell(part.index), Cell(f"{part.setting} {part.effort}".strip())),
            *(Cell(part.share, "score"), Cell(", ".join(part.qids) or "none")),
        )
        for part in parts
    ]
    if rows:
        below = f"Questions with a recall@{parts[0].k} below {parts[0].below:g}"
        title = f"{below}, where the mean is nearest to {USUAL_LEVEL:g}"
        yield Section(title, table=Table(("index", "effort", "share", "such as"), tuple(rows)))


# --- points ---------------------------------------------------------------------------------------------------


def _points(points: Sequence[PointPart], names: Sequence[str]) -> Iterator[Section]:
    for (k, origin), group in groupby(points, key=lambda part: (part.k, part.origin)):
        rows = [_point_row(part, names) for part in group if _within(part)]
        if rows:
            head = ("index", "effort", "qps", "CPU ms", "MB", "built in s", "recall", *names)
            title = f"Points with a mean recall of {BAND[0]:g} to {BAND[1]:g}: K {k}, {origin}"
            yield Section(title, table=Table(head, tuple(rows)))


def _within(part: PointPart) -> bool:
    return BAND[0] <= (part.values["recall"].mean or 0.0) <= BAND[1]


def _point_row(part: PointPart, names: Sequence[str]) -> Row:
    measured = (_cell(part.values[name]) for name in ("recall", *names))
    cost = (
        Cell(f"{part.qps:,.0f}"),
        Cell(f"{part.cpu_ms:.3f}"),
        Cell(f"{part.bytes / MEGABYTE:,.0f}"),
        Cell(f"{part.build_s:.1f}"),
    )
    return (Cell(part.index), Cell(f"{part.setting} {part.effort}".strip()), *cost, *measured)


# --- chosen ---------------------------------------------------------------------------------------------------


def _tuned(part: TunedPart) -> Section:
    names = list(part.tried[0].losses) if part.tried else []
    rows = [
        (
            Cell(f"{each.effort:,}", mark="▼" if each.effort == part.effort else ""),
            *(_cell(each.losses[name], signed=True) for name in names),
        )
        for each in part.tried
    ]
    what = f"loss against the exact search, {part.depth} hits asked for, {part.questions:,} {part.origin}"
    told = f"none of these is sure to stay within {part.limit:.1%}: try more, or another index"
    if part.yaml is not None:
        told = f"in retrieve.retrievers, below the one of type dense: {part.yaml}"
    doubt = (
        f"{part.questions} questions without any loss say little: up to {THREE / part.questions:.1%} of all may lose"
    )
    few = (doubt,) if few_asked(part) else ()
    table = Table((part.setting, *names), tuple(rows))
    return Section(
        f"Least effort: {part.index}",
        (told, what, *few),
        table,
        legend=(Legend("▼", "the least that is within the limit beyond doubt"),),
    )


def _front(part: FrontPart) -> Section:
    rows = [
        (
            *(Cell(each.index), Cell(f"{each.setting} {each.effort}")),
            *(Cell(each.recall, "score"), Cell(each.robustness, "score"), Cell(f"{each.qps:,.0f}")),
        )
        for each in part.front
    ]
    told = f"{part.reached} of {part.points} points have a {part.what} of {part.least:g} or more; unbeaten among them:"
    table = Table(("index", "effort", "recall", f"r{part.delta:g}", "qps"), tuple(rows)) if rows else None
    return Section(f"Where {part.what} is {part.least:g} or more", (told,), table)


def _delta(part: RequiredRecallPart) -> Section:
    told = f"no recall keeps answers within {part.near:.0%} of the exact search's, or there are too few answers"
    if part.delta is not None:
        told = f"delta {part.delta:g}: from this recall on, answers are {part.near:.0%} as good as the exact search's"
    rows = [
        (Cell(f"{each.recall:g}"), Cell(f"{each.answers:,}"), Cell(each.accuracy, "score"), Cell(each.exact, "score"),
         _cell(each.ratio))
        for each in part.bins
    ]  # fmt: skip
    head = ("recall from", "answers", "correct", "by the exact search", "ratio")
    return Section("How much recall an answer needs", (told,), Table(head, tuple(rows)))


LOWEST = 0.6  # mean recall that is drawn
TICKS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
LOW_DELTA, HIGH_DELTA = 0.3, 0.9


def plots(found: IndexFindings) -> dict[str, str]:
    """By name, for each K and set of questions what has two points or more."""
    drawn: dict[str, str] = {}
    for k, origin in dict.fromkeys((part.k, part.origin) for part in found.points):
        points = [part for part in found.points if (part.k, part.origin) == (k, origin)]
        end = f"{k}-{origin.split()[0]}"
        for delta in _two(found.deltas):
            title = f"Questions with a recall@{k} of {delta:g} or more, {origin}"
            drawn[f"r{delta:g}-{end}"] = _over_recall(title, points, robustness(delta), k, _mean(robustness(delta)))
        matched = [part for part in found.matched if (part.k, part.origin) == (k, origin) and part.bracketed]
        drawn[f"deltas-{end}"] = _over_delta(matched, found.deltas, k)
        drawn[f"qps-{end}"] = _over_recall(f"Questions a second, {origin}", points, "qps", k, lambda part: part.qps)
    return {name: svg for name, svg in drawn.items() if svg}


def _two(deltas: Sequence[float]) -> list[float]:
    """The deltas nearest to a low and to a high one."""
    return list(dict.fromkeys(min(deltas, key=lambda each: abs(each - want)) for want in (LOW_DELTA, HIGH_DELTA)))


def _mean(name: str) -> Callable[[PointPart], float]:
    return lambda part: part.values[name].mean or 0.0


def _over_recall(
    title: str, points: Sequence[PointPart], what: str, k: int, value: Callable[[PointPart], float]
) -> str:
    lines = [
        Curve((name,), tuple(sorted(line)))
        for name in dict.fromkeys(part.index for part in points)
        if (line := [(recall, value(part)) for part, recall in _drawn(points, name)])
    ]
    return curves(title, lines, (f"mean recall@{k}", what), TICKS, coloured=True) if lines else ""


def _drawn(points: Sequence[PointPart], name: str) -> Iterator[tuple[PointPart, float]]:
    for part in points:
        recall = part.values["recall"].mean or 0.0
        if part.index == name and recall >= LOWEST:
            yield part, recall


def _over_delta(matched: Sequence[MatchedPart], deltas: Sequence[float], k: int) -> str:
    """At the usual level, or the one nearest to it at which most indexes are to be read."""
    levels = [part.level for part in matched]
    if not levels:
        return ""
    level = max(set(levels), key=lambda each: (levels.count(each), -abs(each - USUAL_LEVEL)))
    lines = [
        Curve((part.index,), tuple((delta, part.values[robustness(delta)].mean or 0.0) for delta in sorted(deltas)))
        for part in matched
        if part.level == level
    ]
    title = f"Share of questions over delta, where mean recall@{k} is {level:g}: {matched[0].origin}"
    return curves(
        title, lines, ("delta", "share of questions with a recall of delta or more"), sorted(deltas), coloured=True
    )


EXACT = "flat"
BLOCK = 4096  # passages whose cost is reckoned at a time


class IndexDiagnosis(Diagnosis[IndexFindings]):
    """Say what approximate indexes lose, for which questions, and which effort is enough."""

    Config = IndexDiagnosisConfig
    Result = IndexFindings
    TITLE = "What do approximate indexes lose, for which questions, and which effort is enough?"
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
        """Nothing where vectors come from a file."""
        return () if self.config.vectors is not None else self.NEEDS

    def causes(self, bench: Bench) -> Causes:
        """With the questions, and the contents of files."""
        own, files = self.config, (self.config.vectors, self.config.queries, self.config.correct)
        asked = dict(texts_of(bench)) if _asks(bench, own) else {}
        return {
            **super().causes(bench),
            "questions": hash_value(asked),
            "files": [None if path is None else hash_file(path) for path in files],
            "depth": None if own.tune is None or bench.run is None else str(bench.run.retrieve.retrievers),
        }

    def check(self, bench: Bench) -> None:
        """Whether there are vectors and questions, the settings fit, and faiss is there."""
        own = self.config
        for path in (own.vectors, own.queries, own.correct):
            if path is not None and not path.is_file():
                raise DataError("there is no such file", where=path, remedy="check the path")
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
            store = store_of(bench)
            for start in range(bench.workspace.vectors_begun(store, embedder), rows, BLOCK):
                embedder.embed(store.contents(start, min(start + BLOCK, rows)))
            if _asks(bench, own):
                embedder.embed_queries(list(texts_of(bench).values()))
        names = ", ".join(family.name for family in families(own, dims))
        return (
            f"{rows:,} vectors of {dims} dimensions indexed by {names}; asked for {_words(_cutoffs(own, rows))} hits",
        )

    def measure(self, bench: Bench) -> IndexFindings:
        """Every point, then what is read off them."""
        own, world = self.config, open_world(bench, self.config)
        asking = hold_out(world, own.held_out, bench.seed)
        if not asking.asked:
            raise UsageError("nobody asks anything", remedy="--held-out 500, or questions: --config or --queries")
        rows, dims = asking.vectors.vectors.shape
        ks = _cutoffs(own, rows)
        by_answers = self._delta(bench, world, ks[0])
        delta = own.delta if by_answers is None or by_answers.delta is None else by_answers.delta
        deltas = tuple(sorted({*own.deltas, delta}))
        kinds = families(own, dims)
        points = [point for k in ks for each in kinds for point in points_of(bench, asking, each, k, own)]
        rungs = ladders(points, deltas, bench.seed)
        parts = tuple(part for rung in rungs for part in rung.parts())
        matched = tuple(matched_parts(rungs, sorted(set(own.levels)), deltas))
        tuned = self._tuned(bench, world, asking, kinds)
        front = None if own.fix is None else front_of(parts, own.fix, delta)
        return IndexFindings(
            verdict=verdict(parts, matched, deltas, tuned, front),
            passed=_passed(tuned, front),
            rows=rows,
            dims=dims,
            source=world.source,
            asked=tuple(
                QuerySetPart(origin=each.origin, questions=len(each.vectors)) for each in asking.asked.values()
            ),
            exact_qps=point_of(bench, asking, _exact(), 1, ks[0], own).row.qps,
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
        """Over all vectors where there are questions; else over what was kept for those that are held out."""
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
            raise UsageError("answers are to questions by name, and there are none", remedy="--config, or --golden")
        return delta_of(bench, world, world.asked[QUESTIONS], read_answers(own.correct), k, own.near)

    def rests_on(self, found: IndexFindings) -> int:
        return max(each.questions for each in found.asked)

    def sections(self, found: IndexFindings) -> tuple[Section, ...]:
        """See `layout`."""
        return sections(found)

    def plots(self, found: IndexFindings) -> Mapping[str, str]:
        """See `plots`."""
        return plots(found)


def _asks(bench: Bench, settings: IndexDiagnosisConfig) -> bool:
    return settings.vectors is None and (bench.has("run") or bench.has("golden"))


def _shape(bench: Bench, settings: IndexDiagnosisConfig) -> tuple[int, int]:
    """How many vectors there are, and their length."""
    if settings.vectors is not None:
        rows, dims = open_matrix(settings.vectors).shape
        return rows, dims
    return len(store_of(bench)), embedder_of(bench).dims


def _cutoffs(settings: IndexDiagnosisConfig, rows: int) -> tuple[int, ...]:
    """The numbers of hits that make sense among so many vectors.

    Raises:
        DataError: none does.
    """
    found = tuple(k for k in dict.fromkeys(settings.k) if LEAST * k <= rows)
    if not found:
        said = f"{rows:,} vectors are too few to lose some of the nearest {min(settings.k)}"
        raise DataError(said, remedy="the exact search is as fast: leave index at flat")
    return found


def _words(ks: Sequence[int]) -> str:
    return " and ".join(map(str, ks))


def _exact() -> IndexFamily:
    return IndexFamily(EXACT, indexes.REGISTRY.load(EXACT).Config.model_validate({"type": EXACT}))


def _passed(tuned: Sequence[TunedPart], front: FrontPart | None) -> bool | None:
    asked = [part.effort is not None for part in tuned]
    if front is not None:
        asked.append(bool(front.front))
    return all(asked) if asked else None
