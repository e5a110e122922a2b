"""What precision makes of scores: ties, what their order makes of a measure at each cutoff, whom that favours.

A score is phi(z): a product of two vectors, the sigmoid of a logit, the softmax over two of them, of which the second
is "yes". In few bits z is rounded, and phi's value again; with high-precision scoring (HPS) phi is computed in float32
and not rounded again, so that only what was lost in z is lost. The score as it stands ("oblivious") takes equal scores
in the order of the file. Source: "Reliable Evaluation Protocol for Low-Precision Retrieval", sections 2.2, 2.3 and 3.2;
expectations by McSherry and Najork 2008. That equal orders are leaks of labels is tested here by signs.
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
EPSILON = 1e-12  # rounding of means


@dataclass(frozen=True)
class PrecisionRegime:
    """A precision: of what the parts of a score are rounded to, and whether the last step is not."""

    dtype: Dtype
    hps: bool = False

    @property
    def name(self) -> str:
        """``bf16``, or ``bf16+HPS``."""
        return f"{self.dtype}+HPS" if self.hps else self.dtype

    def part(self, values: Vectors) -> Vectors:
        """The parts of a score, rounded."""
        return round_to_dtype(values, self.dtype)

    def last(self, values: Vectors) -> Vectors:
        """What the last step gave in float32: as it is, or rounded again."""
        return values if self.hps else round_to_dtype(values, self.dtype)


REGIMES = (
    PrecisionRegime("f32"),
    PrecisionRegime("f16"),
    PrecisionRegime("f16", hps=True),
    PrecisionRegime("bf16"),
    PrecisionRegime("bf16", hps=True),
)


def products(queries: Vectors, passages: Vectors, regime: PrecisionRegime) -> Vectors:
    """Shape (queries, passages): products of rounded vectors, summed in float32, rounded again without HPS."""
    return regime.last((regime.part(queries) @ regime.part(passages).T).astype(np.float32))


def activated(form: ScoreForm, logits: Vectors, regime: PrecisionRegime) -> Vectors:
    """Scores of logits.

    Args:
        form: "sigmoid", "softmax", or "score": as they are.
        logits: what a model gave, shape (n,), of a softmax (n, 2).
        regime: at which precision.

    Raises:
        ValueError: a product is none of logits.
    """
    parts = regime.part(logits)
    match form:
        case "sigmoid":
            return regime.last(_sigmoid(parts))
        case "softmax":
            return regime.last(_sigmoid(parts[:, 1] - parts[:, 0]))
        case "score":
            return regime.last(parts)
    raise ValueError(f"{form} is not made of logits")


def _sigmoid(logits: Vectors) -> Vectors:
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)


def best_with_ties(scores: Vectors, depth: int) -> Ints:
    """The places of the best `depth` of one row of scores, and of all that tie with the last of them, ascending."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    return np.flatnonzero(scores >= least)


def largest_tie(scores: Vectors) -> int:
    """How many of one row of scores are equal at most."""
    return int(np.unique(scores, return_counts=True)[1].max()) if len(scores) else 0


# --- what the order of ties makes of a measure ------------------------------------------------------------------


@dataclass(frozen=True)
class TieSpread:
    """A measure of each question under ties, shape (queries,) each; NaN where it is not defined.

    Attributes:
        oblivious: by the order of the file. `expected`: the mean over all orders.
        least, most: over all orders.
    """

    oblivious: Floats
    expected: Floats
    least: Floats
    most: Floats

    @property
    def range(self) -> Floats:
        """most - least."""
        return self.most - self.least

    @property
    def bias(self) -> Floats:
        """oblivious - expected."""
        return self.oblivious - self.expected


class TieSpreads:
    """Measures of one system at any cutoff; what does not hang on the cutoff is done once.

    Args:
        hits: the system, its ties in the order of the file.
        measure: a name without a cutoff, such as "ndcg".
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
        """At a cutoff."""
        measure, hits = replace(self._measure, k=k), self._hits
        plain = measure.score(hits)
        if not self._tied:
            return TieSpread(plain, plain, plain, plain)
        if self._ends is None:
            return TieSpread(plain, measure.expected(hits), measure.extreme(hits, False), measure.extreme(hits, True))
        least, most = self._ends
        return TieSpread(plain, measure.expected(hits), measure.score(least), measure.score(most))


# --- systems that change places, labels that leak ---------------------------------------------------------------


@dataclass(frozen=True)
class Reversal:
    """Two systems of which one is better by the score as it stands, and the other by its expectation.

    Attributes:
        first, second: their names; the first is better as it stands.
        oblivious: by how much, > 0; `expected`: the difference of expectations, < 0.
        differences: of the expectations, shape (queries,).
    """

    first: str
    second: str
    oblivious: float
    expected: float
    differences: Floats


def reversals(systems: Mapping[str, TieSpread]) -> Iterator[Reversal]:
    """The pairs whose order flips; a difference of rounding is none.

    Args:
        systems: by name, of the same questions.
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
    """How many questions the order of the file favours, and how many it disfavours.

    Attributes:
        up, down: questions of a bias above 0, and below.
        p: that as one-sided a split or more is chance (sign test, two-sided); 1 without any.
    """

    up: int
    down: int
    p: float


def signs(bias: Sequence[float] | Floats) -> SignCounts:
    """The signs of the biases of questions; 0 and NaN say nothing."""
    found = np.asarray(bias, dtype=np.float64)
    up, down = int((found > EPSILON).sum()), int((found < -EPSILON).sum())
    total, few = up + down, min(up, down)
    tail = sum(math.comb(total, count) for count in range(few + 1)) / 2**total
    return SignCounts(up, down, min(1.0, 2 * tail) if total else 1.0)
