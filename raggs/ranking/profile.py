"""Parameters of a judge, estimated from its answers to one query or to several.

Several queries (`fit_profile`): sharpness, fatigue within a list, and the effect of long lists. The answers to one
query have too little information: a judge whose late picks are careless looks like one with low sharpness. So the
answers to several queries are fitted with the same parameters, and the parameters with the best joint evidence are used
(empirical Bayes: Efron and Morris 1973). A fault of the judge is accepted only if it increases the evidence by more
than a penalty of 2 nats. The same answers give bit-identical parameters.

One query (`estimate_judge_model`): position bias, sharpness and repeat correlation. These parameters depend on the
utilities, and the utilities on the parameters, so both are fitted in turn.

Position bias (`position_bias`): lists are shuffled, so a bias towards the first passage does not distort the order
permanently, but it adds noise. Every batch has a passage at every position, so the bias is known long before the
utilities, and a known bias adds no noise. Estimates that may be due to chance are shrunk to 0, or to the estimate from
other queries (James and Stein 1961), so the correction costs almost nothing for a judge without bias.

Repeat correlation (`repeat_correlation`): a judge may make the same error each time it judges a pair. With the
correlation `echo` of its errors on two showings, n showings are worth n / (1 + (n - 1) echo) independent ones, and
never more than 1 / echo (Kish's design effect). The weight of an order is the mean weight of its pairs. The correlation
is estimated from pairs shown more than once, by the method of moments: how much their wins deviate from the posterior's
expectation, beyond independent errors and the error of the fit. The estimate is shrunk like the position bias, so it
costs almost nothing for a judge with independent errors.
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

BIAS_STEPS = 3  # Newton steps per estimate; the next estimate continues from its result
MAX_BIAS_STEP = 1.0  # largest Newton step, in log-odds
# squared deviations up to this multiple of their expectation by chance are shrunk to 0, much larger ones hardly
BIAS_THRESHOLD = 2.0


def position_bias(judged: JudgedOrders, posterior: Posterior) -> Floats:
    """Return the position bias as log-odds, shape (knots,), given the utilities of the posterior."""
    return shared_position_bias([(judged, posterior)])[0]


def shared_position_bias(fits: Sequence[tuple[JudgedOrders, Posterior]]) -> tuple[Floats, float]:
    """Return the position bias of a judge, estimated from the answers to several queries, and its standard error per
    position.

    Estimates that may be due to chance are shrunk to the prior mean, or to 0 if there is no prior mean.
    """
    manner = fits[0][0].manner
    precision, favour = 1.0 / manner.favour_doubt**2, manner.favour
    usual = np.zeros_like(favour) if manner.usual is None else manner.usual
    for _ in range(BIAS_STEPS):
        slope, information = _bias_terms(fits, favour)
        step = np.linalg.solve(information + precision * np.eye(slope.size), slope - precision * (favour - usual))
        favour = favour + np.clip(step, -MAX_BIAS_STEP, MAX_BIAS_STEP)
    found = favour - favour.mean() - usual
    # chi-squared with m - 1 degrees of freedom if the prior mean is true
    departure = float(found @ information @ found)
    told = 1.0 - (BIAS_THRESHOLD * (found.size - 1) / departure) ** 2 if departure > 0 else 0.0
    # without the component that is equal for all positions
    spread = np.linalg.eigvalsh(information + precision * np.eye(found.size))[1:]
    return np.asarray(usual + max(0.0, told) * found), float(np.sqrt((1.0 / spread).mean()))


def _bias_terms(fits: Sequence[tuple[JudgedOrders, Posterior]], favour: Floats) -> tuple[Floats, Floats]:
    """Return the gradient of the log-likelihood by the position bias, and the information about it, summed over all
    queries.
    """
    each = [
        by_place(posterior.mean, replace(judged, manner=replace(judged.manner, favour=favour)), posterior.sharpness)
        for judged, posterior in fits
    ]
    return np.sum([slope for _, slope, _ in each], axis=0), np.sum([bend for _, _, bend in each], axis=0)


HIGHEST_ECHO = 0.9
FOLLOWED = 2.75  # corrects for errors that the fit absorbs: without it, a third to a half of the correlation is found
# An excess within this many standard errors of 0 is set to 0. A larger excess is shrunk.
REPEAT_THRESHOLD = 1.0
TOLD_BY_ALL = 2.0  # the same limit for the estimate from all pilots, which every query uses
REPEAT_SHRINKAGE = 3.0  # shrinks the estimate to 0 if few pairs were repeated, in units of expected pair variance


def weights(shown: Ints, orders: Ints, echo: float) -> Floats:
    """Return the weight of each order: the mean of 1 / (1 + (n - 1) echo) over its pairs, with n >= 1 showings of
    each pair.
    """
    if echo == 0:
        return np.ones(len(orders))
    first, second = np.triu_indices(orders.shape[1], k=1)
    counts = shown[orders[:, first], orders[:, second]]
    return np.asarray((1.0 / (1.0 + (counts - 1) * echo)).mean(axis=1))


def showing_worth(shown: Ints, echo: float) -> Floats:
    """Return the information that one more showing of each pair would add, in independent showings; 0 on the
    diagonal.
    """
    gain = (shown + 1) / (1.0 + shown * echo) - shown / (1.0 + np.maximum(shown - 1, 0) * echo)
    np.fill_diagonal(gain, 0.0)
    return np.asarray(gain)


def repeat_correlation(judged: JudgedOrders, posterior: Posterior) -> float:
    """Return the repeat correlation, 0 to 0.9, of the answers that the posterior was fitted to. It is near 0 if few
    pairs were repeated.
    """
    return _shrunken_correlation(*_moments(judged, posterior), REPEAT_THRESHOLD)


def shared_repeat_correlation(fits: Sequence[tuple[JudgedOrders, Posterior]]) -> float:
    """Return the repeat correlation of a judge, estimated from the short lists of several queries.

    Long lists are excluded, because repeated errors in them look like utility.
    """
    moments = [
        _moments(replace(judged, lists=short), posterior)
        for judged, posterior in fits
        if (short := tuple(lists for lists in judged.lists if lists.length <= TYPICAL_LENGTH and lists.best is None))
    ]
    excess, chancy, most = (sum(each) for each in zip(*moments, strict=True)) if moments else (0.0, 0.0, 0.0)
    return _shrunken_correlation(excess, chancy, most, TOLD_BY_ALL)


def _shrunken_correlation(excess: float, chancy: float, most: float, surely: float) -> float:
    """Return the repeat correlation, shrunken and at most 0.9. It is 0 if the excess variance is at most `surely`
    standard errors above 0.
    """
    told = max(0.0, 1.0 - surely**2 * chancy / excess**2) if excess > 0 else 0.0
    found = told * FOLLOWED * excess / (most + REPEAT_SHRINKAGE)
    return min(found, HIGHEST_ECHO) if found > 0 else 0.0  # never -0.0, which would be serialised as "-0.0"


def _moments(judged: JudgedOrders, posterior: Posterior) -> tuple[float, float, float]:
    """Return three sums over repeated pairs: the excess variance of their wins, its variance if the errors are
    independent, and its maximum. Lists that are evidence on one pick only do not count.
    """
    judged = replace(judged, lists=tuple(lists for lists in judged.lists if lists.best is None))
    if not judged.lists:
        return 0.0, 0.0, 0.0
    n, surprise, variance, fourth, followed, spread = _repeated_pairs(judged, posterior)
    fitted = (followed * posterior.sharpness) ** 2 * spread
    excess = float((surprise**2 - variance + fitted).sum())
    return excess, float((2 * variance**2 + fourth).sum()), float(((n - 1) * variance).sum())


def _repeated_pairs(judged: JudgedOrders, posterior: Posterior) -> tuple[Floats, ...]:
    """Return statistics of each pair that was shown more than once, summed over its showings.

    Returns:
        Six arrays of the same length: number of showings, wins minus expected wins, their variance and their fourth
        cumulant for independent errors, derivative of the expected wins by the score difference; posterior variance of
        the utility difference. For a judge without fatigue, the derivative equals the variance.
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
    """Return four arrays over all pairs of all lists: winner, loser, probability of the opposite result, and
    remaining share of the sharpness.
    """
    scores, left = judged.scores(lists, posterior.mean, posterior.sharpness), judged.manner.care(lists.length)
    upper, lower = np.triu_indices(lists.length, k=1)
    picks = np.ones(upper.size) if left is None else left[upper]
    gaps = (scores[:, upper] - scores[:, lower]) * picks
    care = np.tile(picks * judged.manner.attention(lists.length), len(scores))
    return lists.orders[:, upper].ravel(), lists.orders[:, lower].ravel(), upset_chances(gaps.ravel()), care


CARE_STEPS = (0, 2, 4, 7, 12, 20)  # limits, in picks, of the steps within which the remaining sharpness is constant
# possible decreases of the logarithm of the remaining sharpness from one step to the next
CARE_FALL_GRID = (0.0, 0.25, 0.5, 1.0, 3.0)
STRAINS = (0.0, 0.3, 0.8)
# the lower the assumed standard deviation of the utilities, the sharper the judge looks
SIGMAS = (1.0, 0.7, 0.5, 0.35, 0.25)
SLIPS = (0.05, 0.15, 0.25, 0.4, 0.6)
OFF_PRIOR_PENALTY_NATS = 1.0  # for each grid step of sigma or slip away from its default
FAULT_PENALTY_NATS = 2.0  # evidence, in nats, that each fault must add to be accepted
MIN_LOG_SHARPNESS_ERROR = 0.15  # minimum standard error of the logarithm of the sharpness
ROUNDS = 4  # maximum number of rounds of coordinate search
MAX_ALTERNATIONS = 8  # maximum number of alternating fits of position bias and utilities
SHARPNESS_NEIGHBOURS = 2  # number of grid steps of the sharpness that are tried on each side

GridPoint = tuple[int, ...]  # grid indices: sharpness, a decrease for each step except the first, strain, sigma, slip
# slice of a grid point: the decreases of the sharpness within a list, and the strain
FAULTS = slice(1, len(CARE_STEPS))
STRAIN, SIGMA, SLIP = len(CARE_STEPS) - 1, len(CARE_STEPS), len(CARE_STEPS) + 1
GRIDS = (SHARPNESS, *[CARE_FALL_GRID] * (len(CARE_STEPS) - 2), STRAINS, SIGMAS, SLIPS)
USUAL_SHARPNESS_INDEX = SHARPNESS.index(3.0)
UNBIASED_POSITIONS = np.zeros(TYPICAL_LENGTH)
# Faults hide each other, so the search starts from two points: a judge without faults, and a judge with fatigue.
STARTS: tuple[GridPoint, ...] = (
    (USUAL_SHARPNESS_INDEX, 0, 0, 0, 0, 0, 2, 2),
    (USUAL_SHARPNESS_INDEX, 1, 3, 1, 1, 0, 2, 2),
)


@one_blas_thread
def fit_profile(pilots: Sequence[Pilot], overhead: float = 0.0) -> Profile:
    """Return the profile of the judge with the best joint evidence in all pilots. `overhead` is the fixed cost of a
    call, in passages.
    """
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
    """Yield the points that differ from this point on one axis only, and the point itself. On the sharpness axis,
    only nearby points are included.
    """
    far = SHARPNESS_NEIGHBOURS if axis == 0 else len(GRIDS[axis])
    places = range(max(0, point[axis] - far), min(len(GRIDS[axis]), point[axis] + far + 1))
    return ((*point[:axis], at, *point[axis + 1 :]) for at in places)


def _diagonal_neighbours(point: GridPoint) -> Iterator[GridPoint]:
    """Yield the point, and the points one step away in the same direction on both the sharpness axis and another
    axis.
    """
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
    """The joint evidence at each grid point, in nats, minus penalties for faults and for steps away from the
    defaults.
    """

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
        """Return the priors of the pilots' utilities."""
        sigma, slip = SIGMAS[point[SIGMA]], SLIPS[point[SLIP]]
        if point[SIGMA:] not in self._mixtures:
            self._mixtures[point[SIGMA:]] = [
                grade_prior(each.grades, each.graded, sigma, slip, each.distributions) for each in self._pilots
            ]
        return self._mixtures[point[SIGMA:]]

    def echo(self, point: GridPoint) -> float:
        """Return the joint repeat correlation of all pilots, given the judge's other parameters at the grid point."""
        fits = zip(self._priors(point), self._judged, self._begun, strict=True)
        return shared_repeat_correlation([(_with_manner(each[1], point), _fit_at_point(*each, point)) for each in fits])

    def favour(self, point: GridPoint) -> tuple[Floats, float]:
        """Return the joint position bias of all pilots and its standard error, given the judge's other parameters at
        the grid point.
        """
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
        """Return the estimated sharpness and the standard error of its logarithm.

        Each sharpness is evaluated with the other parameters that fit it best. Otherwise, the error would be
        underestimated if another strain explains the answers as well as another sharpness.
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
    """Return the answers with the judge's parameters at the grid point."""
    sharpness = SHARPNESS[point[0]]
    manner = replace(judged.manner, left=_remaining_care(point), strain=STRAINS[point[STRAIN]], sharpness=sharpness)
    return replace(judged, manner=manner)


def _fit_at_point(mixture: Mixture, judged: JudgedOrders, begun: Posterior, point: GridPoint) -> Posterior:
    """Return the posterior of a query with the judge's parameters at the grid point. The fit starts from `begun`,
    the posterior at another point.
    """
    return fit_mixture(mixture, _with_manner(judged, point), SHARPNESS[point[0]], begun)


def _evidence(mixture: Mixture, found: Posterior) -> float:
    return found.evidence + refine(mixture, found)[1]


FAVOUR_STEPS = 2  # alternating fits of position bias and utilities


def prior_judge_model(profile: Profile, own: JudgeModel) -> JudgeModel:
    """Return the judge model estimated from other queries. If the profile has no estimate of the position bias, the
    bias of `own` stays, with the default prior.
    """
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
    """Return the estimated judge model, the posterior of the utilities under this model, and the repeat correlation.

    Args:
        mixture: prior of the utilities.
        judged: the answers.
        posterior: current posterior, fitted to the same answers.
        echo: repeat correlation, if known. If None, it is estimated.
        biased: whether to estimate the position bias. If not, it stays unchanged.
    """
    for _ in range(FAVOUR_STEPS if biased else 0):
        judged = replace(judged, manner=replace(judged.manner, favour=position_bias(judged, posterior)))
        if not judged.manner.favour.any():
            break
        posterior = fit_mixture(mixture, judged, posterior.sharpness, posterior)
    posterior = fit_sharpness(mixture, judged, posterior)
    return judged.manner, posterior, repeat_correlation(judged, posterior) if echo is None else echo
