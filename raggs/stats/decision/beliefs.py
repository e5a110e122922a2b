"""What a person would say of a passage, by what the judge said and how often people took another view.

Before anybody has read anything, each grade further off is five times less likely than the one before. Every passage
that was read at random moves that, for the judge's grade it had. A judge that was asked several times, or a panel, and
did not answer alike is believed by the shares of its answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints

STEP = 0.2  # of the prior: one grade further off is so much less likely
HOLE_STEP = 0.4  # the same from the lowest grade up, for passages that nobody judged
WEIGHT = 10.0  # reviews of a grade that weigh as much as the prior
UNJUDGED, ALONE, AGREED, DISPUTED = range(4)
KINDS, TINY = 4, 1e-6


@dataclass(frozen=True)
class Heard:
    """What is known of some passages, grades counted from 0.

    Attributes:
        grade: shape (items,), the judge's; -1 where there is none.
        voices: shape (items, grades), how many of its answers, or of a panel's, were each grade.
        sigma: shape (items,), standard error of the grade by the ranking; 0 where it was not ranked.
    """

    grade: Ints
    voices: Ints
    sigma: Floats

    @property
    def kind(self) -> Ints:
        """Shape (items,): 0 nobody judged, 1 one answer, 2 several that agree, 3 several that do not."""
        agree = self.voices.max(axis=1, initial=0) == self.voices.sum(axis=1)
        several = np.where(agree, AGREED, DISPUTED)
        return np.where(self.grade < 0, UNJUDGED, np.where(self.voices.sum(axis=1) < 2, ALONE, several))


def believe(heard: Heard, read: Ints, said: Ints) -> Floats:
    """Shape (items, grades): the probability of each grade, were a person to read the passage.

    Args:
        heard: of all items.
        read: the rows of those that people read and that were drawn at random: others would mislead.
        said: what people said of each, from 0.
    """
    size, kind = heard.voices.shape[1], heard.kind
    counts = np.zeros((KINDS, size + 1, size))
    np.add.at(counts, (kind[read], heard.grade[read], said), 1.0)  # grade -1 is the last row
    known = counts[kind, heard.grade]
    blended: Floats = known + WEIGHT * _prior(heard, _steps(kind[read], heard.grade[read] != said))
    return _blurred(blended / blended.sum(axis=1, keepdims=True), heard.sigma)


def _steps(kind: Ints, wrong: Flags) -> Floats:
    """Shape (kinds,): how much less likely one grade further off is, by all that was read of a kind."""
    count, errors = (np.bincount(kind, weights=each, minlength=KINDS) for each in (np.ones(len(kind)), wrong))
    usual = 2 * STEP / (1 + STEP)  # the share of errors that goes with it, away from the ends of the scale
    share = (errors + WEIGHT * usual) / (count + WEIGHT)
    found: Floats = share / (2 - share)
    return found


def _prior(heard: Heard, steps: Floats) -> Floats:
    """Shape (items, grades)."""
    size, kind = heard.voices.shape[1], heard.kind
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    rows = np.maximum(steps, TINY)[:, None, None] ** apart
    rows[DISPUTED] = STEP**apart  # how far answers go apart says it already
    rows[UNJUDGED] = HOLE_STEP ** np.arange(size)
    rows /= rows.sum(axis=2, keepdims=True)
    total = heard.voices.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, heard.voices / np.maximum(total, 1), np.eye(size)[heard.grade])
    found: Floats = np.einsum("pg,pgh->ph", shares, rows[kind])
    return found


def _blurred(beliefs: Floats, sigma: Floats) -> Floats:
    """The same with the ranking's doubt: a normal one around each grade."""
    size = beliefs.shape[1]
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    with np.errstate(divide="ignore"):
        kernel = np.exp(-0.5 * (steps / np.maximum(sigma, 1e-3)[:, None, None]) ** 2)
    kernel /= kernel.sum(axis=2, keepdims=True)
    found: Floats = np.einsum("pg,pgh->ph", beliefs, kernel)
    return found
