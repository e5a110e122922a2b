"""What a ranking believes of passages, and what a passage is then worth: its expected gain, grade and order together.

A ranked passage lies at a score on the scale of the grades, with a standard error. Between two grades a gain is taken
to be linear, and beyond the scale it is that of its end, so its expectation has a closed form and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints


@dataclass(frozen=True)
class Belief:
    """Where the ranking of passages puts them, a row for each judgment of a `Qrels`.

    Attributes:
        score: shape (m,), in grades; NaN where a passage was not ranked, whose grade then stands.
        sigma: shape (m,), standard error of the score, >= 0.
    """

    score: Floats
    sigma: Floats

    @property
    def ranked(self) -> Flags:
        """Shape (m,): which passages were ranked."""
        return np.isfinite(self.score)

    def moved(self, shift: Floats, doubt: Floats) -> Belief:
        """A draw: scores moved by `shift`, and sure from there on where `doubt` (shape (m,)) is above 0."""
        return Belief(self.score + shift, np.where(doubt > 0, 0.0, self.sigma))

    def only(self, kept: Flags) -> Belief:
        """The same where others count as not ranked."""
        return Belief(np.where(kept, self.score, np.nan), self.sigma)

    def taken(self, rows: Ints) -> Belief:
        """Some rows."""
        return Belief(self.score[rows], self.sigma[rows])

    def extended(self, more: int) -> Belief:
        """The same with rows behind it for passages that were not ranked."""
        return Belief(np.append(self.score, np.full(more, np.nan)), np.append(self.sigma, np.zeros(more)))


def expected_gains(score: Floats, sigma: Floats, gains: Floats, low: int) -> Floats:
    """Shape (n,): the expected gain of N(score, sigma): piecewise linear in the grade, constant beyond the scale.

    Args:
        score, sigma: shape (n,), sigma >= 0.
        gains: shape (grades,) or (n, grades): the gain of each grade.
        low: the lowest grade.
    """
    knots = low + np.arange(gains.shape[-1], dtype=np.float64)
    above = _mean_above(score[:, None] - knots, sigma[:, None])
    found: Floats = gains[..., 0] + (np.diff(gains, axis=-1) * (above[:, :-1] - above[:, 1:])).sum(axis=-1)
    return found


def _mean_above(gap: Floats, sigma: Floats) -> Floats:
    """The mean of what N(gap, sigma) is above 0."""
    from scipy.special import ndtr  # late: most evaluations ask for no utility

    wide = np.maximum(sigma, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        z = gap / wide
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    found: Floats = np.where(sigma > 0, gap * ndtr(z) + sigma * density, np.maximum(gap, 0.0))
    return found


Placed = Mapping[tuple[str, str], tuple[float, float]]  # (qid, doc_id) -> score, sigma


def belief_of(pairs: Iterable[tuple[str, str]], placed: Placed) -> Belief | None:
    """Rows for judgments by query and passage; None where none of them was ranked."""
    rows = np.array([placed.get(pair, (np.nan, 0.0)) for pair in pairs], dtype=np.float64).reshape(-1, 2)
    found = Belief(rows[:, 0], rows[:, 1])
    return found if found.ranked.any() else None
