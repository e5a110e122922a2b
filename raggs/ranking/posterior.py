"""Posterior of the utilities under the Plackett-Luce model, from all judged orders at once.

Model: utilities x have a prior around the grades. A judge with the sharpness b orders batches by the Plackett-Luce
model with the scores b x. The judge picks the best item, then the best of the rest, and so on. Each pick (a stage)
follows a softmax of the scores of the remaining items (Luce 1959, Plackett 1975). The likelihood also depends on the
positions at which passages were shown, since a judge may have a position bias. Orders given beforehand have their own
sharpness.

Fit: with Gaussian priors, the log-posterior is strictly concave, so Newton's method finds its only maximum from any
start. The curvature at the maximum gives the joint covariance (Laplace approximation). Nothing is updated in place: a
fit depends only on the answers, the prior, b and the starting point.

Mixture priors: the prior of each utility is a mixture of normals, but the likelihood of orders needs normal priors.
Each mixture is replaced by the normal factor that gives the same mean and variance of the marginal posterior
(expectation propagation: Minka 2001). The factors depend on the resulting posterior. If the fit starts from the last
posterior, one refinement per answer is enough. A posterior stores the factors that it was fitted with.

Grades: a utility is normal around the grade that its passage deserves, which is the given grade or a neighbouring one
(for distributions of grades, see `grade_prior`). How likely the neighbours are depends on the pool: if most passages
deserve a 1, many of the passages graded 2 deserve a 1, too. The shares of the deserved grades are estimated from the
given grades by deconvolution (expectation maximisation: Richardson 1972, Lucy 1974).

BLAS runs on one thread, because the matrices have only a few kilobytes. Starting a pool of threads costs more than the
computation, up to a hundred times more on a busy machine. The limit applies only while a function decorated with
`one_blas_thread` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.ranking.base import TYPICAL_LENGTH
from raggs.ranking.rounds import GRADE_LEVELS, HIGHEST_GRADE, LOWEST_GRADE

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

LikelihoodTerms = tuple[float, Floats, Floats]
Sums3 = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class KnownPicks:
    """Picks implied by orders of groups: each passage is preferred to all passages of lower groups.

    If every group has one passage, these picks are the stages of Plackett-Luce. The order within a group is unknown.

    Attributes:
        sets: for each pick, the picked passage, followed by the passages that it was preferred to.
        sharpness: for each pick, the sharpness of the source of the order.
    """

    sets: tuple[Ints, ...] = ()
    sharpness: tuple[float, ...] = ()

    def and_groups(self, groups: Sequence[Sequence[int]], sharpness: float) -> KnownPicks:
        """Return these picks together with the picks of another order, given as groups, best group first."""
        below = [[item for group in groups[place + 1 :] for item in group] for place in range(len(groups))]
        sets = [np.array([item, *rest]) for group, rest in zip(groups, below, strict=True) for item in group if rest]
        return KnownPicks((*self.sets, *sets), (*self.sharpness, *[sharpness] * len(sets)))

    def add_to(self, utilities: Floats, sums: LikelihoodTerms) -> LikelihoodTerms:
        """Return `sums` with the terms of these picks added: log-likelihood, its gradient and its negative Hessian
        by the utilities.
        """
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
        orders: shape (calls, m): items of each list, best first.
        places: shape (calls, m): for each item in `orders`, the position at which it was shown, counted from 0.
        weights: shape (calls,): weight of each order's log-likelihood; 1 for a full observation.
        best: shape (calls, m): probability that each item in `orders` is picked as the best of its list. If given, a
            list is evidence on this one pick only. If None, it is evidence on the whole order.
    """

    orders: Ints
    places: Ints
    weights: Floats
    best: Floats | None = None

    @property
    def length(self) -> int:
        """Number of passages in a list."""
        return int(self.orders.shape[1])


@dataclass(frozen=True)
class JudgeModel:
    """Model of a judge that orders lists, with the priors of the model's parameters.

    Attributes:
        favour: shape (knots,): position bias: log-odds that each position adds, from first to last; interpolated for
            lists of another length.
        left: share of the sharpness that remains at each pick, 1 at the first pick. The last share also applies to all
            later picks. If empty, the sharpness does not decrease.
        strain: how the sharpness decreases with the length m of the list, >= 0: the factor is (5 / m)^strain.
        sharpness, doubt: log-normal prior of the sharpness: median, and standard deviation of the logarithm.
        usual, favour_doubt: normal prior of the position bias: mean of shape (knots,), or None for a mean of 0, and
            standard deviation.
    """

    favour: Floats
    left: tuple[float, ...] = ()
    strain: float = 0.0
    sharpness: float = 3.0
    doubt: float = 0.8
    usual: Floats | None = None
    favour_doubt: float = 2.0  # so wide that it only keeps the bias finite if one position always wins

    def care(self, length: int) -> Floats | None:
        """Return the remaining share of the sharpness at each pick of a list, shape (m,); None if it is constant."""
        if not self.left:
            return None
        return np.array([*self.left[:length], *[self.left[-1]] * (length - len(self.left))])

    def attention(self, length: int) -> float:
        """Return the sharpness at the first pick of a list, relative to the sharpness for lists of five."""
        return float((TYPICAL_LENGTH / length) ** self.strain) if self.strain else 1.0

    def knots(self, length: int) -> Floats | None:
        """Return the matrix that maps `favour` to the positions of a list, shape (m, knots); None if the list has as
        many positions as knots.
        """
        count = self.favour.size
        if length == count:
            return None
        at = np.linspace(0, count - 1, length)
        return np.asarray(np.maximum(1.0 - np.abs(at[:, None] - np.arange(count)), 0.0))


@dataclass(frozen=True)
class JudgedOrders:
    """All answers, with the model of the judge.

    Attributes:
        lists: the answers, by length of the list.
        manner: model of the judge.
        known: picks of orders given beforehand; None if there are none.
    """

    lists: tuple[JudgedLists, ...]
    manner: JudgeModel
    known: KnownPicks | None = None

    def scores(self, lists: JudgedLists, utilities: Floats, sharpness: float) -> Floats:
        """Return the judge's scores, shape (calls, m), in judged order: sharpness times utility plus position bias."""
        knots, favour = self.manner.knots(lists.length), self.manner.favour
        places = favour if knots is None else knots @ favour
        return np.asarray(
            sharpness * self.manner.attention(lists.length) * utilities[lists.orders] + places[lists.places]
        )


# larger differences of scores would not change the result, but their squared exponentials would overflow
MAX_SCORE_GAP = 300.0
MAX_EXPONENT = 500.0  # the same limit for expressions with a single exponential


def by_item(utilities: Floats, judged: JudgedOrders, sharpness: float) -> LikelihoodTerms:
    """Return the log-likelihood of the answers, its gradient and its negative Hessian by the utilities.

    Returns:
        The log-likelihood. Its gradient, shape (size,): b (1 - p) for the winner of a stage and -b p for the others,
        summed over stages. Its negative Hessian, shape (size, size), positive semidefinite: the sum of b^2 (diag p - p
        p^T) over stages (Plackett 1975; Hunter 2004).
    """
    size = utilities.size
    loglik, slope, bend = 0.0, np.zeros(size), np.zeros((size, size))
    for lists in judged.lists:
        sharp = sharpness * judged.manner.attention(lists.length)
        own, gradient, curvature = _likelihood_terms(judged, lists, utilities, sharpness, lists.orders, size)
        loglik, slope, bend = loglik + own, slope + sharp * gradient, bend + sharp**2 * curvature
    return (loglik, slope, bend) if judged.known is None else judged.known.add_to(utilities, (loglik, slope, bend))


def by_place(utilities: Floats, judged: JudgedOrders, sharpness: float) -> LikelihoodTerms:
    """Return the log-likelihood, its gradient and its negative Hessian by the position bias.

    Returns:
        The log-likelihood, its gradient of shape (knots,), and its negative Hessian of shape (knots, knots).
    """
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
    if lists.best is None:
        loglik, slopes, blocks = stage_sums(scores, judged.manner.care(lists.length))
    else:
        loglik, slopes, blocks = pick_sums(scores, lists.best)
    gradient = np.bincount(cells.ravel(), (weights[:, None] * slopes).ravel(), minlength=size)
    pairs = cells[:, :, None] * size + cells[:, None, :]
    blocks *= weights[:, None, None]
    curvature = np.bincount(pairs.ravel(), blocks.ravel(), minlength=size * size).reshape(size, size)
    return float(weights @ loglik), np.asarray(gradient), np.asarray(curvature)


def stage_sums(scores: Floats, left: Floats | None = None) -> Sums3:
    """Return the log-likelihoods of many orders with their derivatives, summed over the stages of each order.

    With e_i = exp(s_i) and the tail sums T_k = e_k + ... + e_m, item i >= k is picked at stage k with p_k(i) = e_i /
    T_k.
    The sums over stages have closed forms: sum p_k(i) = e_i sum 1 / T_k over k <= i, and sum p_k(i) p_k(j) = e_i e_j
    sum 1 / T_k^2 over k <= min(i, j). With `left`, there are no closed forms, and each stage is computed separately.

    Args:
        scores: shape (c, m), each row in judged order.
        left: shape (m,): remaining share of the sharpness at each stage, by which scores are multiplied. None if the
            sharpness does not decrease.

    Returns:
        The log-likelihoods, shape (c,). Their gradients by the scores, which are 1 - sum p, shape (c, m). The sums of
        diag p - p p^T, shape (c, m, m). With `left`, 1 and p of stage k are multiplied by its share in the gradients,
        and diag p - p p^T by the square of its share.
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


def pick_sums(scores: Floats, best: Floats) -> Sums3:
    """Return the expected log-likelihoods of one pick from each of many lists, with their derivatives.

    Args:
        scores: shape (c, m).
        best: shape (c, m): probability that each item is picked; each row sums to 1.

    Returns:
        sum best log p with p = softmax(s), shape (c,). Its gradient by the scores, best - p, shape (c, m). Its negative
        Hessian, diag p - p p^T, shape (c, m, m).
    """
    highest = scores.max(axis=1, keepdims=True)
    strengths = np.exp(scores - highest)
    totals = strengths.sum(axis=1, keepdims=True)
    chances = strengths / totals
    blocks = -chances[:, :, None] * chances[:, None, :]
    diagonal = np.arange(scores.shape[1])
    blocks[:, diagonal, diagonal] += chances
    return (best * (scores - highest - np.log(totals))).sum(axis=1), best - chances, blocks


def _tired_sums(scores: Floats, left: Floats) -> Sums3:
    """Return the result of `stage_sums`, computed stage by stage, for a judge whose sharpness decreases from stage
    to stage.
    """
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
    """Return p[k, j], the probability that item j of one order is picked at stage k; exact for finite scores of any
    size.

    p[k, j] = exp(s_j) / T_k for j >= k, else 0, for scores s in judged order. Shape (m, m); each row sums to 1. For one
    order, the gradient of the log-likelihood by the scores is 1 - sum p, and the information is sum p (1 - p).
    """
    inside = np.triu(np.ones((scores.size, scores.size), dtype=bool))
    stages = np.where(inside, scores, -np.inf)
    weights = np.exp(stages - stages.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def upset_chances(gaps: Floats) -> Floats:
    """Return, for each gap between the scores of two passages, the probability that the second one is ranked first. The
    gap is the score of the first passage minus that of the second.
    """
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(gaps, -MAX_EXPONENT, MAX_EXPONENT))))


P = ParamSpec("P")
T = TypeVar("T")


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, with BLAS limited to one thread while it runs."""

    @wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return held


@cache
def _controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


SHARPNESS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 8.0)
NEWTON_STEPS = 40  # maximum number of Newton steps; after one more order, three steps are enough
# largest change of a utility per step, in grades: far from the maximum the quadratic approximation overshoots
CLIP = 0.7
MIN_STEP_GRADES = 5e-3  # after a step of this size, in grades, the remaining error is about b times its square


@dataclass(frozen=True)
class Prior:
    """Independent Gaussians: `mean` and `precision` (1 / variance) of each utility, in grades."""

    mean: Floats
    precision: Floats


@dataclass(frozen=True)
class Posterior:
    """A Laplace approximation: utilities ~ N(mean, covariance).

    Attributes:
        mean: maximum a posteriori, in grades.
        covariance: inverse of the curvature at the last point before the mean, shape (size, size). After convergence,
            this point is within `MIN_STEP_GRADES` of the mean.
        sharpness: the sharpness b that the fit assumed.
        evidence: logarithm of the evidence for b times the prior of b, up to a constant. It is comparable between fits
            of the same orders.
        prior: the prior of the fit.
    """

    mean: Floats
    covariance: Floats
    sharpness: float
    evidence: float
    prior: Prior


def fit(prior: Prior, judged: JudgedOrders, sharpness: float, start: Floats, steps: int = NEWTON_STEPS) -> Posterior:
    """Return the posterior for the given sharpness, found by at most `steps` damped Newton steps from `start`."""
    x = start
    for _ in range(steps):
        loglik, slope, curvature = by_item(x, judged, sharpness)
        np.fill_diagonal(curvature, curvature.diagonal() + prior.precision)
        step = np.linalg.solve(curvature, slope - prior.precision * (x - prior.mean))
        largest = float(np.abs(step).max())
        # the step is scaled as a whole, so that its direction still increases the log-posterior
        x = x + step * min(1.0, CLIP / max(largest, MIN_STEP_GRADES))
        if largest < MIN_STEP_GRADES:
            break
    inverse = np.linalg.inv(curvature)
    covariance = (inverse + inverse.T) / 2
    misfit = float((prior.precision * (x - prior.mean) ** 2).sum()) / 2
    surprise = (np.log(sharpness / judged.manner.sharpness) / judged.manner.doubt) ** 2 / 2
    volume = float(np.linalg.slogdet(curvature).logabsdet - np.log(prior.precision).sum()) / 2
    evidence = loglik - misfit - volume - surprise
    return Posterior(x, covariance, sharpness, evidence, prior)


MIN_FACTOR_PRECISION = 0.3  # minimum precision of a factor; between two modes, the exact precision would be negative
ROUGH_NEWTON_STEPS = 1  # Newton steps before the factors are refined
SETTLE = 3  # number of refinements after a change of the sharpness
# minimum precision that the answers give to an item; without a minimum, it would be 0 for an item that was never shown
MIN_ANSWER_PRECISION = 1e-4


@dataclass(frozen=True)
class Mixture:
    """Mixtures of normals: `centres` and `shares` have shape (size, k), each row of shares sums to 1.

    Attributes:
        variance: shape (size,): variance that all normals of an item share.
    """

    centres: Floats
    shares: Floats
    variance: Floats

    def normal(self) -> Prior:
        """Return the normal priors with the same means and variances as the mixtures."""
        mean = (self.shares * self.centres).sum(axis=1)
        between = (self.shares * (self.centres - mean[:, None]) ** 2).sum(axis=1)
        return Prior(mean, 1.0 / (between + self.variance))

    def posterior(self, sharpness: float) -> Posterior:
        """Return the posterior before any answer."""
        prior = self.normal()
        return Posterior(prior.mean, np.diag(1.0 / prior.precision), sharpness, 0.0, prior)

    def times(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log-mass, mean and variance of the product of the mixture and N(mean, variance), for each item."""
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
    """Return the posterior for the given sharpness, starting from the factors and the mean of `start`. The other
    arguments are those of `fit`.
    """
    rough = fit(start.prior, judged, sharpness, start.mean, steps=ROUGH_NEWTON_STEPS)
    factors, _ = refine(mixture, rough)
    return fit(factors, judged, sharpness, rough.mean)


def refine(mixture: Mixture, posterior: Posterior) -> tuple[Prior, float]:
    """Return better factors, and the logarithm of the ratio of two evidences: with the mixtures, and with the
    current factors.
    """
    prior, variance = posterior.prior, posterior.covariance.diagonal()
    loose = np.maximum(1.0 / variance - prior.precision, MIN_ANSWER_PRECISION)
    # information of the answers without the prior
    rest = (posterior.mean / variance - prior.mean * prior.precision) / loose
    mass, mean, spread = mixture.times(rest, 1.0 / loose)
    precision = np.maximum(1.0 / spread - loose, MIN_FACTOR_PRECISION)
    factors = Prior((mean * (loose + precision) - rest * loose) / precision, precision)
    return factors, float((mass - _log_normal(prior.mean - rest, 1.0 / loose + 1.0 / prior.precision)).sum())


def fit_sharpness(mixture: Mixture, judged: JudgedOrders, current: Posterior) -> Posterior:
    """Return the fit with the best evidence among the current sharpness and its neighbours on the grid."""
    place = SHARPNESS.index(current.sharpness)
    around = [SHARPNESS[near] for near in (place - 1, place + 1) if 0 <= near < len(SHARPNESS)]
    fits = [current, *(fit_mixture(mixture, judged, sharpness, current) for sharpness in around)]
    best = max(fits, key=lambda candidate: candidate.evidence + refine(mixture, candidate)[1])
    # after a change of the sharpness, the factors must be refined again
    for _ in range(0 if best is current else SETTLE):
        best = fit_mixture(mixture, judged, best.sharpness, best)
    return best


def _log_normal(distance: Floats, variance: Floats) -> Floats:
    """Return the log-density of N(0, variance) at `distance`, up to a constant."""
    return np.asarray(-(distance**2) / (2 * variance) - np.log(variance) / 2)


SLIP_OFFSETS = np.arange(-1.0, 2.0)
DECONVOLUTION_STEPS = 20  # number of steps of the deconvolution, which at full convergence would amplify noise
LEVEL_PSEUDOCOUNT = 0.5  # number of passages added to the observed count of each level
SLIPPED_SHARE = 0.1  # share of a distribution that is treated like a grade that may have slipped
UNGRADED = 2.5  # standard deviation of the prior of an ungraded passage, as a multiple of `sigma`


def grade_prior(
    grades: Floats, graded: Flags, sigma: float, slip: float, distributions: Floats | None = None
) -> Mixture:
    """Return the prior of the utilities: normals around the grade and its neighbours. An ungraded passage has one wider
    normal around its start score. A passage with a distribution has a normal around each of the five grades. Their
    shares are its probabilities, of which a tenth may have slipped like a grade.

    Args:
        grades: shape (size,), 1 to 5; for an ungraded passage, its start score.
        graded: shape (size,): whether the judge gave the grade or the distribution.
        sigma: standard deviation of the utilities around the deserved grade, in grades.
        slip: probability that a grade differs by one from the deserved grade, 0 to 0.9.
        distributions: shape (size, 5): probabilities of the deserved grade; NaN for a passage without a distribution.
    """
    if distributions is not None:
        return _distribution_prior(grades, graded, sigma, slip, distributions)
    centres, chances = grades[:, None] + SLIP_OFFSETS, slip_chances(slip)
    likely = np.where((centres >= LOWEST_GRADE) & (centres <= HIGHEST_GRADE), chances, 0.0)
    lowest, highest = (grades <= LOWEST_GRADE)[:, None], (grades >= HIGHEST_GRADE)[:, None]
    # a slip cannot lead outside the scale
    likely = np.where(lowest & (likely > 0), chances[::-1].cumsum()[::-1], likely)
    likely = np.where(highest & (likely > 0), chances.cumsum(), likely)
    shares = likely * np.interp(centres, GRADE_LEVELS, deserved_shares(grades[graded], slip))
    shares[~graded] = SLIP_OFFSETS == 0
    return Mixture(centres, shares / shares.sum(axis=1, keepdims=True), np.where(graded, sigma, UNGRADED * sigma) ** 2)


def _distribution_prior(grades: Floats, graded: Flags, sigma: float, slip: float, distributions: Floats) -> Mixture:
    """Return the result of `grade_prior` for a pool in which some passages have distributions."""
    known = ~np.isnan(distributions[:, 0])
    centres = np.tile(GRADE_LEVELS, (grades.size, 1))
    shares = np.zeros_like(centres)
    slipped = distributions[known] @ slip_matrix(slip)
    shares[known] = (1.0 - SLIPPED_SHARE) * distributions[known] + SLIPPED_SHARE * slipped
    variance = np.where(graded, sigma, UNGRADED * sigma) ** 2
    if not known.all():
        others = grade_prior(grades[~known], graded[~known], sigma, slip)
        components = others.centres.shape[1]
        centres[~known] = grades[~known, None]
        centres[~known, :components] = others.centres
        shares[~known, :components] = others.shares
    return Mixture(centres, shares, variance)


def slip_chances(slip: float) -> Floats:
    """Return the probability of each difference in `SLIP_OFFSETS` between given and deserved grade."""
    return np.array([slip / 2, 1 - slip, slip / 2])


def slip_matrix(slip: float) -> Floats:
    """Return M[d, g], the probability that a passage that deserves the grade d + 1 is given the grade g + 1."""
    last = GRADE_LEVELS.size - 1
    given = np.zeros((GRADE_LEVELS.size, GRADE_LEVELS.size))
    for deserved in range(GRADE_LEVELS.size):
        for off, chance in zip(SLIP_OFFSETS.astype(int), slip_chances(slip), strict=True):
            given[deserved, min(max(deserved + off, 0), last)] += chance
    return given


def deserved_shares(grades: Floats, slip: float) -> Floats:
    """Return the share of each deserved grade in the pool, shape (5,); a grade between two levels counts partly for
    each.
    """
    counts = np.maximum(1.0 - np.abs(grades[:, None] - GRADE_LEVELS), 0.0).sum(axis=0)
    given = slip_matrix(slip)
    shares = (counts + LEVEL_PSEUDOCOUNT) / (counts + LEVEL_PSEUDOCOUNT).sum()
    for _ in range(DECONVOLUTION_STEPS):
        joint = shares[:, None] * given
        shares = (joint / joint.sum(axis=0)) @ counts + LEVEL_PSEUDOCOUNT
        shares = shares / shares.sum()
    return np.asarray(shares)
