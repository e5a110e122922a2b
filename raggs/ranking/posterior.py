"""The posterior of the utilities under the Plackett-Luce model, from all judged orders at once.

Utilities x have a Gaussian prior around the grades; a judge of sharpness b orders a batch by Plackett-Luce with
scores b x. The log-posterior is strictly concave, so Newton's method finds its only maximum from anywhere; the
curvature there gives the joint covariance (Laplace).

Nothing is updated in place: the fit is a function of the answers, the prior, b and the starting point.

The posterior where a prior is a mixture of normals, one mixture for each utility.

The likelihood of judged orders wants normal priors. Each mixture is stood in for by the normal factor that gives the
marginal posterior the mean and the variance that the mixture would give it (expectation propagation: Minka 2001).
The factors depend on the posterior that they lead to; warm-started, one refinement after each answer is enough.

Functions of their arguments alone: the factors travel with the posterior that was fitted with them.

Judged batches as arrays, and what the Plackett-Luce model says of them.

A judge who ranks a batch picks its best item, then the best of the rest, and so on; each pick, a stage, follows a
softmax of the scores of those that are left (Luce 1959, Plackett 1975). An answer orders the passages of one list.
Its likelihood depends on the utilities, on the sharpness of the judge, and on the places of the list where the
passages were shown, since a judge may favour some of them. Orders that somebody gave beforehand come with a sharpness
of their own. Sums over all answers run by passage or by place with the
same formulas. Pure functions; nothing is fitted here.

What a grade tells of a utility: most grades are deserved, some are one off.

A utility is normal around the grade that its passage deserves, and that is the given grade or a neighbour of it. How
likely the neighbours are depends on the pool: where most passages deserve a 1, many a given 2 is one of them. The
shares of the deserved grades are estimated from the given ones, which are those shares blurred by the slips
(deconvolution by expectation-maximisation: Richardson 1972, Lucy 1974).

Small matrices on one BLAS thread.

A posterior over some dozens of passages is a matrix of some kilobytes: handing it to a pool of threads costs more
than the work, and on a busy machine a hundred times more. Limits hold for the length of a call only, so that the rest
of the process keeps its threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.ranking.base import TYPICAL_LENGTH
from raggs.ranking.rounds import HIGHEST_GRADE, LOWEST_GRADE

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

LikelihoodTerms = tuple[float, Floats, Floats]
Sums3 = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class KnownPicks:
    """What orders of groups say, pick by pick: each passage was put before all those of the groups below its own.

    For groups of one these are the stages of Plackett-Luce; among those of one group nothing is said.

    Attributes:
        sets: by pick, the passage that was picked, then those that it was put before.
        sharpness: by pick, of whoever picked.
    """

    sets: tuple[Ints, ...] = ()
    sharpness: tuple[float, ...] = ()

    def and_groups(self, groups: Sequence[Sequence[int]], sharpness: float) -> KnownPicks:
        """These, and those of another order, best group first."""
        below = [[item for group in groups[place + 1 :] for item in group] for place in range(len(groups))]
        sets = [np.array([item, *rest]) for group, rest in zip(groups, below, strict=True) for item in group if rest]
        return KnownPicks((*self.sets, *sets), (*self.sharpness, *[sharpness] * len(sets)))

    def add_to(self, utilities: Floats, sums: LikelihoodTerms) -> LikelihoodTerms:
        """Log-likelihood, its gradient and its negative Hessian by the utilities, together with those of `sums`."""
        loglik, gradient, curvature = sums
        for members, sharpness in zip(self.sets, self.sharpness, strict=True):
            scores = sharpness * utilities[members]
            scores -= scores.max()
            strengths = np.exp(scores)
            chances = strengths / strengths.sum()
            loglik += float(scores[0] - np.log(strengths.sum()))
            gradient[members] -= sharpness * chances
            gradient[members[0]] += sharpness
            curvature[np.ix_(members, members)] += sharpness**2 * (np.diag(chances) - np.outer(chances, chances))
        return loglik, gradient, curvature


@dataclass(frozen=True)
class JudgedLists:
    """Answers to lists of one length m.

    Attributes:
        orders: shape (calls, m): the items of each list, best first.
        places: shape (calls, m): the place in the list, from 0, where each of `orders` was shown.
        weights: shape (calls,): of each order's log-likelihood; 1 for a full observation.
    """

    orders: Ints
    places: Ints
    weights: Floats

    @property
    def length(self) -> int:
        """Passages in a list."""
        return int(self.orders.shape[1])


@dataclass(frozen=True)
class JudgeModel:
    """How a judge orders a list, and what is believed of its sharpness beforehand.

    Attributes:
        favour: shape (knots,): what places from the first of a list to the last add to the log-odds of being picked;
            in lists of another length it is interpolated.
        left: what is left of its care at each pick of an answer, from 1 at the first; past the last of them nothing
            changes. Empty: all of it.
        strain: how its care falls with the length of the list, >= 0: (5 / m)^strain of it is left.
        sharpness, doubt: log-normal prior of the sharpness: its median, and the spread of its logarithm.
        usual, favour_doubt: normal prior of the favour: its mean, shape (knots,) or None for 0, and spread.
    """

    favour: Floats
    left: tuple[float, ...] = ()
    strain: float = 0.0
    sharpness: float = 3.0
    doubt: float = 0.8
    usual: Floats | None = None
    favour_doubt: float = 2.0  # wide: it only keeps the favour finite where a place always wins

    def care(self, length: int) -> Floats | None:
        """What is left of the sharpness at each pick from a list, shape (m,); None where it is the same at each."""
        if not self.left:
            return None
        return np.array([*self.left[:length], *[self.left[-1]] * (length - len(self.left))])

    def attention(self, length: int) -> float:
        """What is left of the sharpness at the first pick from a list."""
        return float((TYPICAL_LENGTH / length) ** self.strain) if self.strain else 1.0

    def knots(self, length: int) -> Floats | None:
        """W, shape (m, knots): favour of the places of a list = W favour; None where it is the favour itself."""
        count = self.favour.size
        if length == count:
            return None
        at = np.linspace(0, count - 1, length)
        return np.asarray(np.maximum(1.0 - np.abs(at[:, None] - np.arange(count)), 0.0))


@dataclass(frozen=True)
class JudgedOrders:
    """All that was heard, and how it is taken.

    Attributes:
        lists: the answers, by the length of the list.
        manner: of the judge.
        known: picks of orders that were there beforehand; None where there are none.
    """

    lists: tuple[JudgedLists, ...]
    manner: JudgeModel
    known: KnownPicks | None = None

    def scores(self, lists: JudgedLists, utilities: Floats, sharpness: float) -> Floats:
        """What the judge goes by, shape (calls, m), in the judged order: sharpness times utility, and favour."""
        knots, favour = self.manner.knots(lists.length), self.manner.favour
        places = favour if knots is None else knots @ favour
        return np.asarray(
            sharpness * self.manner.attention(lists.length) * utilities[lists.orders] + places[lists.places]
        )


MAX_SCORE_GAP = 300.0  # differences of scores beyond this change nothing, and their squared exponentials would overflow
MAX_EXPONENT = 500.0  # the same for a plain exponential


def by_item(utilities: Floats, judged: JudgedOrders, sharpness: float) -> LikelihoodTerms:
    """Log-likelihood of the answers, its gradient and its negative Hessian by the utilities.

    Returns:
        The value; shape (size,): winner of a stage b (1 - p), others -b p, summed over stages; shape (size, size),
        positive semidefinite: the sum of b^2 (diag p - p p^T) over stages (Plackett 1975; Hunter 2004).
    """
    size = utilities.size
    loglik, slope, bend = 0.0, np.zeros(size), np.zeros((size, size))
    for lists in judged.lists:
        sharp = sharpness * judged.manner.attention(lists.length)
        own, gradient, curvature = _likelihood_terms(judged, lists, utilities, sharpness, lists.orders, size)
        loglik, slope, bend = loglik + own, slope + sharp * gradient, bend + sharp**2 * curvature
    return (loglik, slope, bend) if judged.known is None else judged.known.add_to(utilities, (loglik, slope, bend))


def by_place(utilities: Floats, judged: JudgedOrders, sharpness: float) -> LikelihoodTerms:
    """The same by the favour of the places: shapes (knots,) and (knots, knots)."""
    size = judged.manner.favour.size
    loglik, slope, bend = 0.0, np.zeros(size), np.zeros((size, size))
    for lists in judged.lists:
        own, gradient, curvature = _likelihood_terms(judged, lists, utilities, sharpness, lists.places, lists.length)
        knots = judged.manner.knots(lists.length)
        if knots is not None:
            gradient, curvature = knots.T @ gradient, knots.T @ curvature @ knots
        loglik, slope, bend = loglik + own, slope + gradient, bend + curvature
    return loglik, slope, bend


def _likelihood_terms(
    judged: JudgedOrders, lists: JudgedLists, utilities: Floats, sharpness: float, cells: Ints, size: int
) -> LikelihoodTerms:
    scores, weights = judged.scores(lists, utilities, sharpness), lists.weights
    loglik, slopes, blocks = stage_sums(scores, judged.manner.care(lists.length))
    gradient = np.bincount(cells.ravel(), (weights[:, None] * slopes).ravel(), minlength=size)
    pairs = cells[:, :, None] * size + cells[:, None, :]
    blocks *= weights[:, None, None]
    curvature = np.bincount(pairs.ravel(), blocks.ravel(), minlength=size * size).reshape(size, size)
    return float(weights @ loglik), np.asarray(gradient), np.asarray(curvature)


def stage_sums(scores: Floats, left: Floats | None = None) -> Sums3:
    """The stages of each of many orders at once, summed.

    With e_i = exp(s_i) and the tail sums T_k = e_k + ... + e_m, item i >= k is picked at stage k with p_k(i) =
    e_i / T_k. Sums over stages need no stage of their own: sum p_k(i) = e_i sum 1 / T_k over k <= i, and
    sum p_k(i) p_k(j) = e_i e_j sum 1 / T_k^2 over k <= min(i, j).

    Args:
        scores: shape (c, m), each row in the judged order.
        left: shape (m,): what is left of the judge's care at each stage, which its scores are multiplied by; None: all.

    Returns:
        Log-likelihoods, shape (c,); their gradient by the scores, 1 - sum p, shape (c, m); and the sums of
        diag p - p p^T, shape (c, m, m).
    """
    if left is not None:
        return _tired_sums(scores, left)
    highest = scores.max(axis=1, keepdims=True)
    strengths = np.exp(np.maximum(scores - highest, -MAX_SCORE_GAP))
    tails = strengths[:, ::-1].cumsum(axis=1)[:, ::-1]
    picked = strengths * (1.0 / tails).cumsum(axis=1)
    squares = (1.0 / tails**2).cumsum(axis=1)
    blocks = -strengths[:, :, None] * strengths[:, None, :] * np.minimum(squares[:, :, None], squares[:, None, :])
    diagonal = np.arange(scores.shape[1])
    blocks[:, diagonal, diagonal] += picked
    return (scores - highest - np.log(tails)).sum(axis=1), 1.0 - picked, blocks


def _tired_sums(scores: Floats, left: Floats) -> Sums3:
    """The same stage by stage, each with the care that is left."""
    size = left.size
    stages = np.where(np.triu(np.ones((size, size), dtype=bool)), left[:, None] * scores[:, None, :], -np.inf)
    stages -= stages.max(axis=2, keepdims=True)
    chances = np.exp(stages)
    totals = chances.sum(axis=2, keepdims=True)
    diagonal = np.arange(size)
    loglik = (stages[:, diagonal, diagonal] - np.log(totals[:, :, 0])).sum(axis=1)
    chances *= left[:, None] / totals
    blocks = -(chances.transpose(0, 2, 1) @ chances)
    blocks[:, diagonal, diagonal] += np.einsum("k,cki->ci", left, chances)
    return loglik, left - chances.sum(axis=1), blocks


def stage_chances(scores: Floats) -> Floats:
    """p[k, j]: the chance that item j of one order is picked at stage k, in full; exact for scores of any finite size.

    p[k, j] = exp(s_j) / T_k for j >= k, else 0, for scores s in the judged order. Shape (m, m); each row sums to 1. An
    order adds 1 - sum p to the gradient of its log-likelihood by the scores, and sum p (1 - p) to the information.
    """
    inside = np.triu(np.ones((scores.size, scores.size), dtype=bool))
    stages = np.where(inside, scores, -np.inf)
    weights = np.exp(stages - stages.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def upset_chances(gaps: Floats) -> Floats:
    """The chance that the passage which is behind by a gap of the scores is put first of the two."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(gaps, -MAX_EXPONENT, MAX_EXPONENT))))


P = ParamSpec("P")
T = TypeVar("T")


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with BLAS held to one thread while it runs."""

    @wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return held


@cache
def lapack() -> ModuleType:
    """Return the functions of LAPACK that scipy brings; imported late, since naming an engine needs no scipy."""
    return import_module("scipy.linalg.lapack")


@cache
def _controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    lapack()  # brings a BLAS of its own, which is only limited once it is loaded

    return ThreadpoolController()


SHARPNESS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 8.0)
NEWTON_STEPS = 40  # Newton steps at most; three are enough after one more order
CLIP = 0.7  # largest move of a utility in one step, in grades: far from the maximum the quadratic overshoots
MIN_STEP_GRADES = 5e-3  # a step this small, in grades, leaves an error of b times its square


@dataclass(frozen=True)
class Prior:
    """Independent Gaussians: `mean` and `precision` (1 / variance) of each utility, in grades."""

    mean: Floats
    precision: Floats


@dataclass(frozen=True)
class Posterior:
    """A Laplace approximation: utilities ~ N(mean, covariance).

    Attributes:
        mean: the maximum a posteriori, in grades.
        covariance: the inverse of the curvature there, shape (size, size).
        sharpness: the b it was fitted with.
        evidence: log of b's evidence with its prior, up to a constant; comparable between fits of the same orders.
        prior: of the fit.
    """

    mean: Floats
    covariance: Floats
    sharpness: float
    evidence: float
    prior: Prior


def fit(prior: Prior, judged: JudgedOrders, sharpness: float, start: Floats, steps: int = NEWTON_STEPS) -> Posterior:
    """The posterior for one sharpness, by at most so many damped Newton steps from `start`."""
    blas, x = lapack(), start
    for _ in range(steps):
        loglik, slope, curvature = by_item(x, judged, sharpness)
        np.fill_diagonal(curvature, curvature.diagonal() + prior.precision)
        factor, _ = blas.dpotrf(curvature, lower=1)
        step, _ = blas.dpotrs(factor, slope - prior.precision * (x - prior.mean), lower=1)
        largest = float(np.abs(step).max())
        x = x + step * min(1.0, CLIP / max(largest, MIN_STEP_GRADES))  # shortened as a whole, it still leads uphill
        if largest < MIN_STEP_GRADES:
            break
    inverse, _ = blas.dpotri(factor, lower=1)  # the lower triangle; above it, zeros
    covariance = inverse + inverse.T
    np.fill_diagonal(covariance, inverse.diagonal())
    misfit = float((prior.precision * (x - prior.mean) ** 2).sum()) / 2
    surprise = (np.log(sharpness / judged.manner.sharpness) / judged.manner.doubt) ** 2 / 2
    volume = float(np.log(factor.diagonal()).sum() - np.log(prior.precision).sum() / 2)
    evidence = loglik - misfit - volume - surprise
    return Posterior(x, covariance, sharpness, evidence, prior)


MIN_FACTOR_PRECISION = 0.3  # least precision of a factor: between two modes the exact one would be negative
ROUGH_NEWTON_STEPS = 1  # Newton steps before the factors are refined
SETTLE = 3  # refinements after the sharpness has changed
MIN_ANSWER_PRECISION = 1e-4  # least precision of what the answers say of an item; an item never shown has none


@dataclass(frozen=True)
class Mixture:
    """Shares of normals: `centres` and `shares` have shape (size, k), each row of shares sums to 1.

    Attributes:
        variance: shape (size,): of every normal of an item.
    """

    centres: Floats
    shares: Floats
    variance: Floats

    def normal(self) -> Prior:
        """The normal factors of the same means and variances."""
        mean = (self.shares * self.centres).sum(axis=1)
        between = (self.shares * (self.centres - mean[:, None]) ** 2).sum(axis=1)
        return Prior(mean, 1.0 / (between + self.variance))

    def posterior(self, sharpness: float) -> Posterior:
        """Before any answer."""
        prior = self.normal()
        return Posterior(prior.mean, np.diag(1.0 / prior.precision), sharpness, 0.0, prior)

    def times(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-mass, mean and variance of the mixture times N(mean, variance), item by item."""
        total = (self.variance + variance)[:, None]
        with np.errstate(divide="ignore"):  # a share of 0 has the logarithm -inf
            logs = np.log(self.shares) + _log_normal(self.centres - mean[:, None], total)
        largest = logs.max(axis=1, keepdims=True)
        masses = np.exp(logs - largest)
        mass = masses.sum(axis=1, keepdims=True)
        weights = masses / mass
        means = (self.centres * variance[:, None] + mean[:, None] * self.variance[:, None]) / total
        centre = (weights * means).sum(axis=1)
        between = (weights * (means - centre[:, None]) ** 2).sum(axis=1)
        within = self.variance * variance / total[:, 0]
        return (largest + np.log(mass))[:, 0], centre, between + within


def fit_mixture(mixture: Mixture, judged: JudgedOrders, sharpness: float, start: Posterior) -> Posterior:
    """The posterior for one sharpness, from the factors and the mean of `start`; arguments as `posterior.fit`."""
    rough = fit(start.prior, judged, sharpness, start.mean, steps=ROUGH_NEWTON_STEPS)
    factors, _ = refine(mixture, rough)
    return fit(factors, judged, sharpness, rough.mean)


def refine(mixture: Mixture, posterior: Posterior) -> tuple[Prior, float]:
    """Better factors, and what the mixtures' own evidence adds to that of the factors (a logarithm)."""
    prior, variance = posterior.prior, posterior.covariance.diagonal()
    loose = np.maximum(1.0 / variance - prior.precision, MIN_ANSWER_PRECISION)
    rest = (posterior.mean / variance - prior.mean * prior.precision) / loose  # what the answers alone say
    mass, mean, spread = mixture.times(rest, 1.0 / loose)
    precision = np.maximum(1.0 / spread - loose, MIN_FACTOR_PRECISION)
    factors = Prior((mean * (loose + precision) - rest * loose) / precision, precision)
    return factors, float((mass - _log_normal(prior.mean - rest, 1.0 / loose + 1.0 / prior.precision)).sum())


def fit_sharpness(mixture: Mixture, judged: JudgedOrders, current: Posterior) -> Posterior:
    """The fit of best evidence among the current sharpness and its neighbours on the grid."""
    place = SHARPNESS.index(current.sharpness)
    around = [SHARPNESS[near] for near in (place - 1, place + 1) if 0 <= near < len(SHARPNESS)]
    fits = [current, *(fit_mixture(mixture, judged, sharpness, current) for sharpness in around)]
    best = max(fits, key=lambda candidate: candidate.evidence + refine(mixture, candidate)[1])
    for _ in range(0 if best is current else SETTLE):  # a leap of the sharpness leaves the factors behind
        best = fit_mixture(mixture, judged, best.sharpness, best)
    return best


def _log_normal(distance: Floats, variance: Floats) -> Floats:
    """Log-density of N(0, variance) at `distance`, but for the constant."""
    return np.asarray(-(distance**2) / (2 * variance) - np.log(variance) / 2)


GRADE_LEVELS = np.arange(LOWEST_GRADE, HIGHEST_GRADE + 1)
SLIP_OFFSETS = np.arange(-1.0, 2.0)
DECONVOLUTION_STEPS = 20  # of the deconvolution: fully converged, it would make peaks of chance
LEVEL_PSEUDOCOUNT = 0.5  # passages of each level that are taken for seen before any is
UNGRADED = 2.5  # the prior of an ungraded passage is this many times as wide as one around a deserved grade


def grade_prior(grades: Floats, graded: Flags, sigma: float, slip: float) -> Mixture:
    """The prior of the utilities: normals around the grade and its neighbours.

    Args:
        grades: shape (size,), 1 to 5; for ungraded passages where they start.
        graded: shape (size,): which were given by the judge.
        sigma: spread of the utilities around the deserved grade, in grades.
        slip: chance that a given grade is one off, 0 to 0.9.
    """
    centres, chances = grades[:, None] + SLIP_OFFSETS, slip_chances(slip)
    likely = np.where((centres >= LOWEST_GRADE) & (centres <= HIGHEST_GRADE), chances, 0.0)
    lowest, highest = (grades <= LOWEST_GRADE)[:, None], (grades >= HIGHEST_GRADE)[:, None]
    likely = np.where(lowest & (likely > 0), chances[::-1].cumsum()[::-1], likely)  # no slip leads off the scale
    likely = np.where(highest & (likely > 0), chances.cumsum(), likely)
    shares = likely * np.interp(centres, GRADE_LEVELS, deserved_shares(grades[graded], slip))
    shares[~graded] = SLIP_OFFSETS == 0
    return Mixture(centres, shares / shares.sum(axis=1, keepdims=True), np.where(graded, sigma, UNGRADED * sigma) ** 2)


def slip_chances(slip: float) -> Floats:
    """The chance of each slip in `SLIP_OFFSETS`."""
    return np.array([slip / 2, 1 - slip, slip / 2])


def deserved_shares(grades: Floats, slip: float) -> Floats:
    """How common each deserved grade is in the pool, shape (5,); a grade between two levels counts for both in part."""
    counts = np.maximum(1.0 - np.abs(grades[:, None] - GRADE_LEVELS), 0.0).sum(axis=0)
    last = GRADE_LEVELS.size - 1
    given = np.zeros(
        (GRADE_LEVELS.size, GRADE_LEVELS.size)
    )  # given[d, g]: chance that a passage deserving d is given g
    for deserved in range(GRADE_LEVELS.size):
        for off, chance in zip(SLIP_OFFSETS.astype(int), slip_chances(slip), strict=True):
            given[deserved, min(max(deserved + off, 0), last)] += chance
    shares = (counts + LEVEL_PSEUDOCOUNT) / (counts + LEVEL_PSEUDOCOUNT).sum()
    for _ in range(DECONVOLUTION_STEPS):
        joint = shares[:, None] * given
        shares = (joint / joint.sum(axis=0)) @ counts + LEVEL_PSEUDOCOUNT
        shares = shares / shares.sum()
    return np.asarray(shares)
