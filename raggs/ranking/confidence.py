"""How sure a ranking is, from scores with independent standard errors.

Engines that know the covariance of their scores should use it instead: independence overstates the spread of
differences between passages that were shown together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType

import numpy as np

from raggs.arrays import Floats, Ints
from raggs.light import extension

Threshold = Callable[[Floats, Floats, int], float]

Z95 = 1.959964
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
