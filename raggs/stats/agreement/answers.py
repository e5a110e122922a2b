"""Shares and how sure they are; how often a system is right once it has found what it needs.

Flags are 1, 0 or NaN for unknown; what the unknown leaves out is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from raggs.stats.agreement.labels import check_confidence, paired


def wilson(count: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval (Wilson, 1927) of the share `count` / `total`, within 0..1; all of it where total is 0.

    Raises:
        ValueError: not 0 <= count <= total, or the confidence is not inside 0..1.
    """
    check_confidence(confidence, draws=1)
    if not 0 <= count <= total:
        raise ValueError(f"a share counts some of a total, not {count} of {total}")
    if not total:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = count / total, z**2 / total
    centre = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class AccuracyGivenHit:
    """Acc|Hit@K: how often the answer is correct where retrieval brought all the evidence.

    Attributes:
        value: correct / hits; NaN without hits.
        low, high: Wilson's score interval; 0 and 1 without hits.
        confidence: of the interval, in 0..1.
        correct: hits with a correct answer.
        hits: queries with a hit and a known answer.
        missed: queries without a hit.
        missing: queries left out: no flag for the hit, or a hit without one for the answer.
    """

    value: float
    low: float
    high: float
    confidence: float
    correct: int
    hits: int
    missed: int
    missing: int


def accuracy_given_hit(correct: npt.ArrayLike, hit: npt.ArrayLike, *, confidence: float = 0.95) -> AccuracyGivenHit:
    """Answer accuracy over the queries whose whole evidence was retrieved, with Wilson's interval.

    Args:
        correct: shape (queries,), 1 where the answer is correct, 0 where not, NaN where unknown.
        hit: shape (queries,), 1 where every passage of grade 4 or more is in the top K, else 0; NaN where undefined.
        confidence: inside 0..1.

    Raises:
        ValueError: the shapes differ, a flag is neither 0, 1 nor NaN, or the confidence is out of its range.
    """
    answers, hits = paired(correct, hit)
    check_confidence(confidence, draws=1)
    for flags in (answers, hits):
        if not np.isin(flags[~np.isnan(flags)], (0, 1)).all():
            raise ValueError("a flag is 0, 1 or NaN")
    found = answers[(hits == 1) & ~np.isnan(answers)]
    right, total, missed = int(found.sum()), found.size, int((hits == 0).sum())
    missing = hits.size - missed - total
    low, high = wilson(right, total, confidence)
    if not total:
        return AccuracyGivenHit(math.nan, low, high, confidence, 0, 0, missed, missing)
    return AccuracyGivenHit(right / total, low, high, confidence, right, total, missed, missing)
