"""Points side by side: their means with intervals, and indexes at equal mean recall, from what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.jsontypes import number
from raggs.diagnosis.index.measuring import Point
from raggs.diagnosis.index.models import LowRecallPart, MatchedPart, Origin, PointPart, Values
from raggs.diagnosis.index.worlds import Asked
from raggs.diagnosis.parts import MeanPart
from raggs.metrics.measures.robustness import EPSILON
from raggs.metrics.stats import Interval
from raggs.stats.probes.matching import CONFIDENCE, RECALL, Matched, Swept, at_level, deviations, differences
from raggs.stats.probes.neighbours import robustness

SHOWN = 10  # questions that are named


@dataclass(frozen=True)
class Ladder:
    """The points of one index, for one K and one set of questions, by growing effort."""

    k: int
    origin: Origin
    points: tuple[Point, ...]
    swept: Swept

    def parts(self) -> Iterator[PointPart]:
        """Each point as it is reported."""
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


def ladders(points: Sequence[Point], deltas: Sequence[float], seed: int) -> list[Ladder]:
    """The points by K, set of questions and index, in the order in which they came."""
    found = []
    for k in dict.fromkeys(point.k for point in points):
        mine = [point for point in points if point.k == k]
        for origin in mine[0].kept:
            for _, group in groupby(mine, key=lambda point: point.family.name):
                rungs = tuple(group)
                found.append(Ladder(k, _origin(origin), rungs, _swept(rungs, origin, deltas, seed)))
    return found


def _origin(name: str) -> Origin:
    return "questions" if name == "questions" else "held-out passages"


def _swept(points: Sequence[Point], origin: str, deltas: Sequence[float], seed: int) -> Swept:
    values: list[Mapping[str, Floats]] = [point.kept[origin].measures(deltas) for point in points]
    efforts, rates = [point.effort for point in points], [point.row.qps for point in points]
    return Swept.of(points[0].family.name, efforts, rates, values, seed=seed)


def matched_parts(found: Sequence[Ladder], levels: Sequence[float], deltas: Sequence[float]) -> Iterator[MatchedPart]:
    """Every index at every level, beside the first index that was named."""
    for _, group in groupby(found, key=lambda ladder: (ladder.k, ladder.origin)):
        side = list(group)
        for level in levels:
            apart = deviations([ladder.swept for ladder in side], level)
            for ladder in side:
                part = _matched(ladder, side[0], level, apart.get(ladder.swept.name, {}))
                yield part.model_copy(update={"sure": _sure(ladder, side, level, deltas)}) if part.against else part


def _sure(ladder: Ladder, side: Sequence[Ladder], level: float, deltas: Sequence[float]) -> tuple[str, ...]:
    """The shares in which an index surely differs from the first: all indexes and deltas of one level hold together."""
    names = [robustness(delta) for delta in deltas]
    confidence = 1 - (1 - CONFIDENCE) / (len(names) * (len(side) - 1))
    found = differences(ladder.swept, side[0].swept, level, confidence) or {}
    return tuple(name for name in names if name in found and MeanPart.of(found[name]).clear)


def left_out(found: Sequence[Ladder], asked: Asked | None, level: float, below: float) -> Iterator[LowRecallPart]:
    """Of each index, where its mean recall is nearest to the level, the questions that get less than a recall."""
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
            qids=tuple(asked.qids[row] if asked.qids else str(row) for row in order[:SHOWN]),
        )


def _matched(ladder: Ladder, first: Ladder, level: float, apart: Mapping[str, Interval]) -> MatchedPart:
    here = at_level(ladder.swept, level)
    against = None if ladder is first else differences(ladder.swept, first.swept, level)
    return MatchedPart(
        index=ladder.swept.name,
        k=ladder.k,
        origin=ladder.origin,
        level=level,
        bracketed=here is not None,
        effort=_number(here, "effort"),
        qps=_number(here, "qps"),
        values=_parts(here.values if here else {}),
        against=_parts(against or {}),
        deviation=_parts(apart),
    )


def _number(here: Matched | None, name: str) -> float | None:
    return None if here is None else number(getattr(here, name))


def _parts(found: Mapping[str, Interval]) -> Values:
    return {name: MeanPart.of(each) for name, each in found.items()}
