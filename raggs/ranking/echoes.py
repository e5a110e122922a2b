"""Repeats that are no second opinion: a judge that errs the same way each time it meets the same pair.

The correlation `echo` of a judge's errors on two showings of a pair makes n showings worth n / (1 + (n - 1) echo)
independent ones, and never more than 1 / echo (Kish's design effect). Orders weigh as much as their pairs on
average. The correlation is estimated from the pairs that were shown more than once: by how much their wins depart
from what the posterior expects, beyond what independent errors and the fit itself explain (method of moments).
What chance could explain as well is taken for chance (shrinkage: James and Stein 1961), so that a judge of independent
errors pays next to nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from raggs.ranking.posterior import Posterior

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HIGHEST_ECHO = 0.9
FOLLOWED = 2.75  # the fit follows part of the errors that it is compared with: the bare moments find a third to a half
TOLD = 1.0  # an excess within so many standard errors of 0 is no echo; larger ones shrink towards 0 accordingly
DOUBT = 3.0  # pulls the estimate to 0 where few pairs were repeated, in units of expected pair variance


def weights(shown: Ints, orders: Ints, echo: float) -> Floats:
    """The weight of each order: the mean over its pairs of 1 / (1 + (n - 1) echo), n >= 1 the pair's showings."""
    if echo == 0:
        return np.ones(len(orders))
    first, second = np.triu_indices(orders.shape[1], k=1)
    counts = shown[orders[:, first], orders[:, second]]
    return np.asarray((1.0 / (1.0 + (counts - 1) * echo)).mean(axis=1))


def worth(shown: Ints, echo: float) -> Floats:
    """What one more showing of each pair adds, in independent showings; 0 on the diagonal."""
    gain = (shown + 1) / (1.0 + shown * echo) - shown / (1.0 + np.maximum(shown - 1, 0) * echo)
    np.fill_diagonal(gain, 0.0)
    return np.asarray(gain)


def estimate(wins: Ints, posterior: Posterior) -> float:
    """The echo, 0 to 0.9, from wins[w, l] = judged batches that placed w above l; near 0 without repeated pairs."""
    shown = wins + wins.T
    first, second = np.nonzero(np.triu(shown, k=1) > 1)
    n = shown[first, second].astype(np.float64)
    mean, covariance = posterior.mean, posterior.covariance
    chance = 1.0 / (1.0 + np.exp(-np.clip(posterior.sharpness * (mean[first] - mean[second]), -500, 500)))
    variance = n * chance * (1.0 - chance)
    spread = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
    fitted = (variance * posterior.sharpness) ** 2 * spread
    excess = float(((wins[first, second] - n * chance) ** 2 - variance + fitted).sum())
    chancy = float((2 * variance**2 + variance * (1 - 6 * chance * (1 - chance))).sum())  # of binomial squares
    told = max(0.0, 1.0 - TOLD**2 * chancy / excess**2) if excess > 0 else 0.0
    most = float(((n - 1) * variance).sum())
    found = told * FOLLOWED * excess / (most + DOUBT)
    return min(found, HIGHEST_ECHO) if found > 0 else 0.0  # never -0.0, which would be written so
