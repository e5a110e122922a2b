"""What a judge gives to a place of the list: position bias, estimated and taken out.

Presentations are shuffled, so a judge that favours the first passage of a list spoils no order for good, but its favour
acts as noise. Each batch shows something at every place, so the favour of the places is learned long before the
utilities are, and known favour is noise no more. What chance could explain as well is taken for chance (shrinkage:
James and Stein 1961), so that a fair judge pays next to nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raggs.arrays import Floats
from raggs.ranking.likelihood import Judged, by_place
from raggs.ranking.posterior import Posterior

STEPS = 3  # Newton steps a study; the next one goes on from there
STRIDE = 1.0  # largest step, as log-odds
SPREAD = 2.0  # of the prior, normal around 0: wide, it only keeps the favour finite where a place always wins
TOLD = 2.0  # a departure, squared, of so many times what chance makes is none; larger ones hardly shrink


def estimate(judged: Judged, posterior: Posterior) -> Floats:
    """The favour of each place as log-odds, shape (knots,), summing to 0, at the posterior's utilities."""
    precision, manner = 1.0 / SPREAD**2, judged.manner
    for _ in range(STEPS):
        _, slope, information = by_place(posterior.mean, replace(judged, manner=manner), posterior.sharpness)
        step = np.linalg.solve(information + precision * np.eye(slope.size), slope - precision * manner.favour)
        manner = replace(manner, favour=manner.favour + np.clip(step, -STRIDE, STRIDE))
    found = manner.favour - manner.favour.mean()
    departure = float(found @ information @ found)  # chi-squared of m - 1 degrees of freedom for a fair judge
    told = 1.0 - (TOLD * (found.size - 1) / departure) ** 2 if departure > 0 else 0.0
    return np.asarray(max(0.0, told) * found)
