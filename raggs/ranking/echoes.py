"""Repeats that are no second opinion: a judge that errs the same way each time it meets the same pair.

The correlation `echo` of a judge's errors on two showings of a pair makes n showings worth n / (1 + (n - 1) echo)
independent ones, and never more than 1 / echo (Kish's design effect). Orders weigh as much as their pairs on
average. The correlation is estimated from the pairs that were shown more than once: by how much their wins depart
from what the posterior expects, beyond what independent errors and the fit itself explain (method of moments).
What chance could explain as well is taken for chance (shrinkage: James and Stein 1961), so that a judge of independent
errors pays next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.ranking.base import TYPICAL_LENGTH
from raggs.ranking.likelihood import Judged, JudgedLists, upset_chances
from raggs.ranking.posterior import Posterior

HIGHEST_ECHO = 0.9
FOLLOWED = 2.75  # the fit follows part of the errors that it is compared with: the bare moments find a third to a half
TOLD = 1.0  # an excess within so many standard errors of 0 is no echo; larger ones shrink towards 0 accordingly
TOLD_BY_ALL = 2.0  # the same for all pilots together, which every question believes
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


def estimate(judged: Judged, posterior: Posterior) -> float:
    """The echo, 0 to 0.9, of answers that the posterior was fitted to; near 0 without repeated pairs."""
    return _echo(*_moments(judged, posterior), TOLD)


def jointly(fits: Sequence[tuple[Judged, Posterior]]) -> float:
    """What several questions' short lists tell of one judge; in long ones errors that repeat look like utility."""
    moments = [
        _moments(replace(judged, lists=short), posterior)
        for judged, posterior in fits
        if (short := tuple(lists for lists in judged.lists if lists.length <= TYPICAL_LENGTH))
    ]
    excess, chancy, most = (sum(each) for each in zip(*moments, strict=True)) if moments else (0.0, 0.0, 0.0)
    return _echo(excess, chancy, most, TOLD_BY_ALL)


def _echo(excess: float, chancy: float, most: float, surely: float) -> float:
    """Shrunk as an excess within so many standard errors of 0 is none."""
    told = max(0.0, 1.0 - surely**2 * chancy / excess**2) if excess > 0 else 0.0
    found = told * FOLLOWED * excess / (most + DOUBT)
    return min(found, HIGHEST_ECHO) if found > 0 else 0.0  # never -0.0, which would be written so


def _moments(judged: Judged, posterior: Posterior) -> tuple[float, float, float]:
    """Of repeated pairs: what departs beyond chance, its variance were the errors independent, and the most of it."""
    n, surprise, variance, fourth, followed, spread = _repeated_pairs(judged, posterior)
    fitted = (followed * posterior.sharpness) ** 2 * spread
    excess = float((surprise**2 - variance + fitted).sum())
    return excess, float((2 * variance**2 + fourth).sum()), float(((n - 1) * variance).sum())


def _repeated_pairs(judged: Judged, posterior: Posterior) -> tuple[Floats, ...]:
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


def _showings(judged: Judged, lists: JudgedLists, posterior: Posterior) -> tuple[Ints, Ints, Floats, Floats]:
    """Each pair of each list: who won, who lost, the chance of the other way round, and what was left of the care."""
    scores, left = judged.scores(lists, posterior.mean, posterior.sharpness), judged.manner.care(lists.length)
    upper, lower = np.triu_indices(lists.length, k=1)
    picks = np.ones(upper.size) if left is None else left[upper]
    gaps = (scores[:, upper] - scores[:, lower]) * picks
    care = np.tile(picks * judged.manner.attention(lists.length), len(scores))
    return lists.orders[:, upper].ravel(), lists.orders[:, lower].ravel(), upset_chances(gaps.ravel()), care
