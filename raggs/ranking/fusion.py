"""Several retrievers' lists made into one: a registry of small scoring methods, and one loop around them.

Pure: ranks and scores in, a fused list out. A method gives each list's hits their points (see `Fusion`); what a
passage gets is the weighted sum over the lists. Equal inputs give equal bytes: lists are added up in the order of their
names, ties go to the smaller doc_id.

What a fusion method is: it says what each hit of a list is worth; the loop around it is
`raggs.ranking.fusion.fuse`.

CombSUM in favour of what many lists found. Fox and Shaw, "Combination of multiple searches", TREC-2, 1994.

The sum of normalised scores. Fox and Shaw, "Combination of multiple searches", TREC-2, 1994.

Scores are min-max normalised within each list, since retrievers count in different units; a list whose scores are all
equal gives 1 to each.

Reciprocal rank fusion.

Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
SIGIR 2009, where k = 60.

Near-duplicates in a pool, so that a judge is not asked the same question twice.

Two texts agree to the degree 2 * L / (m + n), where m and n are their numbers of words and L is the length of
the longest common subsequence of words: the share of words, over both texts, that stand in the same order in
both. A word is a run of letters or digits; case, accents' encoding and punctuation do not count. At a threshold
of 0.95, two passages of 200 words each may differ in ten words.

Groups are tight: a passage joins the first representative that it agrees with, never a mere member, so no chain
of small differences ties far texts together. All pairs are compared (that is the definition), but few of them
word by word: a histogram of hashed words bounds the agreement from above, and rapidfuzz's bit-parallel
algorithm does the rest over texts in which each distinct word is one character.

The order that several orders of the same few things come to.

Kemeny's rule: of all orders the one with the fewest disagreements with those given, a disagreement being a pair that
two orders place contrarily, times the weight of the order given (Kemeny 1959; Young and Levenglick 1978: the only rule
that is neutral, consistent and Condorcet). Found exactly up to `EXACT` things by dynamic programming over sets, with
2^n steps; beyond, Borda's mean ranks stand in. Ties go to the order that agrees most with the first one given, whose
giver thereby has the casting vote; how the things were numbered has no say.
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
    """A passage of the fused list. `sources`: (rank from 1, score) by the lists that found it."""

    doc_id: str
    score: float
    sources: dict[str, tuple[int, float]]


class Fusion(ABC):
    """A method. The first line of its docstring is its line in `raggs list fusions`.

    The keywords of its constructor are its options, each with a default and checked there (ValueError).
    """

    VERSION: ClassVar[int] = 1  # raised when equal lists are fused otherwise

    def __init__(self, **options: float) -> None:
        if options:
            raise ValueError(f"there is no option {next(iter(options))!r}")

    @abstractmethod
    def points(self, hits: ScoredList) -> list[float]:
        """What each hit of a list, best first, is worth; from 0 up."""

    def total(self, points: float, lists: int) -> float:
        """What a passage gets: `points` is the weighted sum over the `lists` that found it and have a weight."""
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
    """The options of a method.

    Raises:
        UsageError: no such method.
    """
    parameters = inspect.signature(REGISTRY.load(method)).parameters.values()
    return [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]


def make_fusion(method: str, **options: float) -> Fusion:
    """The method with its options.

    Raises:
        UsageError: no such method.
        ValueError: it has no such option, or the value cannot be right.
    """
    known = fusion_options(method)
    if unknown := sorted(options.keys() - set(known)):
        raise ValueError(f"fusion {method} has no option {unknown[0]!r}; known: {', '.join(known) or 'none'}")
    return REGISTRY.load(method)(**options)


def fuse(
    lists: Mapping[str, ScoredList], method: Fusion, *, weights: Mapping[str, float] | None = None, depth: int = 100
) -> list[FusedPassage]:
    """The `depth` best passages over all lists.

    Args:
        lists: by retriever, (doc_id, score) best first, each doc_id once.
        method: says what a hit is worth.
        weights: by retriever, 0 or more; 1 where not named. A list of weight 0 brings no passage in.
        depth: how many passages are kept; at least 1.

    Returns:
        Score descending, then doc_id ascending.

    Raises:
        ValueError: a doc_id twice in a list, a score or weight that is not a number, a weight below 0.
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
        raise ValueError(f"the weight of {name!r} is {weight}; a weight is a number from 0 up")
    return weight


def _checked_hits(name: str, hits: ScoredList) -> ScoredList:
    seen: set[str] = set()
    for doc_id, score in hits:
        if doc_id in seen:
            raise ValueError(f"the list {name!r} names {doc_id!r} twice")
        if not math.isfinite(score):
            raise ValueError(f"the list {name!r} gives {doc_id!r} the score {score}")
        seen.add(doc_id)
    return hits


class CombSum(Fusion):
    """The sum of scores, each list scaled to 0..1."""

    def points(self, hits: ScoredList) -> list[float]:
        """Scores min-max normalised within the list; 1 each where all are equal."""
        if not hits:
            return []
        scores = [score for _, score in hits]
        low, high = min(scores), max(scores)
        if low == high:
            return [1.0] * len(scores)
        unit = 1.0 if math.isfinite(high - low) else 0.5  # halves of huge scores, so that their difference stays finite
        return [(score * unit - low * unit) / (high * unit - low * unit) for score in scores]


class CombMnz(CombSum):
    """CombSUM times the number of lists that found the passage."""

    def total(self, points: float, lists: int) -> float:
        """The sum, once for each list that found the passage."""
        return points * lists


class Rrf(Fusion):
    """Reciprocal rank fusion: the sum of 1 / (k + rank).

    Args:
        k: how little the first ranks stand out, >= 1; `merge.k` gives it.

    Raises:
        ValueError: k is below 1.
    """

    def __init__(self, k: float = 60) -> None:
        if k < 1:
            raise ValueError(f"k is {k}; it must be at least 1")
        self.k = k

    def points(self, hits: ScoredList) -> list[float]:
        """1 / (k + rank), ranks from 1."""
        return [1 / (self.k + rank) for rank in range(1, len(hits) + 1)]


WORD_PATTERN = re.compile(r"[^\W_]+")
BUCKETS = 256


def group_duplicates(texts: Sequence[str], threshold: float) -> list[int]:
    """For each text the position of its group's representative: the group's first text, itself if it is alone.

    Args:
        texts: best first; at most 1,114,112 different words over all of them.
        threshold: the agreement (see above) from which two texts are the same, above 0 and at most 1.

    Raises:
        ValueError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold is {threshold}; it must be above 0 and at most 1")
    from rapidfuzz.distance import Indel  # late: only a pool with texts needs it

    coded = _encode(texts)
    histograms = _histograms(coded)
    leader_of: dict[str, int] = {}
    heads: list[int] = []
    for position, text in enumerate(coded):
        if text in leader_of:  # word for word like an earlier text
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
    """Each text with one character for each word, the same for the same word in all texts.

    A text without any word counts as one word of its own, so that it agrees with its equals only.
    """
    codes: dict[str, str] = {}
    coded = []
    for text in texts:
        plain = unicodedata.normalize("NFKC", text).casefold()
        words = WORD_PATTERN.findall(plain) or [plain.strip()]
        coded.append("".join([codes.setdefault(word, chr(len(codes))) for word in words]))
    return coded


def _histograms(coded: Sequence[str]) -> SmallInts:
    """Words by bucket, shape (len(coded), BUCKETS)."""
    table = np.zeros((len(coded), BUCKETS), dtype=np.int32)
    for row, text in zip(table, coded, strict=True):
        words = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        row += np.bincount(words % BUCKETS, minlength=BUCKETS).astype(np.int32)
    return table


def _plausible(
    histogram: SmallInts, histograms: SmallInts, heads: Sequence[int], threshold: float
) -> Iterator[tuple[int, int]]:
    """Those heads whose words, in whatever order, overlap enough, and by how many words the pair may differ."""
    others = histograms[list(heads)]
    total = others.sum(axis=1) + histogram.sum()
    limits = np.floor((1 - threshold) * total + 1e-9).astype(np.int64)  # of m + n - 2 L; whole numbers, no rounding
    apart = total - 2 * np.minimum(others, histogram).sum(axis=1)
    for place in np.flatnonzero(apart <= limits).tolist():
        yield heads[place], int(limits[place])


EXACT = 10

Cost = tuple[float, int]


def consensus_order(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> tuple[int, ...]:
    """The Kemeny order of `orders`.

    Args:
        orders: at least one; each a permutation of 0..n-1, best first.
        weights: one for each order, above 0.

    Raises:
        ValueError: no order, or the numbers of orders and weights differ.
    """
    if not orders:
        raise ValueError("a consensus needs at least one order")
    # Things are renamed by their places in the first order, so ties fall its way whatever they were called.
    names = orders[0]
    name = {thing: place for place, thing in enumerate(names)}
    renamed = [[name[thing] for thing in order] for order in orders]
    found = _kemeny(renamed, weights) if len(names) <= EXACT else _borda(renamed, weights)
    return tuple(names[thing] for thing in found)


def _kemeny(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    size = len(orders[0])
    worse = _disagreements(orders, weights)
    everything = (1 << size) - 1
    best: list[tuple[Cost, int]] = [((0.0, 0), -1)] * (everything + 1)  # for each set: how to order it last
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
    """What placing i above j costs: the weight of those who say otherwise; among equals, what the first one says."""
    size = len(orders[0])
    worse = [[(0.0, int(i > j)) for j in range(size)] for i in range(size)]
    for order, weight in zip(orders, weights, strict=True):
        for place, above in enumerate(order):
            for below in order[place + 1 :]:
                cost, casting = worse[below][above]
                worse[below][above] = (round(cost + weight, 9), casting)
    return worse


def _added(cost: Cost, worse: Sequence[Cost], below: int) -> Cost:
    """The cost of a set whose best one stands above the things in `below`."""
    total, casting = cost
    for thing, (more, against) in enumerate(worse):
        if below >> thing & 1:
            total, casting = total + more, casting + against
    return round(total, 9), casting  # so that sums in another order still tie


def _borda(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    """By weighted sum of ranks, ties as the first order has them."""
    ranks = [0.0] * len(orders[0])
    for order, weight in zip(orders, weights, strict=True):
        for rank, thing in enumerate(order):
            ranks[thing] += weight * rank
    return sorted(range(len(ranks)), key=lambda thing: (round(ranks[thing], 9), thing))
