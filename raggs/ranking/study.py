"""What the answers to one question say of its judge: its favour of places, its sharpness, its echo.

Each hangs on the utilities, and they on it, so they are fitted in turn. Pure: the same answers give the same bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raggs.ranking import echoes
from raggs.ranking.base import Profile
from raggs.ranking.favour import estimate as place_favour
from raggs.ranking.likelihood import Judged, Manner
from raggs.ranking.mixture import Mixture, fit_mixture, sharpen
from raggs.ranking.posterior import Posterior

FAVOUR_STEPS = 2  # times that favour and utilities are fitted in turn, each to the other


def believed(profile: Profile, own: Manner) -> Manner:
    """A judge's manner as other questions taught it; what nothing was learned of stays as the question's own has it."""
    told = Manner(own.favour, profile.left, profile.strain, profile.sharpness, profile.doubt)
    if profile.favour_doubt is None:
        return told
    usual = np.zeros_like(own.favour)
    if profile.favour:
        taught = Manner(np.array(profile.favour))
        across = taught.knots(usual.size)
        usual = taught.favour if across is None else across @ taught.favour
        usual = usual - usual.mean()
    return replace(told, favour=usual, usual=usual, favour_doubt=profile.favour_doubt)


def study(
    mixture: Mixture, judged: Judged, posterior: Posterior, echo: float | None, *, biased: bool
) -> tuple[Manner, Posterior, float]:
    """The judge's manner, the utilities by it, and its echo.

    Args:
        mixture: the prior of the utilities.
        posterior: of the same answers.
        echo: as somebody knows it; None estimates it.
        biased: whether the judge may favour places; else it keeps the favour that it has.
    """
    for _ in range(FAVOUR_STEPS if biased else 0):
        judged = replace(judged, manner=replace(judged.manner, favour=place_favour(judged, posterior)))
        if not judged.manner.favour.any():
            break
        posterior = fit_mixture(mixture, judged, posterior.sharpness, posterior)
    posterior = sharpen(mixture, judged, posterior)
    return judged.manner, posterior, echoes.estimate(judged, posterior) if echo is None else echo
