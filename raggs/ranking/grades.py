"""What a grade tells of a utility: most grades are deserved, some are one off.

A utility is normal around the grade that its passage deserves, and that is the given grade or a neighbour of it. How
likely the neighbours are depends on the pool: where most passages deserve a 1, many a given 2 is one of them. The
shares of the deserved grades are estimated from the given ones, which are those shares blurred by the slips
(deconvolution by expectation-maximisation: Richardson 1972, Lucy 1974).
"""

from __future__ import annotations

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.ranking.mixture import Mixture
from raggs.ranking.rounds import HIGHEST, LOWEST

LEVELS = np.arange(LOWEST, HIGHEST + 1)
OFF = np.arange(-1.0, 2.0)
STEPS = 20  # of the deconvolution: fully converged, it would make peaks of chance
SEEN = 0.5  # passages of each level that are taken for seen before any is
UNGRADED = 2.5  # the prior of an ungraded passage is this many times as wide as one around a deserved grade


def grade_prior(grades: Floats, graded: Flags, sigma: float, slip: float) -> Mixture:
    """The prior of the utilities: normals around the grade and its neighbours.

    Args:
        grades: shape (size,), 1 to 5; for ungraded passages where they start.
        graded: shape (size,): which were given by the judge.
        sigma: spread of the utilities around the deserved grade, in grades.
        slip: chance that a given grade is one off, 0 to 0.9.
    """
    centres, chances = grades[:, None] + OFF, slip_chances(slip)
    likely = np.where((centres >= LOWEST) & (centres <= HIGHEST), chances, 0.0)
    lowest, highest = (grades <= LOWEST)[:, None], (grades >= HIGHEST)[:, None]
    likely = np.where(lowest & (likely > 0), chances[::-1].cumsum()[::-1], likely)  # no slip leads off the scale
    likely = np.where(highest & (likely > 0), chances.cumsum(), likely)
    shares = likely * np.interp(centres, LEVELS, deserved_shares(grades[graded], slip))
    shares[~graded] = OFF == 0
    return Mixture(centres, shares / shares.sum(axis=1, keepdims=True), np.where(graded, sigma, UNGRADED * sigma) ** 2)


def slip_chances(slip: float) -> Floats:
    """The chance of each slip in `OFF`."""
    return np.array([slip / 2, 1 - slip, slip / 2])


def deserved_shares(grades: Floats, slip: float) -> Floats:
    """How common each deserved grade is in the pool, shape (5,); a grade between two levels counts for both in part."""
    counts = np.maximum(1.0 - np.abs(grades[:, None] - LEVELS), 0.0).sum(axis=0)
    last = LEVELS.size - 1
    given = np.zeros((LEVELS.size, LEVELS.size))  # given[d, g]: chance that a passage deserving d is given g
    for deserved in range(LEVELS.size):
        for off, chance in zip(OFF.astype(int), slip_chances(slip), strict=True):
            given[deserved, min(max(deserved + off, 0), last)] += chance
    shares = (counts + SEEN) / (counts + SEEN).sum()
    for _ in range(STEPS):
        joint = shares[:, None] * given
        shares = (joint / joint.sum(axis=0)) @ counts + SEEN
        shares = shares / shares.sum()
    return np.asarray(shares)
