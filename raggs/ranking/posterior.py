"""The posterior of the utilities under the Plackett-Luce model, from all judged orders at once.

Utilities x have a Gaussian prior around the grades; a judge of sharpness b orders a batch by Plackett-Luce with
scores b x. The log-posterior is strictly concave, so Newton's method finds its only maximum from anywhere; the
curvature there gives the joint covariance (Laplace).

Nothing is updated in place: the fit is a function of the answers, the prior, b and the starting point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.ranking.likelihood import Judged, by_item
from raggs.ranking.threads import lapack

SHARPNESS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 8.0)
STEPS = 40  # Newton steps at most; three are enough after one more order
CLIP = 0.7  # largest move of a utility in one step, in grades: far from the maximum the quadratic overshoots
SMALL = 5e-3  # a step this small, in grades, leaves an error of b times its square


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


def fit(prior: Prior, judged: Judged, sharpness: float, start: Floats, steps: int = STEPS) -> Posterior:
    """The posterior for one sharpness, by at most so many damped Newton steps from `start`."""
    blas, x = lapack(), start
    for _ in range(steps):
        loglik, slope, curvature = by_item(x, judged, sharpness)
        np.fill_diagonal(curvature, curvature.diagonal() + prior.precision)
        factor, _ = blas.dpotrf(curvature, lower=1)
        step, _ = blas.dpotrs(factor, slope - prior.precision * (x - prior.mean), lower=1)
        largest = float(np.abs(step).max())
        x = x + step * min(1.0, CLIP / max(largest, SMALL))  # shortened as a whole, it still leads uphill
        if largest < SMALL:
            break
    inverse, _ = blas.dpotri(factor, lower=1)  # the lower triangle; above it, zeros
    covariance = inverse + inverse.T
    np.fill_diagonal(covariance, inverse.diagonal())
    misfit = float((prior.precision * (x - prior.mean) ** 2).sum()) / 2
    surprise = (np.log(sharpness / judged.manner.sharpness) / judged.manner.doubt) ** 2 / 2
    volume = float(np.log(factor.diagonal()).sum() - np.log(prior.precision).sum() / 2)
    evidence = loglik - misfit - volume - surprise
    return Posterior(x, covariance, sharpness, evidence, prior)
