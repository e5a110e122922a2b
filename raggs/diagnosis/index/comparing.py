"""Comparison of indexes: means with intervals, equal mean recall, the three-way choice, and delta from answers.

Three-way choice (`front_of`): the user sets a minimum for one of recall, robustness and speed. The Pareto front of the
other two is reported (Wang et al. 2025, section 5.2 and guideline 3). The front is computed by `raggs.stats`, without
jitter.

Delta from a user's answers (`delta_of`): a CSV file states which answers were correct, with the columns qid, setting
and correct (0 or 1). A setting is the name of an index as on the command line, for example `hnsw:ef=16`; `flat` is the
exact search. Queries without an answer from `flat` are ignored.

The verdict uses only the findings. It states the tuned efforts and the point chosen by the constraint, if there are
any. Otherwise, or as its second sentence, it compares the first index with the one that differs most from it. The
comparison uses the first K, and the first set of queries for which a comparison is possible: the user's queries
come before the held-out passages. Among the levels of mean recall at which this set allows a comparison, it uses the
one nearest to 0.9. Two shares of queries count as different if the interval of their difference excludes 0. Intervals
are simultaneous over all indexes and deltas at one level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.files import read_text, table_rows
from raggs.base.types import finite_or_none
from raggs.chunking.models import parse_spec
from raggs.diagnosis.base import Bench, capital, verdict_sentences
from raggs.diagnosis.index.measuring import EffortPoint, IndexWorkload, QueryVectors, open_index
from raggs.diagnosis.index.models import (
    BinPart,
    ChosenPart,
    FixableMeasure,
    FixedTarget,
    FrontPart,
    LowRecallPart,
    MatchedPart,
    Origin,
    PointPart,
    RequiredRecallPart,
    TunedPart,
    Values,
)
from raggs.diagnosis.models import MeanPart
from raggs.metrics.measures.ceilings import EPSILON
from raggs.parts import indexes
from raggs.parts.indexes import IndexConfig
from raggs.stats.front import Candidate, find_front
from raggs.stats.index_loss import (
    CONFIDENCE,
    MIN_BIN_ANSWERS,
    RECALL,
    IndexSweep,
    accuracy_by_recall,
    at_level,
    choose_delta,
    deviations,
    differences,
    kept_values,
    robustness,
)
from raggs.stats.intervals import Interval

MAX_EXAMPLE_QUERIES = 10  # maximum number of queries listed


@dataclass(frozen=True)
class EffortCurve:
    """Points of one index, for one K and one set of queries, in the order of increasing effort."""

    k: int
    origin: Origin
    points: tuple[EffortPoint, ...]
    swept: IndexSweep

    def parts(self) -> Iterator[PointPart]:
        """Yield each point in the form that reports contain."""
        for at, point in enumerate(self.points):
            yield PointPart(
                index=point.family.name,
                effort=point.effort,
                setting=point.family.effort,
                k=self.k,
                origin=self.origin,
                qps=point.row.qps,
                cpu_ms=point.row.cpu_ms,
                values={name: self._mean(name, at) for name in self.swept.means},
                build_s=point.row.build_s,
                bytes=point.row.bytes,
            )

    def _mean(self, name: str, at: int) -> MeanPart:
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.swept.drawn[name][at], [tail, 1 - tail]).tolist()
        return MeanPart(mean=float(self.swept.means[name][at]), low=low, high=high)


def ladders(points: Sequence[EffortPoint], deltas: Sequence[float], seed: int) -> list[EffortCurve]:
    """Return the points grouped by K, set of queries and index, in their original order."""
    found = []
    for k in dict.fromkeys(point.k for point in points):
        mine = [point for point in points if point.k == k]
        for origin in mine[0].kept:
            for _, group in groupby(mine, key=lambda point: point.family.name):
                rungs = tuple(group)
                values: list[Mapping[str, Floats]] = [point.kept[origin].measures(deltas) for point in rungs]
                efforts, rates = [point.effort for point in rungs], [point.row.qps for point in rungs]
                swept = IndexSweep.of(rungs[0].family.name, efforts, rates, values, seed=seed)
                asked: Origin = "questions" if origin == "questions" else "held-out passages"
                found.append(EffortCurve(k, asked, rungs, swept))
    return found


def matched_parts(
    found: Sequence[EffortCurve], levels: Sequence[float], deltas: Sequence[float]
) -> Iterator[MatchedPart]:
    """Yield the results of every index at every level of mean recall, compared with the first index."""
    for _, group in groupby(found, key=lambda ladder: (ladder.k, ladder.origin)):
        side = list(group)
        for level in levels:
            apart = deviations([ladder.swept for ladder in side], level)
            for ladder in side:
                part = _matched(ladder, side[0], level, apart.get(ladder.swept.name, {}))
                yield (
                    part.model_copy(update={"sure": _significant_shares(ladder, side, level, deltas)})
                    if part.against
                    else part
                )


def _significant_shares(
    ladder: EffortCurve, side: Sequence[EffortCurve], level: float, deltas: Sequence[float]
) -> tuple[str, ...]:
    """Return the robustness levels at which an index differs significantly from the first index. The intervals are
    simultaneous for one level of mean recall.
    """
    names = [robustness(delta) for delta in deltas]
    confidence = 1 - (1 - CONFIDENCE) / (len(names) * (len(side) - 1))
    found = differences(ladder.swept, side[0].swept, level, confidence) or {}
    return tuple(name for name in names if name in found and MeanPart.of(found[name]).clear)


def left_out(
    found: Sequence[EffortCurve], asked: QueryVectors | None, level: float, below: float
) -> Iterator[LowRecallPart]:
    """Yield the queries whose recall is below a limit, for the first K and each index. Each index is taken at its
    point nearest to the usual level of mean recall.
    """
    for ladder in found:
        if asked is None or (ladder.k, ladder.origin) != (found[0].k, asked.origin):
            continue
        point = ladder.points[int(np.abs(ladder.swept.means[RECALL] - level).argmin())]
        recall = point.kept[asked.origin].recall
        order = [row for row in np.argsort(recall, kind="stable").tolist() if recall[row] < below - EPSILON]
        yield LowRecallPart(
            index=point.family.name,
            effort=point.effort,
            setting=point.family.effort,
            k=ladder.k,
            below=below,
            share=len(order) / len(recall),
            qids=tuple(asked.qids[row] if asked.qids else str(row) for row in order[:MAX_EXAMPLE_QUERIES]),
        )


def _matched(ladder: EffortCurve, first: EffortCurve, level: float, apart: Mapping[str, Interval]) -> MatchedPart:
    here = at_level(ladder.swept, level)
    against = None if ladder is first else differences(ladder.swept, first.swept, level)
    return MatchedPart(
        index=ladder.swept.name,
        k=ladder.k,
        origin=ladder.origin,
        level=level,
        bracketed=here is not None,
        effort=None if here is None else finite_or_none(here.effort),
        qps=None if here is None else finite_or_none(here.qps),
        values=_parts(here.values if here else {}),
        against=_parts(against or {}),
        deviation=_parts(apart),
    )


def _parts(found: Mapping[str, Interval]) -> Values:
    return {name: MeanPart.of(each) for name, each in found.items()}


FIXABLE_MEASURES: tuple[FixableMeasure, ...] = ("recall", "robustness", "qps")
SECOND_MS = 1000.0


def front_of(points: Sequence[PointPart], fixed: FixedTarget, delta: float) -> FrontPart:
    """Return how many points reach the constraint, and the Pareto front of these points on the other two quantities.
    Only points of the first K and the first set of queries are used.
    """
    mine = [point for point in points if (point.k, point.origin) == (points[0].k, points[0].origin)]
    chosen = [_chosen_part(point, delta) for point in mine]
    reaching = [each for each in chosen if getattr(each, fixed.what) >= fixed.least]
    others = [name for name in FIXABLE_MEASURES if name not in (fixed.what, "qps")]
    candidates = [
        # speed is compared as time per query, except if the constraint is on speed
        Candidate(
            str(at),
            None,
            None if fixed.what == "qps" else SECOND_MS / each.qps,
            tuple(getattr(each, name) for name in others),
            each.k,
        )
        for at, each in enumerate(reaching)
    ]
    front = find_front(candidates, jitter_ms=0)
    kept = sorted((reaching[int(name)] for name in front.names), key=lambda each: -each.qps)
    return FrontPart(
        what=fixed.what, least=fixed.least, delta=delta, reached=len(reaching), points=len(mine), front=tuple(kept)
    )


def _chosen_part(point: PointPart, delta: float) -> ChosenPart:
    means = {name: value.mean or 0.0 for name, value in point.values.items()}
    return ChosenPart(
        index=point.index,
        effort=point.effort,
        setting=point.setting,
        k=point.k,
        origin=point.origin,
        recall=means[RECALL],
        robustness=means[robustness(delta)],
        qps=point.qps,
    )


COLUMNS = ("qid", "setting", "correct")
EXACT = "flat"
TRUTHS = {"0": False, "1": True, "false": False, "true": True}
REMEDY = "write a CSV file with the columns qid, setting (such as flat or hnsw:ef=16) and correct (0 or 1)"


@dataclass
class AnswerCorrectness:
    """Whether each answer in the user's file was correct, by setting and query."""

    path: Path
    by_setting: dict[str, dict[str, bool]] = field(default_factory=dict)

    @property
    def exact(self) -> Mapping[str, bool]:
        """Answers from the exact search."""
        return self.by_setting[EXACT]


def read_answers(path: Path) -> AnswerCorrectness:
    """Read the file of answers.

    Raises:
        DataError: a column or value is missing or not valid, a query occurs twice for a setting, or `flat` or
            every other setting is missing.
        NotFoundError: the file cannot be read.
    """
    rows, found = table_rows(read_text(path), path), AnswerCorrectness(path)
    _, head = next(rows, (1, []))
    names = [cell.strip().lower() for cell in head]
    if missing := [name for name in COLUMNS if name not in names]:
        raise DataError(f"no column {missing[0]}", where=path, line=1, remedy=REMEDY)
    places = [names.index(name) for name in COLUMNS]
    for line, row in rows:
        cells = [row[place].strip() if place < len(row) else "" for place in places]
        _add_answer(found, *cells, line=line)
    if EXACT not in found.by_setting or len(found.by_setting) < 2:
        said = "add answers from the exact search (setting flat) and from at least one approximate index"
        raise DataError(said, where=path, remedy=REMEDY)
    return found


def _add_answer(found: AnswerCorrectness, qid: str, setting: str, correct: str, *, line: int) -> None:
    truth = TRUTHS.get(correct.lower())
    if not qid or not setting or truth is None:
        raise DataError(f"not a valid answer: {qid},{setting},{correct}", where=found.path, line=line, remedy=REMEDY)
    mine = found.by_setting.setdefault(setting, {})
    if qid in mine:
        raise DataError(f"{qid} occurs twice with {setting}", where=found.path, line=line, remedy="remove one")
    mine[qid] = truth


def delta_of(
    bench: Bench, world: IndexWorkload, asked: QueryVectors, answers: AnswerCorrectness, k: int, near: float
) -> RequiredRecallPart:
    """Return how much recall is needed for correct answers, over all settings.

    Raises:
        DataError: the file has no query that was searched and has an answer from the exact search.
        UsageError: a setting is not the name of an index.
        PrerequisiteError: an index cannot be built, as in `open_index`.
    """
    row_of = {qid: at for at, qid in enumerate(asked.qids)}
    recall: list[float] = []
    correct: list[bool] = []
    exact: list[bool] = []
    for setting, mine in answers.by_setting.items():
        if setting == EXACT:
            continue
        qids = [qid for qid in mine if qid in row_of and qid in answers.exact]
        config = parse_spec(setting, indexes.REGISTRY, IndexConfig)
        index = open_index(bench, world, indexes.REGISTRY.of(config)(config))
        found = kept_values(index.search(asked.vectors, k).positions, world.truth(asked, k)).recall
        recall += found[[row_of[qid] for qid in qids]].tolist()
        correct += [mine[qid] for qid in qids]
        exact += [answers.exact[qid] for qid in qids]
    if not recall:
        remedy = f"the searched queries are {', '.join(asked.qids[:3])}, ..."
        raise DataError("no query of the file was searched", where=answers.path, remedy=remedy)
    bins = accuracy_by_recall(np.array(recall), np.array(correct), np.array(exact), seed=bench.seed)
    parts = (
        BinPart(
            recall=each.recall,
            answers=each.answers,
            accuracy=each.accuracy,
            exact=each.exact,
            ratio=MeanPart.of(each.ratio),
        )
        for each in bins
    )
    return RequiredRecallPart(k=k, near=near, delta=choose_delta(bins, near, MIN_BIN_ANSWERS), bins=tuple(parts))


USUAL_LEVEL = 0.9
HUNDRED = 100
THREE = 3


def verdict(
    points: Sequence[PointPart],
    matched: Sequence[MatchedPart],
    deltas: Sequence[float],
    tuned: Sequence[TunedPart],
    front: FrontPart | None,
) -> str:
    """Return the first two of these sentences that exist: the tuned efforts, the point chosen by the constraint, and
    the comparison of the indexes.
    """
    parts = [
        *_tuned_sentences(tuned),
        *([] if front is None else [_front(front)]),
        _comparison_sentence(matched, deltas, points),
    ]
    return verdict_sentences(*map(capital, parts[:2]))


def most_telling(matched: Sequence[MatchedPart], deltas: Sequence[float]) -> MatchedPart | None:
    """Return the comparison for the verdict, or None if no index can be compared with the first one for the first K.

    The first set of queries with a comparison counts: the user's queries come before the held-out passages. The
    level is the one nearest to the usual level, among the levels at which this set has a comparison.
    """
    if not matched:
        return None
    k, names = matched[0].k, [robustness(delta) for delta in deltas]
    there = [part for part in matched if part.k == k and part.against]
    if not there:
        return None
    asked = [part for part in there if part.origin == there[0].origin]
    level = min((part.level for part in asked), key=lambda each: abs(each - USUAL_LEVEL))
    return max(
        (part for part in asked if part.level == level),
        key=lambda part: max(abs(part.against[name].mean or 0.0) for name in names),
    )


def _why_not(matched: Sequence[MatchedPart], points: Sequence[PointPart]) -> str:
    """Return why no two indexes can be compared."""
    least = min((part.values["recall"].mean or 0.0 for part in points), default=0.0)
    if points and least > max(part.level for part in matched):
        return (
            f"every index finds at least {least:.1%} of the nearest neighbours at the lowest effort: "
            "approximate search loses little"
        )
    if len({part.index for part in points}) < 2:
        return "only one index was measured, so a comparison is impossible"
    met = Counter((part.k, part.origin, part.level) for part in matched if part.bracketed)
    if any(count > 1 for count in met.values()):
        return f"no comparison: {matched[0].index} has no mean recall in common with the others"
    return "no comparison: no two indexes were measured around the same mean recall"


def _comparison_sentence(matched: Sequence[MatchedPart], deltas: Sequence[float], points: Sequence[PointPart]) -> str:
    found = most_telling(matched, deltas)
    if found is None:
        return _why_not(matched, points)
    first = next(part for part in matched if (part.k, part.origin) == (found.k, found.origin))
    clear = [(delta, found.against[robustness(delta)]) for delta in deltas if robustness(delta) in found.sure]
    better = [(delta, each) for delta, each in clear if (each.mean or 0) > 0]
    worse = [(delta, each) for delta, each in clear if (each.mean or 0) < 0]
    at = f"at a mean recall@{found.k} of {found.level:g} over {found.origin}"
    little, much = found.index, first.index
    if not clear:
        return f"{at}, no difference between {found.index} and {first.index} is significant"
    said = [_share(found, delta, each, "more") for delta, each in better[:1]]
    said += [_share(found, delta, each, "fewer") for delta, each in worse[-1:]]
    advice = f": choose {little} if part of the neighbours is enough, {much} if nearly all are needed"
    told = f"{at}, {found.index} gives " + " and ".join(said) + f" than {first.index}"
    return told + (advice if better and worse and better[0][0] < worse[-1][0] else "")


def _share(found: MatchedPart, delta: float, each: MeanPart, word: str) -> str:
    value = found.values[robustness(delta)].mean or 0.0
    apart = each.mean or 0.0
    low, high = (HUNDRED * (bound or 0.0) for bound in (each.low, each.high))
    points = f"{HUNDRED * apart:+.1f} points [{low:+.1f}, {high:+.1f}]"
    return (
        f"{word} queries at least {delta:.0%} of the exact neighbours ({value:.1%}, not {value - apart:.1%}; {points})"
    )


def _tuned_sentences(tuned: Sequence[TunedPart]) -> list[str]:
    if not tuned:
        return []
    limit, known = tuned[0].limit, [part for part in tuned if part.effort is not None]
    if not known:
        return [f"no tested effort is certain to lose at most {limit:.2g} of the exact search's results"]
    told = ", ".join(f"{part.index} with {part.setting} {part.effort}" for part in known)
    doubt = f", based on only {known[0].questions} queries" if few_asked(known[0]) else ""
    return [f"the lowest effort that loses at most {limit:.1%} of the exact search's results: {told}{doubt}"]


def few_asked(part: TunedPart) -> bool:
    """Return whether there are too few queries to show that the loss is within the limit, even if no query has a
    loss.

    If none of n queries has a loss, up to 3 / n of all queries may have one (rule of three, at 95% confidence).
    """
    return part.questions * part.limit < THREE


def _front(front: FrontPart) -> str:
    if not front.front:
        return f"no index reaches a {front.what} of {front.least:g}"
    fastest = front.front[0]
    told = f"{fastest.index} with {fastest.setting} {fastest.effort}"
    return f"the fastest index with a {front.what} of at least {front.least:g} is {told}"
