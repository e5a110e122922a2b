"""What a judge gives to a place of the list: position bias, estimated and taken out.

Presentations are shuffled, so a judge that favours the first passage of a list spoils no order for good, but its favour
acts as noise. Each batch shows something at every place, so the favour of the places is learned long before the
utilities are, and known favour is noise no more. What chance could explain as well is taken for chance (shrinkage:
James and Stein 1961), so that a fair judge pays next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Floats
from raggs.ranking.likelihood import Judged, by_place
from raggs.ranking.posterior import Posterior

STEPS = 3  # Newton steps a study; the next one goes on from there
STRIDE = 1.0  # largest step, as log-odds
TOLD = 2.0  # a departure, squared, of so many times what chance makes is none; larger ones hardly shrink


def estimate(judged: Judged, posterior: Posterior) -> Floats:
    """The favour of each place as log-odds, shape (knots,), summing to 0, at the posterior's utilities."""
    return jointly([(judged, posterior)])[0]


def jointly(fits: Sequence[tuple[Judged, Posterior]]) -> tuple[Floats, float]:
    """The favour that several questions' answers tell of one judge, and its doubt: a standard error of each place.

    Where a favour was believed beforehand, it is what chance could explain that shrinks to it.
    """
    manner = fits[0][0].manner
    precision, favour = 1.0 / manner.favour_doubt**2, manner.favour
    usual = np.zeros_like(favour) if manner.usual is None else manner.usual
    for _ in range(STEPS):
        slope, information = _sums(fits, favour)
        step = np.linalg.solve(information + precision * np.eye(slope.size), slope - precision * (favour - usual))
        favour = favour + np.clip(step, -STRIDE, STRIDE)
    found = favour - favour.mean() - usual
    departure = float(found @ information @ found)  # chi-squared of m - 1 degrees of freedom for a judge as believed
    told = 1.0 - (TOLD * (found.size - 1) / departure) ** 2 if departure > 0 else 0.0
    spread = np.linalg.eigvalsh(information + precision * np.eye(found.size))[1:]  # without what all places share
    return np.asarray(usual + max(0.0, told) * found), float(np.sqrt((1.0 / spread).mean()))


def _sums(fits: Sequence[tuple[Judged, Posterior]], favour: Floats) -> tuple[Floats, Floats]:
    """Slope and information by the favour, over all questions."""
    each = [
        by_place(posterior.mean, replace(judged, manner=replace(judged.manner, favour=favour)), posterior.sharpness)
        for judged, posterior in fits
    ]
    return np.sum([slope for _, slope, _ in each], axis=0), np.sum([bend for _, _, bend in each], axis=0)
