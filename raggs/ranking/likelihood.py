"""Judged batches as arrays, and what the Plackett-Luce model says of them.

A judge who ranks a batch picks its best item, then the best of the rest, and so on; each pick, a stage, follows a
softmax of the scores of those that are left (Luce 1959, Plackett 1975). An answer orders the passages of one list.
Its likelihood depends on the utilities, on the sharpness of the judge, and on the places of the list where the
passages were shown, since a judge may favour some of them. Orders that somebody gave beforehand come with a sharpness
of their own. Sums over all answers run by passage or by place with the
same formulas. Pure functions; nothing is fitted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.ranking.base import TYPICAL_LENGTH

Sums = tuple[float, Floats, Floats]
Sums3 = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class KnownPicks:
    """What orders of groups say, pick by pick: each passage was put before all those of the groups below its own.

    For groups of one these are the stages of Plackett-Luce; among those of one group nothing is said.

    Attributes:
        sets: by pick, the passage that was picked, then those that it was put before.
        sharpness: by pick, of whoever picked.
    """

    sets: tuple[Ints, ...] = ()
    sharpness: tuple[float, ...] = ()

    def and_groups(self, groups: Sequence[Sequence[int]], sharpness: float) -> KnownPicks:
        """These, and those of another order, best group first."""
        below = [[item for group in groups[place + 1 :] for item in group] for place in range(len(groups))]
        sets = [np.array([item, *rest]) for group, rest in zip(groups, below, strict=True) for item in group if rest]
        return KnownPicks((*self.sets, *sets), (*self.sharpness, *[sharpness] * len(sets)))

    def add_to(self, utilities: Floats, sums: Sums) -> Sums:
        """Log-likelihood, its gradient and its negative Hessian by the utilities, together with those of `sums`."""
        loglik, gradient, curvature = sums
        for members, sharpness in zip(self.sets, self.sharpness, strict=True):
            scores = sharpness * utilities[members]
            scores -= scores.max()
            strengths = np.exp(scores)
            chances = strengths / strengths.sum()
            loglik += float(scores[0] - np.log(strengths.sum()))
            gradient[members] -= sharpness * chances
            gradient[members[0]] += sharpness
            curvature[np.ix_(members, members)] += sharpness**2 * (np.diag(chances) - np.outer(chances, chances))
        return loglik, gradient, curvature


@dataclass(frozen=True)
class JudgedLists:
    """Answers to lists of one length m.

    Attributes:
        orders: shape (calls, m): the items of each list, best first.
        places: shape (calls, m): the place in the list, from 0, where each of `orders` was shown.
        weights: shape (calls,): of each order's log-likelihood; 1 for a full observation.
    """

    orders: Ints
    places: Ints
    weights: Floats

    @property
    def length(self) -> int:
        """Passages in a list."""
        return int(self.orders.shape[1])


@dataclass(frozen=True)
class Manner:
    """How a judge orders a list, and what is believed of its sharpness beforehand.

    Attributes:
        favour: shape (knots,): what places from the first of a list to the last add to the log-odds of being picked;
            in lists of another length it is interpolated.
        left: what is left of its care at each pick of an answer, from 1 at the first; past the last of them nothing
            changes. Empty: all of it.
        strain: how its care falls with the length of the list, >= 0: (5 / m)^strain of it is left.
        sharpness, doubt: log-normal prior of the sharpness: its median, and the spread of its logarithm.
        usual, favour_doubt: normal prior of the favour: its mean, shape (knots,) or None for 0, and spread.
    """

    favour: Floats
    left: tuple[float, ...] = ()
    strain: float = 0.0
    sharpness: float = 3.0
    doubt: float = 0.8
    usual: Floats | None = None
    favour_doubt: float = 2.0  # wide: it only keeps the favour finite where a place always wins

    def care(self, length: int) -> Floats | None:
        """What is left of the sharpness at each pick from a list, shape (m,); None where it is the same at each."""
        if not self.left:
            return None
        return np.array([*self.left[:length], *[self.left[-1]] * (length - len(self.left))])

    def attention(self, length: int) -> float:
        """What is left of the sharpness at the first pick from a list."""
        return float((TYPICAL_LENGTH / length) ** self.strain) if self.strain else 1.0

    def knots(self, length: int) -> Floats | None:
        """W, shape (m, knots): favour of the places of a list = W favour; None where it is the favour itself."""
        count = self.favour.size
        if length == count:
            return None
        at = np.linspace(0, count - 1, length)
        return np.asarray(np.maximum(1.0 - np.abs(at[:, None] - np.arange(count)), 0.0))


@dataclass(frozen=True)
class Judged:
    """All that was heard, and how it is taken.

    Attributes:
        lists: the answers, by the length of the list.
        manner: of the judge.
        known: picks of orders that were there beforehand; None where there are none.
    """

    lists: tuple[JudgedLists, ...]
    manner: Manner
    known: KnownPicks | None = None

    def scores(self, lists: JudgedLists, utilities: Floats, sharpness: float) -> Floats:
        """What the judge goes by, shape (calls, m), in the judged order: sharpness times utility, and favour."""
        knots, favour = self.manner.knots(lists.length), self.manner.favour
        places = favour if knots is None else knots @ favour
        return np.asarray(
            sharpness * self.manner.attention(lists.length) * utilities[lists.orders] + places[lists.places]
        )


FAR = 300.0  # differences of scores beyond this change nothing, and their squared exponentials would overflow
FARTHEST = 500.0  # the same for a plain exponential


def by_item(utilities: Floats, judged: Judged, sharpness: float) -> Sums:
    """Log-likelihood of the answers, its gradient and its negative Hessian by the utilities.

    Returns:
        The value; shape (size,): winner of a stage b (1 - p), others -b p, summed over stages; shape (size, size),
        positive semidefinite: the sum of b^2 (diag p - p p^T) over stages (Plackett 1975; Hunter 2004).
    """
    size = utilities.size
    loglik, slope, bend = 0.0, np.zeros(size), np.zeros((size, size))
    for lists in judged.lists:
        sharp = sharpness * judged.manner.attention(lists.length)
        own, gradient, curvature = _sums(judged, lists, utilities, sharpness, lists.orders, size)
        loglik, slope, bend = loglik + own, slope + sharp * gradient, bend + sharp**2 * curvature
    return (loglik, slope, bend) if judged.known is None else judged.known.add_to(utilities, (loglik, slope, bend))


def by_place(utilities: Floats, judged: Judged, sharpness: float) -> Sums:
    """The same by the favour of the places: shapes (knots,) and (knots, knots)."""
    size = judged.manner.favour.size
    loglik, slope, bend = 0.0, np.zeros(size), np.zeros((size, size))
    for lists in judged.lists:
        own, gradient, curvature = _sums(judged, lists, utilities, sharpness, lists.places, lists.length)
        knots = judged.manner.knots(lists.length)
        if knots is not None:
            gradient, curvature = knots.T @ gradient, knots.T @ curvature @ knots
        loglik, slope, bend = loglik + own, slope + gradient, bend + curvature
    return loglik, slope, bend


def _sums(judged: Judged, lists: JudgedLists, utilities: Floats, sharpness: float, cells: Ints, size: int) -> Sums:
    scores, weights = judged.scores(lists, utilities, sharpness), lists.weights
    loglik, slopes, blocks = stage_sums(scores, judged.manner.care(lists.length))
    gradient = np.bincount(cells.ravel(), (weights[:, None] * slopes).ravel(), minlength=size)
    pairs = cells[:, :, None] * size + cells[:, None, :]
    blocks *= weights[:, None, None]
    curvature = np.bincount(pairs.ravel(), blocks.ravel(), minlength=size * size).reshape(size, size)
    return float(weights @ loglik), np.asarray(gradient), np.asarray(curvature)


def stage_sums(scores: Floats, left: Floats | None = None) -> Sums3:
    """The stages of each of many orders at once, summed.

    With e_i = exp(s_i) and the tail sums T_k = e_k + ... + e_m, item i >= k is picked at stage k with p_k(i) =
    e_i / T_k. Sums over stages need no stage of their own: sum p_k(i) = e_i sum 1 / T_k over k <= i, and
    sum p_k(i) p_k(j) = e_i e_j sum 1 / T_k^2 over k <= min(i, j).

    Args:
        scores: shape (c, m), each row in the judged order.
        left: shape (m,): what is left of the judge's care at each stage, which its scores are multiplied by; None: all.

    Returns:
        Log-likelihoods, shape (c,); their gradient by the scores, 1 - sum p, shape (c, m); and the sums of
        diag p - p p^T, shape (c, m, m).
    """
    if left is not None:
        return _tired_sums(scores, left)
    highest = scores.max(axis=1, keepdims=True)
    strengths = np.exp(np.maximum(scores - highest, -FAR))
    tails = strengths[:, ::-1].cumsum(axis=1)[:, ::-1]
    picked = strengths * (1.0 / tails).cumsum(axis=1)
    squares = (1.0 / tails**2).cumsum(axis=1)
    blocks = -strengths[:, :, None] * strengths[:, None, :] * np.minimum(squares[:, :, None], squares[:, None, :])
    diagonal = np.arange(scores.shape[1])
    blocks[:, diagonal, diagonal] += picked
    return (scores - highest - np.log(tails)).sum(axis=1), 1.0 - picked, blocks


def _tired_sums(scores: Floats, left: Floats) -> Sums3:
    """The same stage by stage, each with the care that is left."""
    size = left.size
    stages = np.where(np.triu(np.ones((size, size), dtype=bool)), left[:, None] * scores[:, None, :], -np.inf)
    stages -= stages.max(axis=2, keepdims=True)
    chances = np.exp(stages)
    totals = chances.sum(axis=2, keepdims=True)
    diagonal = np.arange(size)
    loglik = (stages[:, diagonal, diagonal] - np.log(totals[:, :, 0])).sum(axis=1)
    chances *= left[:, None] / totals
    blocks = -(chances.transpose(0, 2, 1) @ chances)
    blocks[:, diagonal, diagonal] += np.einsum("k,cki->ci", left, chances)
    return loglik, left - chances.sum(axis=1), blocks


def stage_chances(scores: Floats) -> Floats:
    """p[k, j]: the chance that item j of one order is picked at stage k, in full; exact for scores of any finite size.

    p[k, j] = exp(s_j) / T_k for j >= k, else 0, for scores s in the judged order. Shape (m, m); each row sums to 1. An
    order adds 1 - sum p to the gradient of its log-likelihood by the scores, and sum p (1 - p) to the information.
    """
    inside = np.triu(np.ones((scores.size, scores.size), dtype=bool))
    stages = np.where(inside, scores, -np.inf)
    weights = np.exp(stages - stages.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def upset_chances(gaps: Floats) -> Floats:
    """The chance that the passage which is behind by a gap of the scores is put first of the two."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(gaps, -FARTHEST, FARTHEST))))
