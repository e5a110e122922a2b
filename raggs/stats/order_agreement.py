"""Order against order: how alike two rankings of passages, or of systems, are.

An order is a sequence of different ids, best first, or a mapping of ids to scores, higher is better, which may hold
ties. Correlations look at the ids that both orders hold; RBO and overlap look at prefixes and so at all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats

Order = Sequence[str] | Mapping[str, float]


@dataclass(frozen=True)
class RBO:
    """Rank-biased overlap of two lists of which only the beginnings are known.

    Attributes:
        extrapolated: if the lists went on to agree as they do so far: RBO_ext, in 0..1; NaN where a list is empty.
        minimum: if nothing that follows agreed.
        residual: what is added to `minimum` if everything that follows agreed as much as it can.
    """

    extrapolated: float
    minimum: float
    residual: float


@dataclass(frozen=True)
class OrderAgreement:
    """Two orders by every measure of this module, at one p and k.

    Attributes:
        tau_b, spearman: in -1..1, over the shared ids.
        tau_ap: of the second order against the first as the truth, in -1..1, over the shared ids.
        tau_ap_symmetric: the mean of both directions.
        rbo: over all ids.
        overlap: of the two heads, in 0..1.
        shared, only_first, only_second: how many ids both hold, and one alone.
    """

    tau_b: float
    tau_ap: float
    tau_ap_symmetric: float
    spearman: float
    rbo: RBO
    overlap: float
    shared: int
    only_first: int
    only_second: int


def compare_orders(first: Order, second: Order, *, p: float = 0.9, k: int = 10) -> OrderAgreement:
    """Everything at once.

    Args:
        first: the truth, where a measure takes one side for it.
        second: the order held against it.
        p: of `rbo`.
        k: of `overlap_at_k`.

    Raises:
        ValueError: as the single measures.
    """
    shared = len(_scores(first).keys() & _scores(second).keys())
    return OrderAgreement(
        tau_b=kendall_tau_b(first, second),
        tau_ap=tau_ap(first, second),
        tau_ap_symmetric=tau_ap(first, second, symmetric=True),
        spearman=spearman(first, second),
        rbo=rbo(first, second, p=p),
        overlap=overlap_at_k(first, second, k),
        shared=shared,
        only_first=len(first) - shared,
        only_second=len(second) - shared,
    )


def kendall_tau_b(first: Order, second: Order) -> float:
    """Kendall's tau-b over the shared ids, in -1..1; NaN below two of them or where one side ties them all.

    Raises:
        ValueError: an id stands twice, or a score is NaN.
    """
    from scipy.stats import kendalltau

    pair = _shared_scores(first, second)
    return float(kendalltau(*pair).statistic) if _varied(*pair) else math.nan


def spearman(first: Order, second: Order) -> float:
    """Spearman's rho over the shared ids, ties at their mean rank, in -1..1; NaN as for `kendall_tau_b`.

    Raises:
        ValueError: an id stands twice, or a score is NaN.
    """
    from scipy.stats import spearmanr

    pair = _shared_scores(first, second)
    return float(spearmanr(*pair).statistic) if _varied(*pair) else math.nan


def tau_ap(truth: Order, estimate: Order, *, symmetric: bool = False) -> float:
    """AP correlation over the shared ids: Kendall's tau with the weight on the head of the estimate.

    2 / (n - 1) * sum over i = 2..n of C(i) / (i - 1), minus 1, where C(i) is the number of items above rank i of the
    estimate that the truth, too, places above the item at rank i. Yilmaz, Aslam and Robertson, "A new rank
    correlation coefficient for information retrieval", SIGIR 2008. Ties, on either side: the expected value over
    all ways of breaking them.

    Args:
        truth: the order that decides what is right.
        estimate: the order whose head counts most.
        symmetric: the mean of both directions.

    Returns:
        In -1..1; NaN below two shared ids.

    Raises:
        ValueError: an id stands twice, or a score is NaN.
    """
    true, estimated = _shared_scores(truth, estimate)
    if true.size < 2:
        return math.nan
    if symmetric:
        return (_tau_ap(true, estimated) + _tau_ap(estimated, true)) / 2
    return _tau_ap(true, estimated)


def _tau_ap(true: Floats, estimated: Floats) -> float:
    """Group by group of equal estimates: each member is as likely as the next to stand at each of their ranks.

    It is right against those above as far as the truth says so (a tie is half right), and, by symmetry, against half
    of the members that come before it.
    """
    total = 0.0
    for level in np.unique(estimated):
        members, above = true[estimated == level], true[estimated > level]
        right = (above > members[:, None]).sum() + (above == members[:, None]).sum() / 2
        before = np.arange(members.size)
        ranks = above.size + before  # counted from 0
        counts = right / members.size + before / 2
        total += float((counts[ranks > 0] / ranks[ranks > 0]).sum())
    return 2 * total / (true.size - 1) - 1


def rbo(first: Order, second: Order, *, p: float = 0.9) -> RBO:
    """Rank-biased overlap: the mean agreement of two prefixes under a reader who goes on with probability `p`.

    Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", TOIS 28(4), 2010: the extrapolation
    (equation 32) for lists of any two lengths; the bounds follow from the overlap that the unseen ranks can bring at
    least and at most. Equal scores of a mapping are put in the order of their ids.

    Args:
        first, second: need share nothing.
        p: inside 0..1; the first ten ranks carry 86% of the weight at 0.9.

    Raises:
        ValueError: p is not inside 0..1, an id stands twice, or a score is NaN.
    """
    if not 0 < p < 1:
        raise ValueError(f"p lies between 0 and 1, got {p}")
    short, long = sorted((_sequence(first), _sequence(second)), key=len)
    s, depth = len(short), len(long)
    overlap = _overlaps(short, long)
    final = float(overlap[-1]) if depth else 0.0
    d = np.arange(1, depth + 1)
    weights = (1 - p) / p * p**d / d
    # Beyond what is seen, at least `final` stays shared: the tail of the series of -log(1 - p).
    tail = -math.log1p(-p) * (1 - p) / p - float(weights.sum())
    minimum = float(weights @ overlap) + final * tail
    # At most, each unseen item of the shorter list, and then of both, matches one without a partner, until all do.
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
    """At each depth of the longer list, how many ids both prefixes hold; the shorter list ends where it ends."""
    place = {name: rank for rank, name in enumerate(short)}
    shared_from = np.array([max(rank, place[name]) for rank, name in enumerate(long) if name in place], dtype=np.int64)
    return np.cumsum(np.bincount(shared_from, minlength=len(long))).astype(np.float64)


def overlap_at_k(first: Order, second: Order, k: int) -> float:
    """The share of ids that the two heads of length `k` have in common, in 0..1.

    Where neither order is as long as `k`, of the longer one: two equal short lists overlap fully. NaN where both are
    empty. Equal scores of a mapping are put in the order of their ids.

    Raises:
        ValueError: k < 1, an id stands twice, or a score is NaN.
    """
    if k < 1:
        raise ValueError(f"a cutoff is at least 1, got {k}")
    heads = _sequence(first)[:k], _sequence(second)[:k]
    longest = max(map(len, heads))
    return len(set(heads[0]) & set(heads[1])) / longest if longest else math.nan


def _scores(order: Order) -> Mapping[str, float]:
    """Higher is better; a sequence counts down."""
    if isinstance(order, Mapping):
        for name, score in order.items():
            if math.isnan(score):
                raise ValueError(f"the score of {name!r} is not a number")
        return order
    if len(set(order)) != len(order):
        raise ValueError(f"the order names {next(name for name in order if order.count(name) > 1)!r} twice")
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
