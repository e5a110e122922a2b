"""What a few questions teach of a judge, for all others: how sharp it is, how it tires, what a long list costs it.

One question's answers say too little of these: a judge whose late picks are careless looks like one that is dull. So
the answers of several questions are fitted with the same manner, and that of best joint evidence is taken (empirical
Bayes: Efron and Morris 1973). What chance could explain as well is taken for chance: each fault of a judge has to earn
its place by the evidence that it adds.

Pure: a function of the answers; the same ones give the same profile bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from raggs.base.arrays import Floats
from raggs.ranking import echoes
from raggs.ranking.base import TYPICAL_LENGTH, Pilot, Profile
from raggs.ranking.favour import jointly
from raggs.ranking.grades import grade_prior
from raggs.ranking.likelihood import Judged, Manner
from raggs.ranking.mixture import Mixture, fit_mixture, refine
from raggs.ranking.posterior import SHARPNESS, Posterior
from raggs.ranking.threads import one_blas_thread

STEPS = (0, 2, 4, 7, 12, 20)  # picks between which care stays as it is
FALLS = (0.0, 0.25, 0.5, 1.0, 3.0)  # of the logarithm of care from one to the next
STRAINS = (0.0, 0.3, 0.8)
SIGMAS = (1.0, 0.7, 0.5, 0.35, 0.25)  # narrower utilities make for a sharper judge, and the other way round
SLIPS = (0.05, 0.15, 0.25, 0.4, 0.6)
AWAY = 1.0  # nats for each step of these two from the usual
NATS = 2.0  # of evidence that a fault must bring
SURE = 0.15  # doubt of the logarithm of the sharpness that is left at least
ROUNDS = 4  # of looking along each axis
TURNS = 8  # times that favour and utilities are fitted in turn, each to the other
NEAR = 2  # steps of the sharpness that are looked at on each side

Point = tuple[int, ...]  # places on the grids: sharpness, a fall for each step but the first, strain, sigma, slip
FAULTS = slice(1, len(STEPS))  # of a point
STRAIN, SIGMA, SLIP = len(STEPS) - 1, len(STEPS), len(STEPS) + 1
GRIDS = (SHARPNESS, *[FALLS] * (len(STEPS) - 2), STRAINS, SIGMAS, SLIPS)
USUAL = SHARPNESS.index(3.0)
FAIR = np.zeros(TYPICAL_LENGTH)
STARTS: tuple[Point, ...] = (  # faults hide each other: the climb begins at a judge without any, and at a tired one
    (USUAL, 0, 0, 0, 0, 0, 2, 2),
    (USUAL, 1, 3, 1, 1, 0, 2, 2),
)


@one_blas_thread
def learn(pilots: Sequence[Pilot], overhead: float = 0.0) -> Profile:
    """The profile of best joint evidence; `overhead`: of a call, in passages."""
    land = _Land(pilots)
    best = max((_climbed(land, start) for start in STARTS), key=land.height)
    favour, favour_doubt = FAIR, None
    if pilots and all(pilot.biased for pilot in pilots):
        favour, favour_doubt = land.favour(best)
        if favour.any():
            land = _Land(pilots, favour)
            best = max((_climbed(land, start) for start in (*STARTS, best)), key=land.height)
            favour, favour_doubt = land.favour(best)
    sharpness, doubt = land.sharpness()
    sigma, slip = SIGMAS[best[SIGMA]], SLIPS[best[SLIP]]
    told = tuple(favour.tolist()) if favour.any() else ()
    left, strain = _left(best), STRAINS[best[STRAIN]]
    return Profile(sharpness, doubt, left, strain, overhead, sigma, slip, told, favour_doubt, land.echo(best))


def _climbed(land: _Land, best: Point) -> Point:
    for _ in range(ROUNDS):
        before = best
        for axis in range(len(GRIDS)):
            best = max(_along(best, axis), key=land.height)
        best = max(_across(best), key=land.height)
        if best == before:
            break
    return best


def _along(point: Point, axis: int) -> Iterator[Point]:
    """The points that differ in one place, by a few steps where it is the sharpness."""
    far = NEAR if axis == 0 else len(GRIDS[axis])
    places = range(max(0, point[axis] - far), min(len(GRIDS[axis]), point[axis] + far + 1))
    return ((*point[:axis], at, *point[axis + 1 :]) for at in places)


def _across(point: Point) -> Iterator[Point]:
    """Points that are sharper by a step and further along another axis, and the other way round: both go together."""
    yield point
    for axis in range(1, len(GRIDS)):
        for way in (1, -1):
            moved = [at + way if place in (0, axis) else at for place, at in enumerate(point)]
            if all(0 <= at < len(grid) for at, grid in zip(moved, GRIDS, strict=True)):
                yield tuple(moved)


def _left(point: Point) -> tuple[float, ...]:
    falls = np.cumsum([0.0, *[FALLS[at] for at in point[1:STRAIN]]])
    if not falls[-1]:
        return ()
    spans = [last - first for first, last in pairwise(STEPS)]
    return tuple(np.repeat(np.exp(-falls), spans).tolist())


class _Land:
    """The joint evidence by point, in nats, less what faults must bring."""

    def __init__(self, pilots: Sequence[Pilot], favour: Floats = FAIR) -> None:
        self._pilots = pilots
        self._judged = [replace(each.judged, manner=Manner(favour)) for each in pilots]
        self._mixtures: dict[Point, list[Mixture]] = {}
        self._begun = [mixture.posterior(SHARPNESS[USUAL]) for mixture in self._priors(STARTS[0])]
        self._known: dict[Point, float] = {}

    def height(self, point: Point) -> float:
        if point not in self._known:
            mixtures = self._priors(point)
            fits = zip(mixtures, self._judged, self._begun, strict=True)
            self._begun = [_fitted(*each, point) for each in fits]
            faults = NATS * sum(at > 0 for at in point[FAULTS])
            faults += AWAY * sum(abs(at - usual) for at, usual in zip(point[SIGMA:], STARTS[0][SIGMA:], strict=True))
            self._known[point] = sum(map(_evidence, mixtures, self._begun)) - faults
        return self._known[point]

    def _priors(self, point: Point) -> list[Mixture]:
        """Of the pilots' utilities."""
        sigma, slip = SIGMAS[point[SIGMA]], SLIPS[point[SLIP]]
        if point[SIGMA:] not in self._mixtures:
            made = [grade_prior(each.grades, each.graded, sigma, slip) for each in self._pilots]
            self._mixtures[point[SIGMA:]] = made
        return self._mixtures[point[SIGMA:]]

    def echo(self, point: Point) -> float:
        """Of its errors, joint of all pilots, where the judge is as the point has it."""
        fits = zip(self._priors(point), self._judged, self._begun, strict=True)
        return echoes.jointly([(_mannered(each[1], point), _fitted(*each, point)) for each in fits])

    def favour(self, point: Point) -> tuple[Floats, float]:
        """Of places, joint of all pilots, where the judge is otherwise as the point has it; and its doubt."""
        judged, found = self._judged, self._begun
        for _ in range(TURNS):
            found = [_fitted(*each, point) for each in zip(self._priors(point), judged, found, strict=True)]
            taken = [_mannered(each, point) for each in judged]
            favour, doubt = jointly(list(zip(taken, found, strict=True)))
            judged = [replace(each, manner=Manner(favour)) for each in judged]
            if not favour.any():
                break
        return favour, doubt

    def sharpness(self) -> tuple[float, float]:
        """The best guess and the doubt of its logarithm, each sharpness with what goes best with it.

        With all else held as it is, what a strain explains as well as a sharpness would be taken for sure.
        """
        best: dict[int, float] = {}
        for point, height in self._known.items():
            best[point[0]] = max(height, best.get(point[0], height))
        places = sorted(best)
        heights = np.array([best[place] for place in places])
        chances = np.exp(heights - heights.max())
        chances /= chances.sum()
        logs = np.log([SHARPNESS[place] for place in places])
        mean = float(chances @ logs)
        return float(np.exp(mean)), max(SURE, float(np.sqrt(chances @ (logs - mean) ** 2)))


def _mannered(judged: Judged, point: Point) -> Judged:
    """The same answers, where the judge is as the point has it."""
    sharpness = SHARPNESS[point[0]]
    manner = replace(judged.manner, left=_left(point), strain=STRAINS[point[STRAIN]], sharpness=sharpness)
    return replace(judged, manner=manner)


def _fitted(mixture: Mixture, judged: Judged, begun: Posterior, point: Point) -> Posterior:
    """The posterior of a question where the judge is as the point has it; `begun` for another point."""
    return fit_mixture(mixture, _mannered(judged, point), SHARPNESS[point[0]], begun)


def _evidence(mixture: Mixture, found: Posterior) -> float:
    return found.evidence + refine(mixture, found)[1]
