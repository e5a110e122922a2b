"""What the options of the engine `bayes` may be."""

from __future__ import annotations

import math

from raggs.ranking.echoes import HIGHEST_ECHO

HIGHEST_SLIP = 0.9
SIGMAS = 0.01, 2.0  # beyond, the grades leave nothing to the answers, or say nothing and fits run away


def check_options(
    sigma: float,
    slip: float,
    saving: float,
    stability: int,
    repeats: float,
    z: float,
    echo: float,
    overhead: float,
) -> None:
    """See `raggs.ranking.bayes.BayesRanker`.

    Raises:
        ValueError: a value is out of its range; the message says which and what may be.
    """
    if not (z > 0 and math.isfinite(z)):
        raise ValueError(f"z must be a finite number above 0, not {z}")
    if not (saving >= 0 and math.isfinite(saving)):
        raise ValueError(f"saving must be a finite number from 0, not {saving}")
    if not (overhead >= 0 and math.isfinite(overhead)):
        raise ValueError(f"overhead must be a finite number from 0, not {overhead}")
    if not stability >= 0:
        raise ValueError(f"stability must be at least 0, not {stability}")
    ranges = (
        ("sigma", sigma, *SIGMAS),
        ("slip", slip, 0.0, HIGHEST_SLIP),
        ("repeats", repeats, 0.0, 0.5),
        ("echo", echo, 0.0, HIGHEST_ECHO),
    )
    for what, value, least, most in ranges:
        if not least <= value <= most:
            raise ValueError(f"{what} must lie in {least:g} to {most:g}, not {value}")
