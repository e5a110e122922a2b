"""The posterior where a prior is a mixture of normals, one mixture for each utility.

The likelihood of judged orders wants normal priors. Each mixture is stood in for by the normal factor that gives the
marginal posterior the mean and the variance that the mixture would give it (expectation propagation: Minka 2001).
The factors depend on the posterior that they lead to; warm-started, one refinement after each answer is enough.

Functions of their arguments alone: the factors travel with the posterior that was fitted with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.ranking.likelihood import Judged
from raggs.ranking.posterior import SHARPNESS, Posterior, Prior, fit

FLATTEST = 0.3  # least precision of a factor: between two modes the exact one would be negative
ROUGH = 1  # Newton steps before the factors are refined
SETTLE = 3  # refinements after the sharpness has changed
LOOSEST = 1e-4  # least precision of what the answers say of an item; an item never shown has none


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


def fit_mixture(mixture: Mixture, judged: Judged, sharpness: float, start: Posterior) -> Posterior:
    """The posterior for one sharpness, from the factors and the mean of `start`; arguments as `posterior.fit`."""
    rough = fit(start.prior, judged, sharpness, start.mean, steps=ROUGH)
    factors, _ = refine(mixture, rough)
    return fit(factors, judged, sharpness, rough.mean)


def refine(mixture: Mixture, posterior: Posterior) -> tuple[Prior, float]:
    """Better factors, and what the mixtures' own evidence adds to that of the factors (a logarithm)."""
    prior, variance = posterior.prior, posterior.covariance.diagonal()
    loose = np.maximum(1.0 / variance - prior.precision, LOOSEST)
    rest = (posterior.mean / variance - prior.mean * prior.precision) / loose  # what the answers alone say
    mass, mean, spread = mixture.times(rest, 1.0 / loose)
    precision = np.maximum(1.0 / spread - loose, FLATTEST)
    factors = Prior((mean * (loose + precision) - rest * loose) / precision, precision)
    return factors, float((mass - _log_normal(prior.mean - rest, 1.0 / loose + 1.0 / prior.precision)).sum())


def sharpen(mixture: Mixture, judged: Judged, current: Posterior) -> Posterior:
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
