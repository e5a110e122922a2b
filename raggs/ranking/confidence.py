"""How sure a ranking is, from scores with independent standard errors.

Engines that know the covariance of their scores should use it instead: independence overstates the spread of
differences between passages that were shown together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.light import extension

Threshold = Callable[[Floats, Floats, int], float]
Gaussian = tuple[Floats, Floats]

Z95 = 1.959964
USELESS = 1.5  # grades: a passage of a lower utility deserves a 1
HARDLY = -0.5244  # standard normal quantile of 0.3
TINY = 1e-12  # least variance of a difference
REPLICATES = 500  # draws of what another ranking comes to
STEPS = 80  # bisections: the bracket shrinks below any float's resolution
GRID = 96  # points of the threshold's grid; between them the count is interpolated
STRIDE = 8  # of them that are passed over at once on the way to the two that matter


def normal_cdf(values: Floats) -> Floats:
    """The standard normal distribution function, elementwise."""
    return np.asarray(_normal().ndtr(values))


@cache
def _normal() -> ModuleType:
    return extension(
        "scipy/special/_special_ufuncs", "ndtr", "scipy.special"
    )  # late: naming an engine needs none of it


def above(scores: Floats, sigma: Floats) -> Floats:
    """P[i, j]: the probability that i truly stands above j; 0.5 on the diagonal. Needs sigma > 0."""
    spread = np.sqrt(sigma[:, None] ** 2 + sigma[None, :] ** 2)
    return normal_cdf((scores[:, None] - scores[None, :]) / spread)


def exact_threshold(scores: Floats, sigma: Floats, top: int) -> float:
    """The score t above which `top` of more items are expected to stand, by bisection."""
    low, high = float((scores - 40 * sigma).min()), float((scores + 40 * sigma).max())
    for _ in range(STEPS):
        middle = (low + high) / 2
        if normal_cdf((scores - middle) / sigma).sum() > top:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def near_threshold(scores: Floats, sigma: Floats, top: int) -> float:
    """The same but for the grid, at a seventh of the time: for what is asked before each batch."""
    grid = np.linspace(float((scores - 3 * sigma).min()), float((scores + 3 * sigma).max()), GRID)
    coarse = int(np.count_nonzero(_counts(scores, sigma, grid[STRIDE::STRIDE]) >= top)) * STRIDE
    near = grid[coarse : coarse + STRIDE + 1]  # the rest of the grid would change nothing
    return float(np.interp(-top, -_counts(scores, sigma, near), near))


def _counts(scores: Floats, sigma: Floats, thresholds: Floats) -> Floats:
    """How many items are expected to stand above each threshold."""
    return np.asarray(normal_cdf((scores[None, :] - thresholds[:, None]) / sigma[None, :]).sum(axis=1))


def membership(scores: Floats, sigma: Floats, top: int, threshold: Threshold = exact_threshold) -> Floats:
    """q[i] = Phi((s_i - t) / sigma_i), with the threshold t such that the q sum to `top`; all 1 in small pools."""
    if scores.size <= top:
        return np.ones(scores.size)
    return normal_cdf((scores - threshold(scores, sigma, top)) / sigma)


def rank_interval(scores: Floats, sigma: Floats) -> tuple[Ints, Ints]:
    """Best and worst plausible rank of each item, from 1: its expected rank if its score were 1.96 sigma off.

    The others keep their uncertainty. Scores come in ranked order, and the interval always holds the actual rank.
    """
    positions = np.arange(1, scores.size + 1)
    best = np.floor(_expected_rank(scores + Z95 * sigma, scores, sigma)).astype(np.int64)
    worst = np.ceil(_expected_rank(scores - Z95 * sigma, scores, sigma)).astype(np.int64)
    return np.minimum(best, positions), np.maximum(worst, positions)


def _expected_rank(supposed: Floats, scores: Floats, sigma: Floats) -> Floats:
    beaten_by = normal_cdf((scores[None, :] - supposed[:, None]) / sigma[None, :])
    np.fill_diagonal(beaten_by, 0.0)
    return np.asarray(1.0 + beaten_by.sum(axis=1))


def expected_inversions(probability: Floats, top: int) -> float:
    """Expected number of pairs inside the first `top` that stand the wrong way, for P = `above` in ranked order."""
    head = probability[:top, :top]
    return float(np.tril(head, k=-1).sum())


def gains(utilities: Floats) -> Floats:
    """G(x) = max(0, x - 1.5): a passage gains nothing while it is nearer to grade 1 than to grade 2."""
    return np.asarray(np.maximum(utilities - USELESS, 0.0))


def gain_loss(utilities: Floats, top: int) -> float:
    """The gain-weighted loss of an order whose utilities are known, given in ranked order.

    L = sum of max(0, G(x_l) - G(x_k)) over all k < l with k inside the first `top`: each inverted pair weighs as much
    as its passages differ in gain.
    """
    gained = gains(utilities)
    inverted = np.triu(np.maximum(gained[None, :] - gained[:, None], 0.0), k=1)
    return float(inverted[:top].sum())


def pair_losses(mean: Floats, covariance: Floats) -> Floats:
    """E[i, j]: the gain that is expected to be lost where i stands above j, for utilities ~ N(mean, covariance).

    E max(0, x_j - x_i) = sqrt(v) psi(z), with z = (x_i - x_j) / sqrt(v), v the variance of the difference and
    psi(z) = phi(z) - z Phi(-z), times the chance that the middle of the two gains anything, since G is flat below.
    """
    own, both = covariance.diagonal(), covariance
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2 * both, TINY))
    z = (mean[:, None] - mean[None, :]) / spread
    return np.asarray(spread * unit_loss(z) * useful_chances(mean, covariance))


def useful_chances(mean: Floats, covariance: Floats) -> Floats:
    """U[i, j]: the chance that the middle of the utilities of i and j lies where gains grow."""
    own = covariance.diagonal()
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] + 2 * covariance, TINY)) / 2
    return normal_cdf(((mean[:, None] + mean[None, :]) / 2 - USELESS) / spread)


def unit_loss(z: Floats) -> Floats:
    """psi(z) = phi(z) - z Phi(-z), the unit normal loss."""
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - z * normal_cdf(-z))


def expected_loss(losses: Floats, top: int) -> float:
    """The gain-weighted loss that is expected of an order, for E = `pair_losses` in ranked order."""
    return float(np.triu(losses, k=1)[:top].sum())


@dataclass(frozen=True)
class Known:
    """What is known of the passages of a pool besides their utilities.

    Attributes:
        keys: shape (size,), all below 0: highest for the passage that stood first before any answer.
        shown: shape (size,): whether an answer says anything of it.
    """

    keys: Floats
    shown: Flags


def order_keys(mean: Floats, deviation: Floats, known: Known) -> Floats:
    """What passages are sorted by, highest first: their utility, but what hardly gains anything by what was known.

    A passage hardly gains if it stands above `USELESS` by a chance of less than 0.3; one of which no answer says
    anything, by a chance of less than a half.

    Args:
        mean: shape (..., size), of the utilities.
        deviation: shape (size,), their standard errors.
    """
    least = USELESS + np.where(known.shown, HARDLY, 0.0) * deviation
    return np.asarray(np.where(mean >= least, mean, known.keys + least.min() - mean.max()))


def agreement(top: Ints, posterior: Gaussian, prior: Gaussian, known: Known, rng: np.random.Generator) -> float:
    """The share of a top that another ranking of the same pool, with as many answers, is expected to have as well.

    With the prior precision T and the information J = C^-1 - T of the answers, the mean that another ranking comes to
    is normal around C (T m0 + J m), with the covariance C J C J C + C J C: the utilities are not known either.

    Args:
        top: the passages in the top, in any order.
        posterior: mean m and covariance C.
        prior: mean m0 and precision (a diagonal).
        known: as `order_keys` has it.
    """
    (mean, covariance), (start, precision) = posterior, prior
    learned = np.eye(mean.size) - covariance * precision  # C J
    centre = covariance @ (precision * start) + learned @ mean
    spread = learned @ covariance @ learned.T + learned @ covariance
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    moves = rng.standard_normal((REPLICATES, mean.size)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    keys = order_keys(centre + moves, np.sqrt(covariance.diagonal()), known)
    others = np.argsort(-keys, axis=1, kind="stable")[:, : top.size]
    return float(np.isin(others, top).mean())


def drawn_ranks(mean: Floats, covariance: Floats, draws: int, rng: np.random.Generator) -> Ints:
    """Ranks, from 1, of each item in `draws` draws of N(mean, covariance). Shape (draws, size)."""
    factor = np.linalg.cholesky(covariance)
    utilities = mean + rng.standard_normal((draws, mean.size)) @ factor.T
    best_first = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty_like(best_first)
    np.put_along_axis(ranks, best_first, np.arange(1, mean.size + 1)[None, :], axis=1)
    return ranks


def rank_bounds(ranks: Ints) -> tuple[Ints, Ints]:
    """The central 95% of drawn ranks, widened where needed to hold the actual one. Items come in ranked order."""
    positions = np.arange(1, ranks.shape[1] + 1)
    line = np.sort(ranks, axis=0)
    cut = int(ranks.shape[0] * 0.025)
    return np.minimum(line[cut], positions), np.maximum(line[-1 - cut], positions)
