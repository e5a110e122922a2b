"""Which systems are worth a thought: those that no other one beats at once in cost, latency and quality.

Dallaire, "Practical RAG Evaluation", 2025, section 3.3, with ordinary dominance (no worse everywhere, better
somewhere) in place of its "strictly better in all three", which keeps nearly everything. Two latencies closer than
the jitter count as equal (section 3.2.2). That is no equivalence: 300 equals 360 and 360 equals 420, but 300 is faster
than 420. So the front is defined as the one set in which no member dominates another and in which each system left out
is dominated by a member. Dominance under jitter has no circles. All qualities of a circle would be equal, so each step
would win the jitter of an axis, in latency or in cost, and lose less than that in the other; but an axis is back where
it was only if fewer steps win it than lose it, and so there would be more steps than there are. A relation without
circles has exactly one such set (its kernel; von Neumann and Morgenstern, 1944), and without jitter it is the ordinary
front. Costs may have a jitter too, as a share of the smaller one: cents decide nothing.

Must not choose among the members: that is what `choice` is for.

Quality per second, and what a step to more candidates buys: to shortlist near-equals, never to choose by.

Dallaire, "Practical RAG Evaluation", 2025, sections 3.3 and 5.4: a ratio knows no limit and favours small K, so it only
breaks ties; marginal gains show where further candidates cease to pay for themselves.

What an approximate index loses against the exact one, and how much effort is enough.

Dallaire, "Practical RAG Evaluation", 2025, section 5.3: raise the effort of a search (efSearch, nprobe) until quality
is within 1 to 2% of the exact index; more only burns latency. Changes are computed, never copied: the paper's own
table has three that contradict its figures.

How much memory vectors and their index take, now and at another size of the corpus.

Dallaire, "Practical RAG Evaluation", 2025, section 5.3: 4d bytes for a float32 vector, d for int8, and a graph that
does not shrink with them. The graph's bytes are those of faiss' HNSW (2M links on the ground floor, M on each floor
above, which one of M nodes reaches): within 0.1% of a serialised index at M = 8, 16 and 32. What was measured may
stand in for what is reckoned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Flags, Floats, Ints

JITTER_MS = 75.0
QUALITY_DECIMALS = 12


@dataclass(frozen=True)
class Candidate:
    """What was measured of one system.

    Attributes:
        name: unique among the candidates.
        usd_per_1k: USD for 1,000 queries, 0 or more; None where a price is not known.
        latency_ms: median milliseconds of a query, 0 or more; None where it was not measured.
        tail_ms: milliseconds within which 95% of single queries end, which limits are held against; None: limits are
            held against `latency_ms`.
        quality: one value a measure, higher is better, the deciding measure first; the same measures for all.
        k: passages given to the reranker, or returned; smaller is preferred among equals.
        tokens: mean tokens of a passage; fewer are preferred among equals.

    Raises:
        ValueError: a number out of its range; no quality, or one that is not finite: a system without a value on a
            measure is not a candidate.
    """

    name: str
    usd_per_1k: float | None
    latency_ms: float | None
    quality: tuple[float, ...]
    k: int
    tokens: float = 0.0
    tail_ms: float | None = None

    def __post_init__(self) -> None:
        for what, value in (
            ("cost", self.usd_per_1k),
            ("latency", self.latency_ms),
            ("tail", self.tail_ms),
            ("tokens", self.tokens),
        ):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{self.name}: {what} is {value}; it is a number from 0 up, or None where unknown")
        if not self.quality or not all(map(math.isfinite, self.quality)):
            raise ValueError(f"{self.name}: quality is {self.quality}; a candidate has a finite value on each measure")
        if self.k < 0:
            raise ValueError(f"{self.name}: k is {self.k}; it is a number from 0 up")

    @property
    def bound_ms(self) -> float | None:
        """Milliseconds that a limit is held against; None where they are not known."""
        return self.latency_ms if self.tail_ms is None else self.tail_ms


@dataclass(frozen=True)
class Front:
    """The systems that none of the front dominates.

    Attributes:
        names: the members, best first by the deciding measure, then by the others, cost and latency.
        dominated: by name of a system left out, the first member that dominates it.
        left_out: axes ("cost", "latency") that are known of no candidate, so that none was compared by them.
    """

    names: tuple[str, ...]
    dominated: dict[str, str]
    left_out: tuple[str, ...]


def dominates(one: Candidate, other: Candidate, jitter_ms: float = JITTER_MS, cost_jitter: float = 0.0) -> bool:
    """Is `one` surely no worse than `other` in cost, latency and each quality, and surely better in one of them?

    An unknown cost or latency may be any number from 0 up: a system that has one dominates nobody, and is dominated
    only by what costs nothing (or is faster than the jitter).

    Raises:
        ValueError: different numbers of measures, or a jitter below 0.
    """
    table = _tabulate([one, other], jitter_ms, cost_jitter)
    return bool(_dominated(table, 0)[1])


def find_front(candidates: Sequence[Candidate], jitter_ms: float = JITTER_MS, cost_jitter: float = 0.0) -> Front:
    """The front over (cost, latency, all qualities).

    Args:
        candidates: in any order; an axis that is known of none of them is left out.
        jitter_ms: latencies closer than that are equal; 0 compares them as they are.
        cost_jitter: costs of which the greater is less than this share above the smaller are equal.

    Raises:
        ValueError: as `dominates`, or a name that stands twice.
    """
    check_candidates(candidates)
    table, left_out = _without_unknown_axes(_tabulate(candidates, jitter_ms, cost_jitter))
    members: list[int] = []
    dominated: dict[str, str] = {}
    out = np.zeros(len(candidates), dtype=np.bool_)
    order = _dominance_order(table, candidates).tolist()
    for row in order if cost_jitter == 0 else _beaten_last(table, order):
        if out[row]:
            continue
        members.append(row)
        beaten = _dominated(table, row) & ~out
        out |= beaten
        dominated.update((candidates[each].name, candidates[row].name) for each in np.flatnonzero(beaten).tolist())
    return Front(tuple(candidates[row].name for row in sorted(members, key=order.index)), dominated, left_out)


def may_replace(candidates: Sequence[Candidate], jitter_ms: float = JITTER_MS) -> Flags:
    """Shape (candidates, candidates): is the row's system surely no dearer and no slower than the column's?

    Then better quality alone makes the column's superfluous, whatever limits are asked for later: what `halve` needs.
    An axis that is known of none is not compared; otherwise what is unknown may be anything, as in `dominates`.

    Raises:
        ValueError: as `find_front`.
    """
    check_candidates(candidates)
    table, _ = _without_unknown_axes(_tabulate(candidates, jitter_ms))
    no_dearer: Flags = table.cost_high[:, None] <= table.cost_low
    slower_by = table.slow[:, None] - table.fast
    no_slower: Flags = (slower_by < table.jitter) | (slower_by <= 0)
    return no_dearer & no_slower


def check_candidates(candidates: Sequence[Candidate]) -> None:
    """Raises: ValueError where two candidates have one name or measures differ in number."""
    twice = [name for name, count in Counter(each.name for each in candidates).items() if count > 1]
    if twice:
        raise ValueError(f"two candidates are named {min(twice)!r}")
    if len({len(each.quality) for each in candidates}) > 1:
        raise ValueError("candidates are compared by the same measures; the numbers of their qualities differ")


def round_quality(quality: npt.ArrayLike) -> Floats:
    """Qualities to be compared: two that differ by the rounding of their sums are equal, and equality is transitive."""
    values: Floats = np.asarray(quality, dtype=np.float64)
    return values.round(QUALITY_DECIMALS)


class _CandidateTable(NamedTuple):
    """One row a candidate; what is unknown lies between 0 and infinity."""

    cost_low: Floats
    cost_high: Floats
    fast: Floats
    slow: Floats
    quality: Floats
    jitter: float
    share: float = 0.0

    def cheaper(self, costs: Floats | np.float64, others: Floats | np.float64) -> Flags:
        """Which costs are below others by the jitter?"""
        below: Flags = np.asarray((costs * (1 + self.share) <= others) & (costs < others))
        return below


def _tabulate(candidates: Sequence[Candidate], jitter_ms: float, cost_jitter: float = 0.0) -> _CandidateTable:
    if not (math.isfinite(cost_jitter) and cost_jitter >= 0):
        raise ValueError(f"the jitter of costs is {cost_jitter}; it is a share from 0 up")
    if not (math.isfinite(jitter_ms) and jitter_ms >= 0):
        raise ValueError(f"the jitter is {jitter_ms} ms; it is a number from 0 up")
    if len({len(each.quality) for each in candidates}) > 1:
        raise ValueError("candidates are compared by the same measures; the numbers of their qualities differ")
    cost = [each.usd_per_1k for each in candidates]
    latency = [each.latency_ms for each in candidates]
    quality = round_quality([each.quality for each in candidates])
    return _CandidateTable(
        cost_low=_fill_unknown(cost, 0.0),
        cost_high=_fill_unknown(cost, math.inf),
        fast=_fill_unknown(latency, 0.0),
        slow=_fill_unknown(latency, math.inf),
        quality=quality if candidates else quality.reshape(0, 1),
        jitter=jitter_ms,
        share=cost_jitter,
    )


def _without_unknown_axes(table: _CandidateTable) -> tuple[_CandidateTable, tuple[str, ...]]:
    left_out = []
    if table.cost_high.size and np.isinf(table.cost_high).all():
        table = table._replace(cost_high=table.cost_low)
        left_out.append("cost")
    if table.slow.size and np.isinf(table.slow).all():
        table = table._replace(slow=table.fast)
        left_out.append("latency")
    return table, tuple(left_out)


def _fill_unknown(values: list[float | None], unknown: float) -> Floats:
    return np.array([unknown if value is None else value for value in values], dtype=np.float64)


def _dominated(table: _CandidateTable, row: int) -> Flags:
    """Which rows does this one dominate?"""
    slower_by = table.slow[row] - table.fast  # infinite where this row's latency is unknown
    faster_by = table.fast - table.slow[row]
    no_slower = (slower_by < table.jitter) | (slower_by <= 0)
    faster = (faster_by >= table.jitter) & (faster_by > 0)
    no_dearer = ~table.cheaper(table.cost_low, table.cost_high[row])
    cheaper = table.cheaper(table.cost_high[row], table.cost_low)
    no_worse = no_dearer & no_slower & (table.quality[row] >= table.quality).all(axis=1)
    better = cheaper | faster | (table.quality[row] > table.quality).any(axis=1)
    dominated: Flags = no_worse & better
    return dominated


def _beaten_last(table: _CandidateTable, order: Sequence[int]) -> Iterator[int]:
    """The rows so that whoever dominates another comes before it; those of other qualities stand so already."""
    for _, rows in groupby(order, key=lambda row: table.quality[row].tolist()):
        group = np.array(list(rows))
        beats = np.array([_dominated(table, row)[group] for row in group])
        beaten, left = beats.sum(axis=0), np.ones(len(group), dtype=np.bool_)
        while left.any():
            free = np.flatnonzero(left & (beaten == 0))
            at = free[0] if len(free) else np.flatnonzero(left)[0]
            yield int(group[at])
            left[at], beaten = False, beaten - beats[at]


def _dominance_order(table: _CandidateTable, candidates: Sequence[Candidate]) -> Ints:
    """Rows by quality, cost, latency, K: whoever dominates another comes before it."""
    keys = [(each.k, each.tokens, each.name) for each in candidates]
    place = np.empty(len(keys), dtype=np.int64)
    place[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return np.lexsort((place, table.slow, table.cost_high, *(-table.quality.T[::-1])))


@dataclass(frozen=True)
class DepthPoint:
    """A system at one K: its quality, median latency in ms and USD for 1,000 queries (None where unknown)."""

    k: int
    quality: float
    latency_ms: float | None
    usd_per_1k: float | None


@dataclass(frozen=True)
class DepthGain:
    """What the step from one K to the next buys.

    Attributes:
        k, to: the candidates before and after.
        quality: by how much it rises, in its own unit; below 0 where it falls.
        ms, usd_per_1k: what the step takes; None where unknown.
        per_ms: quality per ms; None where the step takes no time or it is unknown.
        per_usd: quality per USD for 1,000 queries; None where the step costs nothing or it is unknown.
        within_jitter: the latencies count as equal, so that `per_ms` says little.
    """

    k: int
    to: int
    quality: float
    ms: float | None
    usd_per_1k: float | None
    per_ms: float | None
    per_usd: float | None
    within_jitter: bool


def efficiency(quality: Sequence[float], latency_ms: float) -> float:
    """Retrieval-local efficiency: the mean of the qualities per second of median latency (section 3.3).

    Args:
        quality: the paper takes N-Recall4+ and RA-nWG, both at 10 and 30.
        latency_ms: of retrieval (the paper's Table 9: of the reranker alone).

    Returns:
        1/s; infinite where there is no latency, 0 where there is no quality either.

    Raises:
        ValueError: no quality, or a latency that is no number from 0 up.
    """
    if not quality or not (math.isfinite(latency_ms) and latency_ms >= 0):
        raise ValueError(
            f"efficiency needs a quality and a latency from 0 up, got {tuple(quality)} and {latency_ms} ms"
        )
    mean = math.fsum(quality) / len(quality)
    if latency_ms == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / (latency_ms / 1000)


def end_to_end_efficiency(
    quality: Sequence[float], *, embed_ms: float, retrieve_ms: float, rerank_ms: float, inference_ms: float
) -> float:
    """The same over the whole way, the answer's generation under a fixed prompt included (section 5.4).

    Raises:
        ValueError: as `efficiency`, of the sum.
    """
    return efficiency(quality, math.fsum((embed_ms, retrieve_ms, rerank_ms, inference_ms)))


def marginal_gains(steps: Sequence[DepthPoint], jitter_ms: float = JITTER_MS) -> tuple[DepthGain, ...]:
    """What each step to the next larger K buys, per ms and per USD (section 5.4).

    Args:
        steps: one system at several K, in any order.
        jitter_ms: latencies closer than that are marked as equal.

    Raises:
        ValueError: two steps with one K.
    """
    ordered = sorted(steps, key=lambda step: step.k)
    if any(one.k == other.k for one, other in pairwise(ordered)):
        raise ValueError("two steps have the same K; gains are of one system at several K")
    return tuple(_gain(one, other, jitter_ms) for one, other in pairwise(ordered))


def _gain(one: DepthPoint, other: DepthPoint, jitter_ms: float) -> DepthGain:
    quality = other.quality - one.quality
    ms = _rise(one.latency_ms, other.latency_ms)
    usd = _rise(one.usd_per_1k, other.usd_per_1k)
    return DepthGain(
        k=one.k,
        to=other.k,
        quality=quality,
        ms=ms,
        usd_per_1k=usd,
        per_ms=quality / ms if ms is not None and ms > 0 else None,
        per_usd=quality / usd if usd is not None and usd > 0 else None,
        within_jitter=ms is not None and abs(ms) < jitter_ms,
    )


def _rise(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else other - one


AIM, MAX_LOSS = 0.01, 0.02  # shares of the exact index' quality that may be lost: what to aim at, what to accept


@dataclass(frozen=True)
class MeasuredIndex:
    """An index at one setting: qualities (the same measures for all, higher is better) and median latency in ms."""

    name: str
    quality: tuple[float, ...]
    latency_ms: float | None = None


@dataclass(frozen=True)
class IndexDelta:
    """An index against the exact one.

    Attributes:
        name: of the index.
        quality: relative change of each measure, -.12 for 12% less; None where the exact index has 0.
        latency: relative change of the median latency; None where unknown.
        loss: the greatest relative loss of a measure, 0 or more; None where no measure can be compared.
    """

    name: str
    quality: tuple[float | None, ...]
    latency: float | None
    loss: float | None


def deltas(exact: MeasuredIndex, others: Sequence[MeasuredIndex]) -> tuple[IndexDelta, ...]:
    """The changes of each index against the exact one, in their order.

    Raises:
        ValueError: different numbers of measures, or one that is not a finite number.
    """
    return tuple(_delta(exact, other) for other in others)


def enough_effort(
    exact: MeasuredIndex, steps: Sequence[MeasuredIndex], aim: float = AIM, most: float = MAX_LOSS
) -> IndexDelta | None:
    """The first step that loses no more than `aim`; if there is none, the first that loses no more than `most`.

    Args:
        steps: one index at rising effort.

    Returns:
        None where no step is good enough.

    Raises:
        ValueError: as `deltas`.
    """
    found = deltas(exact, steps)
    for allowed in (aim, most):
        for each in found:
            if each.loss is not None and each.loss <= allowed:
                return each
    return None


def _delta(exact: MeasuredIndex, other: MeasuredIndex) -> IndexDelta:
    if len(exact.quality) != len(other.quality) or not all(map(math.isfinite, exact.quality + other.quality)):
        raise ValueError(f"{other.name} and {exact.name} need finite values on the same measures")
    changes = tuple(_change(*pair) for pair in zip(exact.quality, other.quality, strict=True))
    known = [change for change in changes if change is not None]
    return IndexDelta(
        name=other.name,
        quality=changes,
        latency=None
        if other.latency_ms is None or exact.latency_ms is None
        else _change(exact.latency_ms, other.latency_ms),
        loss=max(0.0, -min(known)) if known else None,
    )


def _change(before: float, after: float) -> float | None:
    return (after - before) / before if before else None


Element = Literal["f32", "f16", "bf16", "int8"]

GIB = 2**30
ELEMENT_BYTES: dict[Element, int] = {"f32": 4, "f16": 2, "bf16": 2, "int8": 1}
LINK_BYTES = 4  # ids of 32 bits
NODE_BYTES = 12  # of a node of the graph besides its links: its floor, and where the links begin
LIST_ID_BYTES = 8  # of a vector in an inverted list
PQ_CODES = 256  # centroids of a part of the vector, whose number is a byte


@dataclass(frozen=True)
class IndexMemory:
    """Bytes of an index.

    Attributes:
        count: vectors.
        vectors: bytes of the vectors or their codes.
        links: bytes that grow with the number of vectors beside them: a graph's links, ids in lists.
        fixed: bytes that do not: centroids and code books.
        measured: the sum was measured, not reckoned.
    """

    count: int
    vectors: float
    links: float = 0.0
    fixed: float = 0.0
    measured: bool = False

    @property
    def total(self) -> float:
        """Bytes."""
        return self.vectors + self.links + self.fixed

    @property
    def gib(self) -> float:
        """GiB, of 2^30 bytes."""
        return self.total / GIB

    def at(self, count: int) -> IndexMemory:
        """The same index over `count` vectors, extrapolated: what grows, grows in proportion.

        Raises:
            ValueError: there is no vector to extrapolate from, or a number below 0 is asked for.
        """
        if self.count < 1 or count < 0:
            raise ValueError(f"{self.count} vectors say nothing of {count}")
        factor = count / self.count
        return replace(self, count=count, vectors=self.vectors * factor, links=self.links * factor)


def flat_memory(count: int, dims: int, element: Element = "f32") -> IndexMemory:
    """Vectors alone.

    Raises:
        ValueError: a number that is not positive, or an unknown element.
    """
    _positive(count=count, dims=dims)
    if element not in ELEMENT_BYTES:
        raise ValueError(f"unknown element {element!r}; known: {', '.join(ELEMENT_BYTES)}")
    return IndexMemory(count, float(count * dims * ELEMENT_BYTES[element]))


def hnsw_memory(count: int, dims: int, m: int, element: Element = "f32", link_bytes: int = LINK_BYTES) -> IndexMemory:
    """Vectors and a graph of M links a node and floor, twice as many on the ground floor.

    Args:
        m: at least 2.
        link_bytes: 4 or, with ids of 64 bits, 8.

    Raises:
        ValueError: as `flat_memory`, or M below 2.
    """
    _positive(link_bytes=link_bytes)
    if m < 2:
        raise ValueError(f"a graph needs an M of at least 2, got {m}")
    links = 2 * m + m / (m - 1)  # 1/m + 1/m^2 + ... floors above the ground
    return replace(flat_memory(count, dims, element), links=count * (links * link_bytes + NODE_BYTES))


def ivf_memory(count: int, dims: int, lists: int, element: Element = "f32", pq: int | None = None) -> IndexMemory:
    """Inverted lists of vectors, or of product-quantised codes.

    Args:
        lists: how many; each has a centroid of float32.
        pq: parts of a vector's code, a byte each; None for whole vectors. An exact reorder needs the vectors besides:
            add `flat_memory`.

    Raises:
        ValueError: as `flat_memory`.
    """
    _positive(lists=lists, pq=1 if pq is None else pq)
    whole = flat_memory(count, dims, element)
    books = 0 if pq is None else PQ_CODES * dims * 4
    return replace(
        whole,
        vectors=whole.vectors if pq is None else float(count * pq),
        links=float(count * LIST_ID_BYTES),
        fixed=float(lists * dims * 4 + books),
    )


def measured_memory(count: int, size: int, *, vector_bytes: float = 0.0, fixed: float = 0.0) -> IndexMemory:
    """An index of `size` bytes as it was measured.

    Args:
        vector_bytes: of one vector in it, where known; the rest counts as links.
        fixed: bytes that do not grow.

    Raises:
        ValueError: no vector, or parts larger than the whole.
    """
    _positive(count=count)
    links = size - fixed - count * vector_bytes
    if links < 0:
        raise ValueError(f"{count} vectors of {vector_bytes} bytes and {fixed} bytes do not fit into {size}")
    return IndexMemory(count, count * vector_bytes, links, fixed, measured=True)


def _positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it is at least 1")
