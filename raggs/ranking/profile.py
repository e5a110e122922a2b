"""What a few questions teach of a judge, for all others: how sharp it is, how it tires, what a long list costs it.

One question's answers say too little of these: a judge whose late picks are careless looks like one that is dull. So
the answers of several questions are fitted with the same manner, and that of best joint evidence is taken (empirical
Bayes: Efron and Morris 1973). What chance could explain as well is taken for chance: each fault of a judge has to earn
its place by the evidence that it adds.

Pure: a function of the answers; the same ones give the same profile bit for bit.

What the answers to one question say of its judge: its favour of places, its sharpness, its echo.

Each hangs on the utilities, and they on it, so they are fitted in turn. Pure: the same answers give the same bits.

What a judge gives to a place of the list: position bias, estimated and taken out.

Presentations are shuffled, so a judge that favours the first passage of a list spoils no order for good, but its favour
acts as noise. Each batch shows something at every place, so the favour of the places is learned long before the
utilities are, and known favour is noise no more. What chance could explain as well is taken for chance (shrinkage:
James and Stein 1961), so that a fair judge pays next to nothing.

Repeats that are no second opinion: a judge that errs the same way each time it meets the same pair.

The correlation `echo` of a judge's errors on two showings of a pair makes n showings worth n / (1 + (n - 1) echo)
independent ones, and never more than 1 / echo (Kish's design effect). Orders weigh as much as their pairs on
average. The correlation is estimated from the pairs that were shown more than once: by how much their wins depart
from what the posterior expects, beyond what independent errors and the fit itself explain (method of moments).
What chance could explain as well is taken for chance (shrinkage: James and Stein 1961), so that a judge of independent
errors pays next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.ranking.base import TYPICAL_LENGTH, Pilot, Profile
from raggs.ranking.posterior import (
    SHARPNESS,
    JudgedLists,
    JudgedOrders,
    JudgeModel,
    Mixture,
    Posterior,
    by_place,
    fit_mixture,
    fit_sharpness,
    grade_prior,
    one_blas_thread,
    refine,
    upset_chances,
)

BIAS_STEPS = 3  # Newton steps a study; the next one goes on from there
MAX_BIAS_STEP = 1.0  # largest step, as log-odds
BIAS_THRESHOLD = 2.0  # a departure, squared, of so many times what chance makes is none; larger ones hardly shrink


def position_bias(judged: JudgedOrders, posterior: Posterior) -> Floats:
    """The favour of each place as log-odds, shape (knots,), summing to 0, at the posterior's utilities."""
    return shared_position_bias([(judged, posterior)])[0]


def shared_position_bias(fits: Sequence[tuple[JudgedOrders, Posterior]]) -> tuple[Floats, float]:
    """The favour that several questions' answers tell of one judge, and its doubt: a standard error of each place.

    Where a favour was believed beforehand, it is what chance could explain that shrinks to it.
    """
    manner = fits[0][0].manner
    precision, favour = 1.0 / manner.favour_doubt**2, manner.favour
    usual = np.zeros_like(favour) if manner.usual is None else manner.usual
    for _ in range(BIAS_STEPS):
        slope, information = _bias_terms(fits, favour)
        step = np.linalg.solve(information + precision * np.eye(slope.size), slope - precision * (favour - usual))
        favour = favour + np.clip(step, -MAX_BIAS_STEP, MAX_BIAS_STEP)
    found = favour - favour.mean() - usual
    departure = float(found @ information @ found)  # chi-squared of m - 1 degrees of freedom for a judge as believed
    told = 1.0 - (BIAS_THRESHOLD * (found.size - 1) / departure) ** 2 if departure > 0 else 0.0
    spread = np.linalg.eigvalsh(information + precision * np.eye(found.size))[1:]  # without what all places share
    return np.asarray(usual + max(0.0, told) * found), float(np.sqrt((1.0 / spread).mean()))


def _bias_terms(fits: Sequence[tuple[JudgedOrders, Posterior]], favour: Floats) -> tuple[Floats, Floats]:
    """Slope and information by the favour, over all questions."""
    each = [
        by_place(posterior.mean, replace(judged, manner=replace(judged.manner, favour=favour)), posterior.sharpness)
        for judged, posterior in fits
    ]
    return np.sum([slope for _, slope, _ in each], axis=0), np.sum([bend for _, _, bend in each], axis=0)


HIGHEST_ECHO = 0.9
FOLLOWED = 2.75  # the fit follows part of the errors that it is compared with: the bare moments find a third to a half
REPEAT_THRESHOLD = (
    1.0  # an excess within so many standard errors of 0 is no echo; larger ones shrink towards 0 accordingly
)
TOLD_BY_ALL = 2.0  # the same for all pilots together, which every question believes
REPEAT_SHRINKAGE = 3.0  # pulls the estimate to 0 where few pairs were repeated, in units of expected pair variance


def weights(shown: Ints, orders: Ints, echo: float) -> Floats:
    """The weight of each order: the mean over its pairs of 1 / (1 + (n - 1) echo), n >= 1 the pair's showings."""
    if echo == 0:
        return np.ones(len(orders))
    first, second = np.triu_indices(orders.shape[1], k=1)
    counts = shown[orders[:, first], orders[:, second]]
    return np.asarray((1.0 / (1.0 + (counts - 1) * echo)).mean(axis=1))


def showing_worth(shown: Ints, echo: float) -> Floats:
    """What one more showing of each pair adds, in independent showings; 0 on the diagonal."""
    gain = (shown + 1) / (1.0 + shown * echo) - shown / (1.0 + np.maximum(shown - 1, 0) * echo)
    np.fill_diagonal(gain, 0.0)
    return np.asarray(gain)


def repeat_correlation(judged: JudgedOrders, posterior: Posterior) -> float:
    """The echo, 0 to 0.9, of answers that the posterior was fitted to; near 0 without repeated pairs."""
    return _shrunken_correlation(*_moments(judged, posterior), REPEAT_THRESHOLD)


def shared_repeat_correlation(fits: Sequence[tuple[JudgedOrders, Posterior]]) -> float:
    """What several questions' short lists tell of one judge; in long ones errors that repeat look like utility."""
    moments = [
        _moments(replace(judged, lists=short), posterior)
        for judged, posterior in fits
        if (short := tuple(lists for lists in judged.lists if lists.length <= TYPICAL_LENGTH))
    ]
    excess, chancy, most = (sum(each) for each in zip(*moments, strict=True)) if moments else (0.0, 0.0, 0.0)
    return _shrunken_correlation(excess, chancy, most, TOLD_BY_ALL)


def _shrunken_correlation(excess: float, chancy: float, most: float, surely: float) -> float:
    """Shrunk as an excess within so many standard errors of 0 is none."""
    told = max(0.0, 1.0 - surely**2 * chancy / excess**2) if excess > 0 else 0.0
    found = told * FOLLOWED * excess / (most + REPEAT_SHRINKAGE)
    return min(found, HIGHEST_ECHO) if found > 0 else 0.0  # never -0.0, which would be written so


def _moments(judged: JudgedOrders, posterior: Posterior) -> tuple[float, float, float]:
    """Of repeated pairs: what departs beyond chance, its variance were the errors independent, and the most of it."""
    n, surprise, variance, fourth, followed, spread = _repeated_pairs(judged, posterior)
    fitted = (followed * posterior.sharpness) ** 2 * spread
    excess = float((surprise**2 - variance + fitted).sum())
    return excess, float((2 * variance**2 + fourth).sum()), float(((n - 1) * variance).sum())


def _repeated_pairs(judged: JudgedOrders, posterior: Posterior) -> tuple[Floats, ...]:
    """Of each pair that was shown more than once, summed over its showings.

    Returns:
        Showings; wins less expected wins; their variance and fourth cumulant, were the errors independent; by how much
        expected wins follow the scores, of a judge with all its care 1 for each of variance; and the posterior variance
        of the difference. Six arrays of the same length.
    """
    size = posterior.mean.size
    showings = [_showings(judged, lists, posterior) for lists in judged.lists]
    winners, losers, lost, care = (np.concatenate(each) for each in zip(*showings, strict=True))
    doubt = lost * (1.0 - lost)
    pairs = np.minimum(winners, losers) * size + np.maximum(winners, losers)
    sums = [np.ones_like(lost), np.where(winners < losers, lost, -lost), doubt, doubt * (1 - 6 * doubt), doubt * care]
    totals = [np.bincount(pairs, each, minlength=size * size).astype(np.float64) for each in sums]
    again = np.flatnonzero(totals[0] > 1)
    first, second = np.divmod(again, size)
    own = posterior.covariance.diagonal()
    spread = own[first] + own[second] - 2 * posterior.covariance[first, second]
    return *(total[again] for total in totals), np.asarray(spread)


def _showings(judged: JudgedOrders, lists: JudgedLists, posterior: Posterior) -> tuple[Ints, Ints, Floats, Floats]:
    """Each pair of each list: who won, who lost, the chance of the other way round, and what was left of the care."""
    scores, left = judged.scores(lists, posterior.mean, posterior.sharpness), judged.manner.care(lists.length)
    upper, lower = np.triu_indices(lists.length, k=1)
    picks = np.ones(upper.size) if left is None else left[upper]
    gaps = (scores[:, upper] - scores[:, lower]) * picks
    care = np.tile(picks * judged.manner.attention(lists.length), len(scores))
    return lists.orders[:, upper].ravel(), lists.orders[:, lower].ravel(), upset_chances(gaps.ravel()), care


CARE_STEPS = (0, 2, 4, 7, 12, 20)  # picks between which care stays as it is
CARE_FALL_GRID = (0.0, 0.25, 0.5, 1.0, 3.0)  # of the logarithm of care from one to the next
STRAINS = (0.0, 0.3, 0.8)
SIGMAS = (1.0, 0.7, 0.5, 0.35, 0.25)  # narrower utilities make for a sharper judge, and the other way round
SLIPS = (0.05, 0.15, 0.25, 0.4, 0.6)
OFF_PRIOR_PENALTY_NATS = 1.0  # nats for each step of these two from the usual
FAULT_PENALTY_NATS = 2.0  # of evidence that a fault must bring
MIN_LOG_SHARPNESS_ERROR = 0.15  # doubt of the logarithm of the sharpness that is left at least
ROUNDS = 4  # of looking along each axis
MAX_ALTERNATIONS = 8  # times that favour and utilities are fitted in turn, each to the other
SHARPNESS_NEIGHBOURS = 2  # steps of the sharpness that are looked at on each side

GridPoint = tuple[int, ...]  # places on the grids: sharpness, a fall for each step but the first, strain, sigma, slip
FAULTS = slice(1, len(CARE_STEPS))  # of a point
STRAIN, SIGMA, SLIP = len(CARE_STEPS) - 1, len(CARE_STEPS), len(CARE_STEPS) + 1
GRIDS = (SHARPNESS, *[CARE_FALL_GRID] * (len(CARE_STEPS) - 2), STRAINS, SIGMAS, SLIPS)
USUAL_SHARPNESS_INDEX = SHARPNESS.index(3.0)
UNBIASED_POSITIONS = np.zeros(TYPICAL_LENGTH)
STARTS: tuple[GridPoint, ...] = (  # faults hide each other: the climb begins at a judge without any, and at a tired one
    (USUAL_SHARPNESS_INDEX, 0, 0, 0, 0, 0, 2, 2),
    (USUAL_SHARPNESS_INDEX, 1, 3, 1, 1, 0, 2, 2),
)


@one_blas_thread
def fit_profile(pilots: Sequence[Pilot], overhead: float = 0.0) -> Profile:
    """The profile of best joint evidence; `overhead`: of a call, in passages."""
    land = _EvidenceSurface(pilots)
    best = max((_climb(land, start) for start in STARTS), key=land.height)
    favour, favour_doubt = UNBIASED_POSITIONS, None
    if pilots and all(pilot.biased for pilot in pilots):
        favour, favour_doubt = land.favour(best)
        if favour.any():
            land = _EvidenceSurface(pilots, favour)
            best = max((_climb(land, start) for start in (*STARTS, best)), key=land.height)
            favour, favour_doubt = land.favour(best)
    sharpness, doubt = land.sharpness()
    sigma, slip = SIGMAS[best[SIGMA]], SLIPS[best[SLIP]]
    told = tuple(favour.tolist()) if favour.any() else ()
    left, strain = _remaining_care(best), STRAINS[best[STRAIN]]
    return Profile(sharpness, doubt, left, strain, overhead, sigma, slip, told, favour_doubt, land.echo(best))


def _climb(land: _EvidenceSurface, best: GridPoint) -> GridPoint:
    for _ in range(ROUNDS):
        before = best
        for axis in range(len(GRIDS)):
            best = max(_axis_neighbours(best, axis), key=land.height)
        best = max(_diagonal_neighbours(best), key=land.height)
        if best == before:
            break
    return best


def _axis_neighbours(point: GridPoint, axis: int) -> Iterator[GridPoint]:
    """The points that differ in one place, by a few steps where it is the sharpness."""
    far = SHARPNESS_NEIGHBOURS if axis == 0 else len(GRIDS[axis])
    places = range(max(0, point[axis] - far), min(len(GRIDS[axis]), point[axis] + far + 1))
    return ((*point[:axis], at, *point[axis + 1 :]) for at in places)


def _diagonal_neighbours(point: GridPoint) -> Iterator[GridPoint]:
    """Points that are sharper by a step and further along another axis, and the other way round: both go together."""
    yield point
    for axis in range(1, len(GRIDS)):
        for way in (1, -1):
            moved = [at + way if place in (0, axis) else at for place, at in enumerate(point)]
            if all(0 <= at < len(grid) for at, grid in zip(moved, GRIDS, strict=True)):
                yield tuple(moved)


def _remaining_care(point: GridPoint) -> tuple[float, ...]:
    falls = np.cumsum([0.0, *[CARE_FALL_GRID[at] for at in point[1:STRAIN]]])
    if not falls[-1]:
        return ()
    spans = [last - first for first, last in pairwise(CARE_STEPS)]
    return tuple(np.repeat(np.exp(-falls), spans).tolist())


class _EvidenceSurface:
    """The joint evidence by point, in nats, less what faults must bring."""

    def __init__(self, pilots: Sequence[Pilot], favour: Floats = UNBIASED_POSITIONS) -> None:
        self._pilots = pilots
        self._judged = [replace(each.judged, manner=JudgeModel(favour)) for each in pilots]
        self._mixtures: dict[GridPoint, list[Mixture]] = {}
        self._begun = [mixture.posterior(SHARPNESS[USUAL_SHARPNESS_INDEX]) for mixture in self._priors(STARTS[0])]
        self._known: dict[GridPoint, float] = {}

    def height(self, point: GridPoint) -> float:
        if point not in self._known:
            mixtures = self._priors(point)
            fits = zip(mixtures, self._judged, self._begun, strict=True)
            self._begun = [_fit_at_point(*each, point) for each in fits]
            faults = FAULT_PENALTY_NATS * sum(at > 0 for at in point[FAULTS])
            faults += OFF_PRIOR_PENALTY_NATS * sum(
                abs(at - usual) for at, usual in zip(point[SIGMA:], STARTS[0][SIGMA:], strict=True)
            )
            self._known[point] = sum(map(_evidence, mixtures, self._begun)) - faults
        return self._known[point]

    def _priors(self, point: GridPoint) -> list[Mixture]:
        """Of the pilots' utilities."""
        sigma, slip = SIGMAS[point[SIGMA]], SLIPS[point[SLIP]]
        if point[SIGMA:] not in self._mixtures:
            made = [grade_prior(each.grades, each.graded, sigma, slip) for each in self._pilots]
            self._mixtures[point[SIGMA:]] = made
        return self._mixtures[point[SIGMA:]]

    def echo(self, point: GridPoint) -> float:
        """Of its errors, joint of all pilots, where the judge is as the point has it."""
        fits = zip(self._priors(point), self._judged, self._begun, strict=True)
        return shared_repeat_correlation([(_with_manner(each[1], point), _fit_at_point(*each, point)) for each in fits])

    def favour(self, point: GridPoint) -> tuple[Floats, float]:
        """Of places, joint of all pilots, where the judge is otherwise as the point has it; and its doubt."""
        judged, found = self._judged, self._begun
        for _ in range(MAX_ALTERNATIONS):
            found = [_fit_at_point(*each, point) for each in zip(self._priors(point), judged, found, strict=True)]
            taken = [_with_manner(each, point) for each in judged]
            favour, doubt = shared_position_bias(list(zip(taken, found, strict=True)))
            judged = [replace(each, manner=JudgeModel(favour)) for each in judged]
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
        return float(np.exp(mean)), max(MIN_LOG_SHARPNESS_ERROR, float(np.sqrt(chances @ (logs - mean) ** 2)))


def _with_manner(judged: JudgedOrders, point: GridPoint) -> JudgedOrders:
    """The same answers, where the judge is as the point has it."""
    sharpness = SHARPNESS[point[0]]
    manner = replace(judged.manner, left=_remaining_care(point), strain=STRAINS[point[STRAIN]], sharpness=sharpness)
    return replace(judged, manner=manner)


def _fit_at_point(mixture: Mixture, judged: JudgedOrders, begun: Posterior, point: GridPoint) -> Posterior:
    """The posterior of a question where the judge is as the point has it; `begun` for another point."""
    return fit_mixture(mixture, _with_manner(judged, point), SHARPNESS[point[0]], begun)


def _evidence(mixture: Mixture, found: Posterior) -> float:
    return found.evidence + refine(mixture, found)[1]


FAVOUR_STEPS = 2  # times that favour and utilities are fitted in turn, each to the other


def prior_judge_model(profile: Profile, own: JudgeModel) -> JudgeModel:
    """A judge's manner as other questions taught it; what nothing was learned of stays as the question's own has it."""
    told = JudgeModel(own.favour, profile.left, profile.strain, profile.sharpness, profile.doubt)
    if profile.favour_doubt is None:
        return told
    usual = np.zeros_like(own.favour)
    if profile.favour:
        taught = JudgeModel(np.array(profile.favour))
        across = taught.knots(usual.size)
        usual = taught.favour if across is None else across @ taught.favour
        usual = usual - usual.mean()
    return replace(told, favour=usual, usual=usual, favour_doubt=profile.favour_doubt)


def estimate_judge_model(
    mixture: Mixture, judged: JudgedOrders, posterior: Posterior, echo: float | None, *, biased: bool
) -> tuple[JudgeModel, Posterior, float]:
    """The judge's manner, the utilities by it, and its echo.

    Args:
        mixture: the prior of the utilities.
        posterior: of the same answers.
        echo: as somebody knows it; None estimates it.
        biased: whether the judge may favour places; else it keeps the favour that it has.
    """
    for _ in range(FAVOUR_STEPS if biased else 0):
        judged = replace(judged, manner=replace(judged.manner, favour=position_bias(judged, posterior)))
        if not judged.manner.favour.any():
            break
        posterior = fit_mixture(mixture, judged, posterior.sharpness, posterior)
    posterior = fit_sharpness(mixture, judged, posterior)
    return judged.manner, posterior, repeat_correlation(judged, posterior) if echo is None else echo
