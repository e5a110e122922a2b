"""Fuse ranked lists, group near-duplicates of a pool, and find the consensus of several orders.

Fusion: a method gives points to each hit of a list (see `Fusion`); the score of a passage is the weighted sum of its
points over the lists. CombMNZ multiplies this sum. Equal inputs give bit-identical scores: lists are summed in the
order of their names, and tied passages are sorted by doc_id.

- CombSUM: sum of normalised scores. Fox and Shaw, "Combination of multiple searches", TREC-2, 1994. Scores are min-max
  normalised within each list, because retrievers have different units. If all scores of a list are equal, each becomes
  1.
- CombMNZ: CombSUM times the number of lists that found the passage. Fox and Shaw, 1994.
- Reciprocal rank fusion: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual
  rank learning methods", SIGIR 2009, with k = 60.

Near-duplicates (`group_duplicates`): the similarity of two texts is 2 * L / (m + n). m and n are their numbers of
words, and L is the length of the longest common subsequence of words. A word is a run of letters or digits; case, the
encoding of accents and punctuation are ignored. At a threshold of 0.95, two passages of 200 words may differ in ten
words. A passage joins the first group whose representative it is similar to. It is not compared with other members, so
a chain of small differences cannot join dissimilar texts. A text is compared with all representatives, but only with
few of them word by word. For the others, a histogram of hashed words shows that they cannot be similar enough. The
word-by-word comparison uses rapidfuzz's bit-parallel algorithm, on texts in which each distinct word is one character.

Consensus (`consensus_order`): Kemeny's rule finds the order with the least total disagreement with the given orders.
Each pair that a given order ranks differently adds the weight of this order (Kemeny 1959; Young and Levenglick 1978:
the only rule that is neutral, consistent and Condorcet). For up to `EXACT` items, it is found exactly, by dynamic
programming over the 2^n sets of items. For more items, they are sorted by mean rank (Borda). Of tied orders, the one
that agrees most with the first given order is chosen. The numbering of the items has no influence.
"""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raggs.base.arrays import SmallInts
from raggs.base.registry import Registry

__all__ = ["REGISTRY", "FusedPassage", "Fusion", "ScoredList", "fuse", "fusion_options", "make_fusion"]

ScoredList = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class FusedPassage:
    """A passage of the fused list. `sources` maps each list that found the passage to its rank there, counted from
    1, and its score.
    """

    doc_id: str
    score: float
    sources: dict[str, tuple[int, float]]


class Fusion(ABC):
    """A fusion method. The first line of its docstring is its description in `raggs list fusions`.

    The options of a method are the keyword arguments of its constructor. Each has a default. The constructor raises a
    ValueError for an invalid value.
    """

    VERSION: ClassVar[int] = 1  # increased by a change of the code after which equal lists are fused differently

    def __init__(self, **options: float) -> None:
        if options:
            raise ValueError(f"unknown option {next(iter(options))!r}")

    @abstractmethod
    def points(self, hits: ScoredList) -> list[float]:
        """Return the points of each hit of a list, 0 or more. The hits are sorted best first."""

    def total(self, points: float, lists: int) -> float:
        """Return the score of a passage. `points` is the weighted sum of its points over the lists that found it.
        `lists` is the number of these lists, without those of weight 0.
        """
        return points


REGISTRY: Registry[Fusion] = Registry(
    "fusion",
    "fusions",
    "raggs.ranking.fusion:Fusion",
    {
        "rrf": "raggs.ranking.fusion:Rrf",
        "combsum": "raggs.ranking.fusion:CombSum",
        "combmnz": "raggs.ranking.fusion:CombMnz",
    },
)


def fusion_options(method: str) -> list[str]:
    """Return the names of the options of a method.

    Raises:
        UsageError: no method has this name.
    """
    parameters = inspect.signature(REGISTRY.load(method)).parameters.values()
    return [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]


def make_fusion(method: str, **options: float) -> Fusion:
    """Return the named fusion method, with these options.

    Raises:
        UsageError: no method has this name.
        ValueError: the method has no such option, or a value is out of range.
    """
    known = fusion_options(method)
    if unknown := sorted(options.keys() - set(known)):
        raise ValueError(f"fusion {method} has no option {unknown[0]!r}; known: {', '.join(known) or 'none'}")
    return REGISTRY.load(method)(**options)


def fuse(
    lists: Mapping[str, ScoredList], method: Fusion, *, weights: Mapping[str, float] | None = None, depth: int = 100
) -> list[FusedPassage]:
    """Return the `depth` best passages over all lists.

    Args:
        lists: for each retriever, its (doc_id, score) pairs, best first; each doc_id occurs once.
        method: fusion method.
        weights: weight of each retriever, 0 or more; 1 if missing. A list of weight 0 adds no passages and no points.
        depth: maximum number of passages to return, at least 1.

    Returns:
        Passages by descending score; ties by ascending doc_id.

    Raises:
        ValueError: a doc_id occurs twice in a list, a score or weight is not finite, or a weight is negative.
    """
    weight_of = {name: _checked_weight(name, (weights or {}).get(name, 1.0)) for name in sorted(lists)}
    sums: dict[str, float] = {}
    sources: dict[str, dict[str, tuple[int, float]]] = {}
    for name, weight in weight_of.items():
        hits = _checked_hits(name, lists[name])
        for rank, ((doc_id, score), points) in enumerate(zip(hits, method.points(hits), strict=True), 1):
            sources.setdefault(doc_id, {})[name] = (rank, score)
            if weight > 0:
                sums[doc_id] = sums.get(doc_id, 0.0) + weight * points
    totals = {
        doc_id: method.total(points, sum(weight_of[name] > 0 for name in sources[doc_id]))
        for doc_id, points in sums.items()
    }
    best = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:depth]
    return [FusedPassage(doc_id, total, sources[doc_id]) for doc_id, total in best]


def _checked_weight(name: str, weight: float) -> float:
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} must be a finite number of at least 0, got {weight}")
    return weight


def _checked_hits(name: str, hits: ScoredList) -> ScoredList:
    seen: set[str] = set()
    for doc_id, score in hits:
        if doc_id in seen:
            raise ValueError(f"the list {name!r} contains {doc_id!r} twice")
        if not math.isfinite(score):
            raise ValueError(f"the list {name!r} gives {doc_id!r} the score {score}")
        seen.add(doc_id)
    return hits


class CombSum(Fusion):
    """Sum of scores, after the scores of each list are scaled to 0..1."""

    def points(self, hits: ScoredList) -> list[float]:
        """Return the scores, min-max normalised within the list. If all scores are equal, each becomes 1."""
        if not hits:
            return []
        scores = [score for _, score in hits]
        low, high = min(scores), max(scores)
        if low == high:
            return [1.0] * len(scores)
        # halves huge scores, so that their difference does not overflow
        unit = 1.0 if math.isfinite(high - low) else 0.5
        return [(score * unit - low * unit) / (high * unit - low * unit) for score in scores]


class CombMnz(CombSum):
    """CombSUM times the number of lists that found the passage."""

    def total(self, points: float, lists: int) -> float:
        """Return `points` times the number of lists that found the passage."""
        return points * lists


class Rrf(Fusion):
    """Reciprocal rank fusion: the sum of 1 / (k + rank).

    Args:
        k: constant of the formula, >= 1. A larger k gives less weight to the first ranks. The configuration sets it as
            `merge.k`.

    Raises:
        ValueError: `k` is below 1.
    """

    def __init__(self, k: float = 60) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        self.k = k

    def points(self, hits: ScoredList) -> list[float]:
        """Return 1 / (k + rank) for each hit, with ranks from 1."""
        return [1 / (self.k + rank) for rank in range(1, len(hits) + 1)]


WORD_PATTERN = re.compile(r"[^\W_]+")
BUCKETS = 256


def group_duplicates(texts: Sequence[str], threshold: float) -> list[int]:
    """Return for each text the position of its group's representative, which is the first text of the group.

    Args:
        texts: texts, best first, with at most 1,114,112 different words in total.
        threshold: minimum similarity of near-duplicates (see module docstring), above 0 and at most 1.

    Raises:
        ValueError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold must be above 0 and at most 1, got {threshold}")
    from rapidfuzz.distance import Indel  # imported lazily: only pools with texts need it

    coded = _encode(texts)
    histograms = _histograms(coded)
    leader_of: dict[str, int] = {}
    heads: list[int] = []
    for position, text in enumerate(coded):
        if text in leader_of:  # the words are the same as in an earlier text
            continue
        leader_of[text] = position
        for head, limit in _plausible(histograms[position], histograms, heads, threshold):
            if Indel.distance(text, coded[head], score_cutoff=limit) <= limit:
                leader_of[text] = head
                break
        else:
            heads.append(position)
    return [leader_of[text] for text in coded]


def _encode(texts: Sequence[str]) -> list[str]:
    """Return each text with one character per word; equal words have equal characters in all texts.

    A text without any word counts as one special word, so that it is similar only to equal texts.
    """
    codes: dict[str, str] = {}
    coded = []
    for text in texts:
        plain = unicodedata.normalize("NFKC", text).casefold()
        words = WORD_PATTERN.findall(plain) or [plain.strip()]
        coded.append("".join([codes.setdefault(word, chr(len(codes))) for word in words]))
    return coded


def _histograms(coded: Sequence[str]) -> SmallInts:
    """Return the number of words of each text in each hash bucket, shape (len(coded), BUCKETS)."""
    table = np.zeros((len(coded), BUCKETS), dtype=np.int32)
    for row, text in zip(table, coded, strict=True):
        words = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        row += np.bincount(words % BUCKETS, minlength=BUCKETS).astype(np.int32)
    return table


def _plausible(
    histogram: SmallInts, histograms: SmallInts, heads: Sequence[int], threshold: float
) -> Iterator[tuple[int, int]]:
    """Yield each representative that may be similar enough by its histogram, and how many words may differ."""
    others = histograms[list(heads)]
    total = others.sum(axis=1) + histogram.sum()
    # Limits of m + n - 2 L. The small summand is harmless, because m + n - 2 L is a whole number.
    limits = np.floor((1 - threshold) * total + 1e-9).astype(np.int64)
    apart = total - 2 * np.minimum(others, histogram).sum(axis=1)
    for place in np.flatnonzero(apart <= limits).tolist():
        yield heads[place], int(limits[place])


EXACT = 10

Cost = tuple[float, int]


def consensus_order(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> tuple[int, ...]:
    """Return the consensus of `orders`, by Kemeny's rule or, for many items, by Borda's (see module docstring).

    Args:
        orders: at least one order; each is a permutation of 0..n-1, best first.
        weights: one weight per order, above 0.

    Raises:
        ValueError: no order is given, or the numbers of orders and weights differ.
    """
    if not orders:
        raise ValueError("a consensus needs at least one order")
    # Items are renumbered by their rank in the first order, so that ties are resolved as in the first order.
    names = orders[0]
    name = {thing: place for place, thing in enumerate(names)}
    renamed = [[name[thing] for thing in order] for order in orders]
    found = _kemeny(renamed, weights) if len(names) <= EXACT else _borda(renamed, weights)
    return tuple(names[thing] for thing in found)


def _kemeny(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    size = len(orders[0])
    worse = _disagreements(orders, weights)
    everything = (1 << size) - 1
    # for each set of items ranked below all others: the least cost of ordering them, and the item on top
    best: list[tuple[Cost, int]] = [((0.0, 0), -1)] * (everything + 1)
    for members in range(1, everything + 1):
        best[members] = min(
            (_added(best[members ^ (1 << top)][0], worse[top], members ^ (1 << top)), top)
            for top in range(size)
            if members >> top & 1
        )
    order, left = [], everything
    while left:
        top = best[left][1]
        order.append(top)
        left ^= 1 << top
    return order


def _disagreements(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[list[Cost]]:
    """Return for each pair the cost of ranking i above j: the total weight of the orders that disagree, and for
    ties, 1 if the first order disagrees.
    """
    size = len(orders[0])
    worse = [[(0.0, int(i > j)) for j in range(size)] for i in range(size)]
    for order, weight in zip(orders, weights, strict=True):
        for place, above in enumerate(order):
            for below in order[place + 1 :]:
                cost, casting = worse[below][above]
                worse[below][above] = (round(cost + weight, 9), casting)
    return worse


def _added(cost: Cost, worse: Sequence[Cost], below: int) -> Cost:
    """Return the cost of the order of `below`, with an item ranked above all of them. `worse` has the costs of this
    item's pairs.
    """
    total, casting = cost
    for thing, (more, against) in enumerate(worse):
        if below >> thing & 1:
            total, casting = total + more, casting + against
    return round(total, 9), casting  # rounded, so that equal sums tie in any order of summation


def _borda(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    """Return the items sorted by their weighted sum of ranks. Ties are resolved as in the first order."""
    ranks = [0.0] * len(orders[0])
    for order, weight in zip(orders, weights, strict=True):
        for rank, thing in enumerate(order):
            ranks[thing] += weight * rank
    return sorted(range(len(ranks)), key=lambda thing: (round(ranks[thing], 9), thing))
