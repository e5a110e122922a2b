"""Points: an index at one effort for one K, what each question gets of the exact nearest, and how fast.

A point is kept by all that it depends on, so that a kill costs one. Questions are timed one at a time on one thread,
warm, in rounds; a question's time is the median of its rounds, as in sweeps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.precision import Scoring
from raggs.base.progress import Building
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.index.models import Answered, PointRow
from raggs.diagnosis.index.recipes import Family
from raggs.diagnosis.index.settings import IndexSettings
from raggs.diagnosis.index.worlds import Asked, World
from raggs.parts.indexes.base import Index, OpenIndex
from raggs.stats.probes.neighbours import Kept, kept
from raggs.sweeps.timing import load_now

ENOUGH = 0.96  # mean recall of every set of questions, from where on more effort tells nothing
STALLED = 1e-3  # of recall, twice in a row: more effort does not help
FAR = 0.5  # mean recall below which steps are twice as long: nobody ships that
WARM = 5  # questions before the clock starts
DIGITS = 7
KIND = "index point/2"


@dataclass(frozen=True)
class Point:
    """An index at one effort, for one K.

    Attributes:
        kept: what each set of questions got, by origin.
    """

    family: Family
    effort: int
    k: int
    row: PointRow
    kept: dict[str, Kept]

    @property
    def least_recall(self) -> float:
        """The mean recall of the questions that get least."""
        return min(float(each.recall.mean()) for each in self.kept.values())


def points_of(bench: Bench, world: World, family: Family, k: int, settings: IndexSettings) -> Iterator[Point]:
    """The points of one index for one K, with growing effort, until that is enough."""
    found: list[Point] = []
    efforts = family.efforts(k)
    while efforts:
        effort = efforts.pop(0)
        bench.hear(Building(f"{family.named(effort)} for {k}", len(found), 0))
        found.append(point_of(bench, world, family, effort, k, settings))
        yield found[-1]
        if family.varied:
            continue
        if found[-1].least_recall >= ENOUGH or _stalled(found):
            return
        if found[-1].least_recall < FAR:
            del efforts[:1]


def _stalled(found: Sequence[Point]) -> bool:
    last = [point.least_recall for point in found[-3:]]
    return len(last) == 3 and all(later - earlier < STALLED for earlier, later in pairwise(last))


def point_of(bench: Bench, world: World, family: Family, effort: int, k: int, settings: IndexSettings) -> Point:
    """One point, measured now if it is not kept."""
    recipe = family.at(effort)
    causes = {
        "kind": KIND,
        "index": recipe.causes(),
        "vectors": world.vectors.sum,
        "asked": {origin: asked.sum for origin, asked in world.asked.items()},
        "k": k,
        "timed": [settings.timed, settings.rounds],
    }
    row = bench.kept(causes, PointRow, lambda: [_measured(bench, world, recipe, k, settings)])[0]
    found = {each.origin: _read(each, k) for each in row.answered}
    return Point(family, effort, k, row, {origin: found[origin] for origin in world.asked})


def opened(bench: Bench, world: World, recipe: Index) -> OpenIndex:
    """The index over the world's vectors, built now if it was not.

    Raises:
        PrerequisiteError: its package is missing, or memory.
        DataError: settings that such vectors do not fit.
    """
    rows, dims = world.vectors.vectors.shape
    recipe.check(rows, dims, world.vectors.place)
    return recipe.open(world.vectors, bench.workshop.building, Scoring())


def _measured(bench: Bench, world: World, recipe: Index, k: int, settings: IndexSettings) -> PointRow:
    index = opened(bench, world, recipe)
    answered = tuple(_answered(index, asked, world.truth(asked, k)) for asked in world.asked.values())
    first = next(iter(world.asked.values()))
    took = seconds_of(index, first.vectors, k, settings)
    return PointRow(
        qps=round(1 / took.wall, 3),
        cpu_ms=round(1000 * took.cpu, 4),
        load=load_now(),
        build_s=index.facts.build_s,
        bytes=index.facts.bytes,
        answered=answered,
    )


def _answered(index: OpenIndex, asked: Asked, truth: Ints) -> Answered:
    k = truth.shape[1]
    found = kept(index.search(asked.vectors, k).positions, truth)
    return Answered(
        origin=asked.origin,
        hits=tuple(np.rint(found.recall * k).astype(int).tolist()),
        ap=_rounded(found.ap),
        ndcg=_rounded(found.ndcg),
        rr=_rounded(found.rr),
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(values.round(DIGITS).tolist())


def _read(row: Answered, k: int) -> Kept:
    return Kept(np.array(row.hits) / k, np.array(row.ap), np.array(row.ndcg), np.array(row.rr))


class Took(NamedTuple):
    """Mean seconds of a question by the wall clock and by processor time, which other work slows less."""

    wall: float
    cpu: float


def seconds_of(index: OpenIndex, queries: Vectors, k: int, settings: IndexSettings) -> Took:
    """One question at a time; some of them, evenly spread over all."""
    at = np.linspace(0, len(queries) - 1, min(settings.timed, len(queries))).astype(int)
    sample = [queries[row : row + 1] for row in at.tolist()]
    for query in sample[:WARM]:
        index.search(query, k)
    took = np.empty((settings.rounds, len(sample), 2))
    for each in took:
        for place, query in enumerate(sample):
            wall, cpu = time.perf_counter(), time.thread_time()
            index.search(query, k)
            each[place] = time.perf_counter() - wall, time.thread_time() - cpu
    return Took(*np.median(took, axis=0).mean(axis=0).tolist())
