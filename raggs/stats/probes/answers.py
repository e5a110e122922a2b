"""How much recall an answer needs: accuracy of answers by how much of the truth their question was served.

Wang et al. 2025, section 5.3, which read 40, 70 and 91% of the exact search's accuracy at recalls of .1, .2 and .4 and
chose a delta of .2. A question that an index serves badly may be a hard one for the exact search too, so each bin's
accuracy is held against that of the exact search on the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.metrics.measures.robustness import EPSILON
from raggs.metrics.stats import Interval
from raggs.metrics.stats.intervals import resampled_means

BINS = 10  # of recall, by its tenths; full recall has a bin of its own
LEAST = 10  # answers of a bin that is believed
NEAR = 0.7  # of the exact search's accuracy: what the paper's own choice amounts to
DRAWS = 2_000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Bin:
    """Answers to questions of about one recall.

    Attributes:
        recall: its lower end, 0 to 1 in tenths.
        answers: how many.
        accuracy, exact: the share of correct ones, and that by the exact search on the same questions.
        ratio: accuracy / exact with its interval; NaN where the exact search is never right.
    """

    recall: float
    answers: int
    accuracy: float
    exact: float
    ratio: Interval


def accuracy_by_recall(recall: Floats, correct: Flags, exact: Flags, *, seed: int) -> tuple[Bin, ...]:
    """Bins of recall that hold an answer, ascending.

    Args:
        recall: shape (answers,), in 0..1.
        correct, exact: the same shape: whether the answer was correct, and that from the exact search.

    Raises:
        ValueError: the shapes differ.
    """
    if not recall.shape == correct.shape == exact.shape:
        raise ValueError("recall, correct and exact have a value for each answer")
    tenths = np.floor(recall * BINS + EPSILON).astype(int)
    return tuple(
        _bin(tenth / BINS, correct[tenths == tenth], exact[tenths == tenth], seed)
        for tenth in np.unique(tenths).tolist()
    )


def choose_delta(bins: Sequence[Bin], near: float = NEAR, least: int = LEAST) -> float | None:
    """The smallest recall above 0 from which on every bin of `least` answers or more is near the exact search.

    Args:
        near: the share of the exact search's accuracy that is near enough.

    Returns:
        None where not even the highest bin is, or none holds enough answers.
    """
    chosen: float | None = None
    for each in sorted(bins, key=lambda found: -found.recall):
        if each.answers < least or each.recall <= 0:
            continue
        if not each.ratio.mean >= near:
            break
        chosen = each.recall
    return chosen


def _bin(recall: float, correct: Flags, exact: Flags, seed: int) -> Bin:
    mine, truth = correct.astype(np.float64), exact.astype(np.float64)
    low = high = ratio = np.nan
    if truth.any():
        ratio = float(mine.mean() / truth.mean())
        ours, theirs = resampled_means([mine, truth], DRAWS, seed)
        known, tail = theirs > 0, (1 - CONFIDENCE) / 2
        low, high = np.quantile(ours[known] / theirs[known], [tail, 1 - tail]).tolist()
    found = Interval(ratio, low, high, CONFIDENCE, len(mine), 0, "percentile")
    return Bin(recall, len(mine), float(mine.mean()), float(truth.mean()), found)
