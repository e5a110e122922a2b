"""Agreement of two rankings, of passages or of systems.

An order is a sequence of unique ids, best first, or a mapping of ids to scores (higher is better), which may contain
ties. Correlations use only the ids that both orders contain. RBO and overlap compare prefixes, so they use all ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.stats.comparison import mean_ranks

Order = Sequence[str] | Mapping[str, float]


@dataclass(frozen=True)
class RBO:
    """Rank-biased overlap of two lists of which only the first ranks are known.

    Attributes:
        extrapolated: RBO_ext in 0..1, which assumes that the unknown ranks agree as the known ones do; NaN if a list is
            empty.
        minimum: RBO if the unknown ranks add no shared ids.
        residual: by how much RBO exceeds `minimum` if the unknown ranks agree as much as possible.
    """

    extrapolated: float
    minimum: float
    residual: float


def kendall_tau_b(first: Order, second: Order) -> float:
    """Return Kendall's tau-b over the shared ids, in -1..1.

    NaN with fewer than two shared ids, or if all shared ids are tied in one of the orders.

    Raises:
        ValueError: an id occurs twice, or a score is NaN.
    """
    pair = _shared_scores(first, second)
    return _tau_b(*pair) if _varied(*pair) else math.nan


def spearman(first: Order, second: Order) -> float:
    """Return Spearman's rho over the shared ids, in -1..1. Ties have their mean rank.

    NaN in the same cases as `kendall_tau_b`.

    Raises:
        ValueError: an id occurs twice, or a score is NaN.
    """
    pair = _shared_scores(first, second)
    if not _varied(*pair):
        return math.nan
    return float(np.corrcoef(mean_ranks(pair[0])[0], mean_ranks(pair[1])[0])[0, 1])


def _tau_b(first: Floats, second: Floats) -> float:
    """Return (concordant - discordant pairs) / sqrt(pairs untied in the first * pairs untied in the second)."""
    balance = untied_first = untied_second = 0
    for at in range(1, first.size):
        ours, theirs = np.sign(first[:at] - first[at]), np.sign(second[:at] - second[at])
        balance += int(ours @ theirs)
        untied_first += int(np.count_nonzero(ours))
        untied_second += int(np.count_nonzero(theirs))
    return max(-1.0, min(1.0, balance / math.sqrt(untied_first) / math.sqrt(untied_second)))


def tau_ap(truth: Order, estimate: Order, *, symmetric: bool = False) -> float:
    """Return the AP correlation over the shared ids: Kendall's tau with more weight on the top of the estimate.

    It is 2 / (n - 1) * sum over i = 2..n of C(i) / (i - 1), minus 1. C(i) counts the items above rank i of the estimate
    that the truth also ranks above the item at rank i. Source: Yilmaz, Aslam and Robertson, "A new rank correlation
    coefficient for information retrieval", SIGIR 2008. If an order has ties, the result is the mean over all orders of
    the tied items.

    Args:
        truth: the order taken as correct.
        estimate: the order whose top counts most.
        symmetric: whether to return the mean over both orders as the truth.

    Returns:
        A value in -1..1; NaN with fewer than two shared ids.

    Raises:
        ValueError: an id occurs twice, or a score is NaN.
    """
    true, estimated = _shared_scores(truth, estimate)
    if true.size < 2:
        return math.nan
    if symmetric:
        return (_tau_ap(true, estimated) + _tau_ap(estimated, true)) / 2
    return _tau_ap(true, estimated)


def _tau_ap(true: Floats, estimated: Floats) -> float:
    """Return tau_ap, averaged over all orders of tied estimates.

    A tied item is equally likely at each rank of its group. Compared with an item above its group, it counts as correct
    if the truth agrees, and half if they are tied in the truth. Of the pairs within its group, half count as correct,
    by symmetry.
    """
    total = 0.0
    for level in np.unique(estimated):
        members, above = true[estimated == level], true[estimated > level]
        right = (above > members[:, None]).sum() + (above == members[:, None]).sum() / 2
        before = np.arange(members.size)
        ranks = above.size + before  # ranks from 0
        counts = right / members.size + before / 2
        total += float((counts[ranks > 0] / ranks[ranks > 0]).sum())
    return 2 * total / (true.size - 1) - 1


def rbo(first: Order, second: Order, *, p: float = 0.9) -> RBO:
    """Return the rank-biased overlap: the mean agreement of two prefixes for a reader who continues with probability
    `p`.

    Source: Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", TOIS 28(4), 2010. The
    extrapolation is equation 32, for lists of any two lengths. The bounds follow from the smallest and largest overlap
    that unknown ranks can have. Equal scores of a mapping are ordered by id.

    Args:
        first, second: the orders; they need not share any ids.
        p: strictly between 0 and 1; with 0.9, the first ten ranks have 86% of the weight.

    Raises:
        ValueError: p is not strictly between 0 and 1, an id occurs twice, or a score is NaN.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be strictly between 0 and 1, got {p}")
    short, long = sorted((_sequence(first), _sequence(second)), key=len)
    s, depth = len(short), len(long)
    overlap = _overlaps(short, long)
    final = float(overlap[-1]) if depth else 0.0
    d = np.arange(1, depth + 1)
    weights = (1 - p) / p * p**d / d
    # After the known ranks, at least `final` ids stay shared. Their sum is the tail of the series of -log(1 - p).
    tail = -math.log1p(-p) * (1 - p) / p - float(weights.sum())
    minimum = float(weights @ overlap) + final * tail
    # At most, each unknown item of the shorter list (later of both lists) matches an unmatched item, until all match.
    full = int(s + depth - final)
    beyond = np.arange(depth + 1, full + 1)
    most = np.concatenate((overlap + np.maximum(d - s, 0), 2 * beyond - depth - s + final))
    reach = np.arange(1, full + 1)
    maximum = float(((1 - p) / p * p**reach / reach) @ most) + p**full
    if not s:
        return RBO(math.nan, minimum, maximum - minimum)
    at_short = float(overlap[s - 1])
    seen = weights @ (overlap + at_short * np.maximum(d - s, 0) / s)
    extrapolated = float(seen) + ((final - at_short) / depth + at_short / s) * p**depth
    return RBO(extrapolated, minimum, maximum - minimum)


def _overlaps(short: Sequence[str], long: Sequence[str]) -> Floats:
    """Return the number of ids that both prefixes contain, for each depth up to the length of the longer list.

    At greater depths, the prefix of the shorter list is the complete list.
    """
    place = {name: rank for rank, name in enumerate(short)}
    shared_from = np.array([max(rank, place[name]) for rank, name in enumerate(long) if name in place], dtype=np.int64)
    return np.cumsum(np.bincount(shared_from, minlength=len(long))).astype(np.float64)


def overlap_at_k(first: Order, second: Order, k: int) -> float:
    """Return the share of ids that the first `k` of both orders have in common, in 0..1.

    If both orders are shorter than `k`, the divisor is the length of the longer order. So two equal short
    lists score 1. The result is NaN if both orders are empty. Equal scores of a mapping are ordered by id.

    Raises:
        ValueError: k < 1, an id occurs twice, or a score is NaN.
    """
    if k < 1:
        raise ValueError(f"the cutoff must be at least 1, got {k}")
    heads = _sequence(first)[:k], _sequence(second)[:k]
    longest = max(map(len, heads))
    return len(set(heads[0]) & set(heads[1])) / longest if longest else math.nan


def _scores(order: Order) -> Mapping[str, float]:
    """Return scores by id, higher is better; the ids of a sequence get descending scores."""
    if isinstance(order, Mapping):
        for name, score in order.items():
            if math.isnan(score):
                raise ValueError(f"the score of {name!r} is not a number")
        return order
    if len(set(order)) != len(order):
        raise ValueError(f"the order contains {next(name for name in order if order.count(name) > 1)!r} twice")
    return {name: float(-rank) for rank, name in enumerate(order)}


def _sequence(order: Order) -> list[str]:
    scores = _scores(order)
    return sorted(scores, key=lambda name: (-scores[name], name))


def _shared_scores(first: Order, second: Order) -> tuple[Floats, Floats]:
    ours, theirs = _scores(first), _scores(second)
    names = [name for name in ours if name in theirs]
    return np.array([float(ours[name]) for name in names]), np.array([float(theirs[name]) for name in names])


def _varied(first: Floats, second: Floats) -> bool:
    return first.size > 1 and bool((first != first[0]).any() and (second != second[0]).any())
