"""What an index kept of the exact nearest passages, by query, as the six values that indexes are compared by.

Wang et al., "Towards Robustness: A Critique of Current Vector Database Assessments", 2025, sections 2 to 4: truth is
the list of the exact K nearest, so every divisor is K. Precision of a query averages over its K places and counts 0 for
what was missed; nDCG discounts by the place in the truth list, not in the index's own list, so that losing the nearest
passage costs most wherever it would have stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.metrics.measures.robustness import EPSILON

CELLS = 4_000_000  # comparisons held at a time
NOBODY = -1


@dataclass(frozen=True)
class Kept:
    """Values of shape (queries,), each in 0..1.

    Attributes:
        recall: the share of the exact K that was returned.
        ap: average precision at K.
        ndcg: at K, with the discount of each passage's place in the truth list.
        rr: reciprocal rank of the first returned passage that is among the exact K; 0 where there is none.
    """

    recall: Floats
    ap: Floats
    ndcg: Floats
    rr: Floats

    def reached(self, delta: float) -> Floats:
        """1 where recall is `delta` or more, rounding aside, else 0; its mean is Robustness-delta@K."""
        return np.asarray(self.recall >= delta - EPSILON, dtype=np.float64)

    def measures(self, deltas: Sequence[float]) -> Mapping[str, Floats]:
        """All of them by name: recall, map, ndcg, mrr, and ``r<delta>`` for each delta."""
        found = {"recall": self.recall, "map": self.ap, "ndcg": self.ndcg, "mrr": self.rr}
        return found | {robustness(delta): self.reached(delta) for delta in deltas}


def robustness(delta: float) -> str:
    """The name of Robustness-delta: "r0.3"."""
    return f"r{delta:g}"


def places(found: Ints, truth: Ints) -> Ints:
    """Shape (queries, k): where each returned passage stands in the truth list, from 0; -1 where it does not.

    Args:
        found: shape (queries, k), positions of passages, best first; -1 where an index found no more.
        truth: shape (queries, K), positions of the exact nearest, best first; none of them -1.

    Raises:
        ValueError: not as many lists as truths, or a truth that is shorter than K.
    """
    if len(found) != len(truth) or (truth < 0).any():
        raise ValueError(f"{len(found)} lists for {len(truth)} truths, each of which is to be whole")
    step = max(1, CELLS // max(found.shape[1] * truth.shape[1], 1))
    result = np.full(found.shape, NOBODY, dtype=np.int64)
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        same = found[part][:, :, None] == truth[part][:, None, :]
        result[part] = np.where(same.any(axis=2), same.argmax(axis=2), NOBODY)
    return result


def kept(found: Ints, truth: Ints) -> Kept:
    """What of `truth` the first K of `found` hold; arguments and errors as `places`."""
    k = truth.shape[1]
    at = places(found[:, :k], truth)
    there = at >= 0
    ranks = np.arange(1, at.shape[1] + 1)
    precision = np.cumsum(there, axis=1) / ranks
    gains = np.where(there, 1 / np.log2(at + 2.0, where=there, out=np.ones(at.shape)), 0.0)
    first = np.where(there.any(axis=1), there.argmax(axis=1), -1)
    return Kept(
        recall=there.sum(axis=1) / k,
        ap=(precision * there).sum(axis=1) / k,
        ndcg=gains.sum(axis=1) / (1 / np.log2(np.arange(2, k + 2))).sum(),
        rr=np.where(first >= 0, 1 / np.maximum(first + 1, 1), 0.0),
    )
