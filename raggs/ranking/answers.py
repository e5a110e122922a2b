"""Judged batches as arrays, and what the Plackett-Luce model says of them.

An answer orders the passages of one list. Its likelihood depends on the utilities, on the sharpness of the judge, and
on the places of the list where the passages were shown, since a judge may favour some of them. Sums over all answers
run by passage or by place with the same formulas. Pure functions; nothing is fitted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """All judged batches of one size.

    Attributes:
        orders: shape (calls, m): the items of each batch, best first.
        places: shape (calls, m): the place in the list, from 0, where each of `orders` was shown.
        weights: shape (calls,): of each order's log-likelihood; 1 for a full observation.
        favour: shape (m,): what each place adds to the log-odds of being picked.
    """

    orders: Ints
    places: Ints
    weights: Floats
    favour: Floats

    def scores(self, utilities: Floats, sharpness: float) -> Floats:
        """What the judge goes by, shape (calls, m), in the judged order: sharpness times utility, and favour."""
        return np.asarray(sharpness * utilities[self.orders] + self.favour[self.places])


Sums = tuple[float, Floats, Floats]


def by_item(utilities: Floats, answers: Answers, sharpness: float) -> Sums:
    """Log-likelihood of the answers, its gradient and its negative Hessian by the utilities.

    Returns:
        The value; shape (size,): winner of a stage b (1 - p), others -b p, summed over stages; shape (size, size),
        positive semidefinite: the sum of b^2 (diag p - p p^T) over stages (Plackett 1975; Hunter 2004).
    """
    loglik, gradient, curvature = _sums(utilities, answers, sharpness, answers.orders, utilities.size)
    return loglik, np.asarray(sharpness * gradient), np.asarray(sharpness**2 * curvature)


def by_place(utilities: Floats, answers: Answers, sharpness: float) -> Sums:
    """The same by the favour of the places: shapes (m,) and (m, m)."""
    return _sums(utilities, answers, sharpness, answers.places, answers.favour.size)


def _sums(utilities: Floats, answers: Answers, sharpness: float, cells: Ints, size: int) -> Sums:
    scores, weights = answers.scores(utilities, sharpness), answers.weights
    tails = np.logaddexp.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
    stages = pick_chances(scores, tails)
    picked = stages.sum(axis=1)
    gradient = np.bincount(cells.ravel(), (weights[:, None] * (1.0 - picked)).ravel(), minlength=size)
    blocks = -np.matmul(stages.transpose(0, 2, 1), stages)
    diagonal = np.arange(scores.shape[1])
    blocks[:, diagonal, diagonal] += picked
    blocks *= weights[:, None, None]
    pairs = cells[:, :, None] * size + cells[:, None, :]
    curvature = np.bincount(pairs.ravel(), blocks.ravel(), minlength=size * size).reshape(size, size)
    loglik = float(weights @ (scores - tails).sum(axis=1))
    return loglik, np.asarray(gradient), np.asarray(curvature)


def pick_chances(scores: Floats, tails: Floats) -> Floats:
    """p[c, k, j]: the chance that item j of batch c is picked at stage k; 0 where it was picked before.

    `scores` come in the judged order; `tails` are their log-sum-exp over suffixes. Both have shape (c, m).
    """
    stages = np.where(np.tri(scores.shape[1], k=-1, dtype=bool), -np.inf, scores[:, None, :] - tails[:, :, None])
    return np.asarray(np.exp(stages))
