"""One order of a whole list, read together with the grades that are known beforehand.

The rank stage starts from grades, and grades alone make two of its rankings alike, whatever the judge says of the
batches. So what its calls buy is told against one order that knows the same grades: the posterior of Plackett-Luce with
utilities normal around the grades (`raggs.ranking.posterior`), at the sharpness that the order makes most likely. A
judge that guesses adds nothing to the grades this way, and a sharp one is believed.
"""

from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.ranking.likelihood import Judged, JudgedLists, Manner
from raggs.ranking.posterior import SHARPNESS, Prior, fit
from raggs.ranking.threads import one_blas_thread
from raggs.stats.probes.repeats import Told

SPREAD = 0.65  # of the utilities around the grades, as engines are tuned to


@one_blas_thread
def with_grades(told: Told, grades: Floats) -> Told:
    """The order by the posterior means; equal ones as the judge had them.

    Args:
        grades: shape (n,), of the passages by their numbers.
    """
    size = len(told.order)
    if size < 2:
        return told
    places = np.empty(size, dtype=np.int64)
    places[told.shown] = np.arange(size)
    lists = JudgedLists(told.order[None], places[told.order][None], np.ones(1))
    judged = Judged((lists,), Manner(np.zeros(size)))
    prior = Prior(grades.astype(np.float64), np.full(size, 1 / SPREAD**2))
    fits = [fit(prior, judged, sharpness, prior.mean) for sharpness in SHARPNESS]
    best = max(fits, key=lambda each: each.evidence)
    return Told(told.shown, told.order[np.argsort(-best.mean[told.order], kind="stable")])
