"""Effect of numeric precision on scores: ties, their effect on a measure at each cutoff, and bias of the file's order.

A score is phi(z): a product of two vectors, the sigmoid of a logit, or the softmax over two logits of which the second
is "yes". At low precision, the vectors or logits are rounded, and the score is rounded again. High-precision scoring
(HPS) computes the score in float32 from the rounded inputs and does not round it. The "oblivious" value of a measure is
computed with tied passages in file order. Source: "Reliable Evaluation Protocol for Low-Precision Retrieval", sections
2.2, 2.3 and 3.2. Expectations over ties follow McSherry and Najork 2008. If tied passages are systematically ordered by
relevance, labels have probably leaked into the file's order. A sign test checks this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from raggs.base.arrays import Dtype, Floats, Ints, Vectors, round_to_dtype
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure
from raggs.metrics.names import parse_measure

ScoreForm = Literal["product", "sigmoid", "softmax", "score"]
EPSILON = 1e-12  # means whose difference is below this differ only by rounding


@dataclass(frozen=True)
class PrecisionRegime:
    """A precision: the type to which inputs of a score are rounded, and whether the score itself stays unrounded
    (HPS).
    """

    dtype: Dtype
    hps: bool = False

    @property
    def name(self) -> str:
        """Name such as ``bf16`` or ``bf16+HPS``."""
        return f"{self.dtype}+HPS" if self.hps else self.dtype

    def part(self, values: Vectors) -> Vectors:
        """Return the inputs of a score, rounded to the precision."""
        return round_to_dtype(values, self.dtype)

    def last(self, values: Vectors) -> Vectors:
        """Return the final float32 score: unchanged with HPS, else rounded."""
        return values if self.hps else round_to_dtype(values, self.dtype)


REGIMES = (
    PrecisionRegime("f32"),
    PrecisionRegime("f16"),
    PrecisionRegime("f16", hps=True),
    PrecisionRegime("bf16"),
    PrecisionRegime("bf16", hps=True),
)


def products(queries: Vectors, passages: Vectors, regime: PrecisionRegime) -> Vectors:
    """Return products of rounded vectors, shape (queries, passages).

    Products are summed in float32, and the sum is rounded again, except with HPS.
    """
    return regime.last((regime.part(queries) @ regime.part(passages).T).astype(np.float32))


def activated(form: ScoreForm, logits: Vectors, regime: PrecisionRegime) -> Vectors:
    """Compute scores from logits.

    Args:
        form: "sigmoid", "softmax", or "score" (the logits themselves).
        logits: output of a model, shape (n,), or (n, 2) for a softmax.
        regime: precision of the computation.

    Raises:
        ValueError: `form` is "product", which has no logits.
    """
    parts = regime.part(logits)
    match form:
        case "sigmoid":
            return regime.last(_sigmoid(parts))
        case "softmax":
            return regime.last(_sigmoid(parts[:, 1] - parts[:, 0]))
        case "score":
            return regime.last(parts)
    raise ValueError(f"the form {form!r} has no logits")


def _sigmoid(logits: Vectors) -> Vectors:
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)


def best_with_ties(scores: Vectors, depth: int) -> Ints:
    """Return the indices of the best `depth` scores of one row and of all scores tied with the last, ascending."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    return np.flatnonzero(scores >= least)


def largest_tie(scores: Vectors) -> int:
    """Return the size of the largest group of equal scores in one row."""
    return int(np.unique(scores, return_counts=True)[1].max()) if len(scores) else 0


# --- effect of the order of ties on a measure ---------------------------------------------------------------------


@dataclass(frozen=True)
class TieSpread:
    """Values of a measure under ties, each of shape (queries,); NaN if undefined.

    Attributes:
        oblivious: value with tied passages in file order.
        expected: mean over all orders of the ties.
        least, most: minimum and maximum over all orders of the ties.
    """

    oblivious: Floats
    expected: Floats
    least: Floats
    most: Floats

    @property
    def range(self) -> Floats:
        """Difference between `most` and `least`."""
        return self.most - self.least

    @property
    def bias(self) -> Floats:
        """Difference `oblivious` minus `expected`."""
        return self.oblivious - self.expected


class TieSpreads:
    """Tie spreads of one system at any cutoff. Values that do not depend on the cutoff are computed only once.

    Args:
        hits: hits of the system, with tied passages in file order.
        measure: name of the measure without a cutoff, such as "ndcg".
    """

    def __init__(self, hits: Hits, measure: str) -> None:
        self._hits, self._measure = hits, parse_measure(f"{measure}@1").measure
        self._measure.check(hits)
        self._tied = bool((hits.size > 1).any())
        self._ends: tuple[Hits, Hits] | None = None
        if self._tied and type(self._measure).extreme is Measure.extreme:
            weights = hits.weigh(self._measure.table(hits.qrels))
            self._ends = hits.arranged(-weights), hits.arranged(weights)

    def at(self, k: int) -> TieSpread:
        """Return the spread at a cutoff."""
        measure, hits = replace(self._measure, k=k), self._hits
        plain = measure.score(hits)
        if not self._tied:
            return TieSpread(plain, plain, plain, plain)
        if self._ends is None:
            return TieSpread(plain, measure.expected(hits), measure.extreme(hits, False), measure.extreme(hits, True))
        least, most = self._ends
        return TieSpread(plain, measure.expected(hits), measure.score(least), measure.score(most))


# --- reversed system pairs, leaked labels -------------------------------------------------------------------------


@dataclass(frozen=True)
class Reversal:
    """Two systems whose order by oblivious values is the reverse of their order by expected values.

    Attributes:
        first, second: names of the systems; the first has the higher oblivious value.
        oblivious: difference of the oblivious means, first minus second; above 0.
        expected: difference of the expected means, first minus second; below 0.
        differences: difference of the expected values, shape (queries,).
    """

    first: str
    second: str
    oblivious: float
    expected: float
    differences: Floats


def reversals(systems: Mapping[str, TieSpread]) -> Iterator[Reversal]:
    """Yield the pairs of systems whose order is reversed; differences by rounding are ignored.

    Args:
        systems: tie spreads by name, for the same questions.
    """
    for one, other in combinations(systems, 2):
        stood, meant = (
            (systems[one].oblivious - systems[other].oblivious),
            systems[one].expected - systems[other].expected,
        )
        if not np.isfinite(stood).any():
            continue
        oblivious, expected = float(np.nanmean(stood)), float(np.nanmean(meant))
        if abs(oblivious) > EPSILON and abs(expected) > EPSILON and oblivious * expected < 0:
            turned = oblivious < 0
            first, second, sign = (other, one, -1.0) if turned else (one, other, 1.0)
            yield Reversal(first, second, sign * oblivious, sign * expected, sign * meant)


@dataclass(frozen=True)
class SignCounts:
    """Number of questions for which the file's order is better than expected, and worse.

    Attributes:
        up, down: number of questions with a positive bias, and with a negative bias.
        p: two-sided p of the sign test; 1 if no question has a bias.
    """

    up: int
    down: int
    p: float


def signs(bias: Sequence[float] | Floats) -> SignCounts:
    """Count the signs of the questions' biases; 0 and NaN are ignored."""
    found = np.asarray(bias, dtype=np.float64)
    up, down = int((found > EPSILON).sum()), int((found < -EPSILON).sum())
    total, few = up + down, min(up, down)
    tail = sum(math.comb(total, count) for count in range(few + 1)) / 2**total
    return SignCounts(up, down, min(1.0, 2 * tail) if total else 1.0)
