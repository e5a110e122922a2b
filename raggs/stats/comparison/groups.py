"""Two groups of questions: do those that have something in common score otherwise than the rest?

Many groupings of the same values are looked at together, so p values are corrected over them (Holm), and a grouping
counts as found only where its corrected p is below alpha and its interval leaves 0 out. The test permutes the values
over the questions (Fisher 1935; Phipson and Smyth 2010 for drawn permutations), which supposes nothing but that, under
the null hypothesis, each question could have had any of the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.base.seeds import derive_seed, generator
from raggs.stats.comparison.intervals import DRAWS, resampled_means
from raggs.stats.comparison.paired import holm

PERMUTATIONS = 10_000
CELLS = 2_000_000  # of permuted values at a time: 16 MB
FUZZ = 1e-10  # relative: sums closer than that are equal


@dataclass(frozen=True)
class Contrast:
    """One group of questions against another.

    Attributes:
        having, lacking: how many questions are in the group, and in the other.
        having_mean, lacking_mean: of their values.
        difference, low, high: the first mean less the second with its interval (bootstrap within each group).
        effect, effect_low, effect_high: the same in standard deviations within the groups (Cohen's d, pooled); NaN
            where the values within the groups are all equal.
        p: two-sided, of the permutation test; 1 where all values are equal.
        corrected: the same after Holm's correction over all groupings.
        clear: whether both witnesses, interval and corrected p, tell the difference from chance.
    """

    having: int
    lacking: int
    having_mean: float
    lacking_mean: float
    difference: float
    low: float
    high: float
    effect: float
    effect_low: float
    effect_high: float
    p: float
    corrected: float
    clear: bool


def contrasts(
    values: Floats,
    groups: Floats,
    *,
    seed: int,
    confidence: float = 0.95,
    draws: int = PERMUTATIONS,
    family: int = 1,
) -> tuple[Contrast, ...]:
    """Each grouping of the questions on the same values, in the order given.

    Args:
        values: shape (questions,); NaN where a question has none.
        groups: shape (groupings, questions): 1 in the group, 0 in the other, NaN where that is not known.
        seed: of the run.
        confidence: of intervals; 1 - confidence is the level of the tests.
        draws: permutations, at least 1.
        family: how many arrays of values are looked at together: p is corrected over all of them.

    Raises:
        ValueError: the shapes differ, or a grouping has fewer than two questions with a value on a side.
    """
    if groups.ndim != 2 or groups.shape[1:] != values.shape:
        raise ValueError(f"groups need a column a question: shapes {groups.shape} and {values.shape}")
    defined = np.isfinite(values)
    known, own = groups[:, defined], values[defined]
    sides = [(own[row == 1], own[row == 0]) for row in known]
    if any(min(map(len, pair)) < 2 for pair in sides):
        raise ValueError("a group needs two questions with a value on each side")
    p_values = permutation_tests(own, known, seed=seed, draws=draws).tolist()
    corrected = [min(1.0, family * p) for p in holm(p_values)]
    return tuple(
        _contrast(*pair, p, told, seed, confidence) for pair, p, told in zip(sides, p_values, corrected, strict=True)
    )


def permutation_tests(values: Floats, groups: Floats, *, seed: int, draws: int = PERMUTATIONS) -> Floats:
    """Two-sided p of the difference of means of each grouping, shape (groupings,): (b + 1) / (draws + 1).

    All groupings see the same permutations. Arguments as in `contrasts`, values without NaN.
    """
    if not len(groups):
        return np.zeros(0)
    weights = np.stack([_weights(row == 1, row == 0) for row in groups])
    seen = np.abs(weights @ values)
    fuzz = FUZZ * np.abs(weights) @ np.abs(values) + np.finfo(float).tiny
    rng, extreme = generator(seed, "permutation", values.size), np.zeros(len(groups))
    step = max(1, CELLS // values.size)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        shuffled = rng.permuted(np.broadcast_to(values, (rows, values.size)), axis=1)
        extreme += (np.abs(shuffled @ weights.T) >= seen - fuzz).sum(axis=0)
    return np.asarray((extreme + 1) / (draws + 1))


def _weights(having: Flags, lacking: Flags) -> Floats:
    """What each value counts in the difference of means."""
    found: Floats = having / having.sum() - lacking / lacking.sum()
    return found


def _contrast(having: Floats, lacking: Floats, p: float, corrected: float, seed: int, confidence: float) -> Contrast:
    ours, our_spreads = _resampled(having, seed, "in")
    theirs, their_spreads = _resampled(lacking, seed, "out")
    sizes = having.size, lacking.size
    moved, scales = ours - theirs, _pooled(our_spreads, their_spreads, *sizes)
    low, high = _ends(moved, confidence)
    difference, scale = float(having.mean() - lacking.mean()), _pooled(having.var(), lacking.var(), *sizes)
    least = FUZZ * max(np.abs(having).max(), np.abs(lacking).max())
    varied, sure = bool(scale > least), scales > least
    effect_low, effect_high = _ends(moved[sure] / scales[sure], confidence) if varied else (math.nan, math.nan)
    return Contrast(
        having=having.size,
        lacking=lacking.size,
        having_mean=float(having.mean()),
        lacking_mean=float(lacking.mean()),
        difference=difference,
        low=low,
        high=high,
        effect=difference / float(scale) if varied else math.nan,
        effect_low=effect_low,
        effect_high=effect_high,
        p=p,
        corrected=corrected,
        clear=corrected < 1 - confidence and (low > 0 or high < 0),
    )


def _ends(drawn: Floats, confidence: float) -> tuple[float, float]:
    if not drawn.size:
        return math.nan, math.nan
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail]).tolist()
    return float(low), float(high)


def _resampled(side: Floats, seed: int, name: str) -> tuple[Floats, Floats]:
    """Means and variances of resamples; a seed for each side, since groups of equal size would share their draws."""
    means, squares = resampled_means([side, side**2], DRAWS, derive_seed(seed, "contrast", name))
    return means, np.maximum(squares - means**2, 0.0)


def _pooled(ours: Floats | float, theirs: Floats | float, having: int, lacking: int) -> Floats:
    """The standard deviation within both groups, from their variances (sums divided by n)."""
    return np.asarray(np.sqrt((having * np.asarray(ours) + lacking * np.asarray(theirs)) / (having + lacking - 2)))
