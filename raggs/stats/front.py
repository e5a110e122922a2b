"""Pareto front of systems, marginal gains of more candidates, index losses, and index memory.

Pareto front: the systems that no other system dominates in cost, latency and quality. Source: Dallaire, "Practical RAG
Evaluation", 2025, section 3.3, but with ordinary dominance: no worse in anything, better in something. The paper's
"strictly better in all three" excludes almost nothing. Two latencies closer than the jitter count as equal (section
3.2.2). This relation is not transitive: with a jitter of 75 ms, 300 equals 360 and 360 equals 420, but 300 is faster
than 420. The front is therefore defined as the unique set with two properties: no member dominates another, and each
excluded system is dominated by a member. Such a set (a kernel; von Neumann and Morgenstern, 1944) exists and is unique,
because dominance under jitter has no cycles. In a cycle, all qualities would be equal. So each step would gain at least
the jitter on latency or cost, and lose less than the jitter on the other axis, if anything. On an axis that returns to
its start, more steps lose than gain. Since each step gains on an axis, there would be more losses than steps, over both
axes. So some step would lose on both axes, which is impossible. Without jitter, the kernel is the ordinary front. Costs
may have a jitter as well, as a share of the smaller cost. To choose among the members, use `raggs.stats.choice`.

Efficiency (quality per second) and marginal gains of more candidates: sections 3.3 and 5.4. Efficiency ignores limits
and is highest for small K, so it is used only to break ties. Marginal gains show when more candidates no longer pay
off.

Loss of an approximate index against the exact one: section 5.3. Raise the search effort (efSearch, nprobe) until
quality is within 1 to 2% of the exact index; more effort only adds latency. Changes are computed from the paper's
measurements, because three of the changes printed in its table contradict them.

Memory of vectors and index, now and at another corpus size: section 5.3. A float32 vector takes 4d bytes and an int8
vector d bytes, but the graph has the same size for both. The graph's bytes follow faiss' HNSW: 2M links per node on the
lowest level and M on each level above. One in M nodes of a level is also on the next. For M = 8, 16 and 32 this is
within 0.1% of a serialised index. A measured size can replace the computed one.
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
    """Measurements of one system.

    Attributes:
        name: name of the system; unique among the candidates of a front or choice.
        usd_per_1k: USD per 1,000 queries, 0 or more; None if unknown.
        latency_ms: median latency of a query in ms, 0 or more; None if not measured.
        tail_ms: 95th percentile of the latency of single queries in ms; limits apply to it. None: limits are compared
            with `latency_ms`.
        quality: one value per measure, higher is better, the primary measure first; the same measures for all
            candidates.
        k: number of passages given to the reranker, or returned; of tied systems, the one with the smaller K is chosen.
        tokens: mean number of tokens per passage; of tied systems, the one with fewer tokens is chosen.

    Raises:
        ValueError: a number is out of its range, no quality is given, or a quality is not finite. A system without a
            value on a measure cannot be a candidate.
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
                raise ValueError(
                    f"{self.name}: {what} must be a finite number of at least 0, or None if unknown; got {value}"
                )
        if not self.quality or not all(map(math.isfinite, self.quality)):
            raise ValueError(f"{self.name}: a candidate needs at least one quality, all finite; got {self.quality}")
        if self.k < 0:
            raise ValueError(f"{self.name}: k must be at least 0, got {self.k}")

    @property
    def bound_ms(self) -> float | None:
        """Latency in ms that is compared with limits; None if unknown."""
        return self.latency_ms if self.tail_ms is None else self.tail_ms


@dataclass(frozen=True)
class Front:
    """The Pareto front: the systems that no member dominates.

    Attributes:
        names: the members, best first by the primary measure, then by the other measures, cost and latency.
        dominated: for each excluded system, the first member that dominates it.
        left_out: axes ("cost", "latency") that are unknown for all candidates and were therefore not compared.
    """

    names: tuple[str, ...]
    dominated: dict[str, str]
    left_out: tuple[str, ...]


def find_front(candidates: Sequence[Candidate], jitter_ms: float = JITTER_MS, cost_jitter: float = 0.0) -> Front:
    """Return the Pareto front over cost, latency and all qualities.

    Args:
        candidates: the systems, in any order; a cost or latency that is unknown for all systems is ignored.
        jitter_ms: latencies whose distance is below this count as equal; 0 compares latencies exactly.
        cost_jitter: two costs count as equal if the larger exceeds the smaller by less than this share.

    Raises:
        ValueError: the numbers of measures differ, a jitter is negative, or two candidates have the same name.
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


def may_replace(
    candidates: Sequence[Candidate], jitter_ms: float = JITTER_MS, latency_limit_ms: float | None = None
) -> Flags:
    """Return, for each pair of systems, whether the row's system is certainly no more expensive and no slower than the
    column's, up to the jitter of latency.

    Shape (candidates, candidates). If it is, a better quality makes the column's system superfluous; `halve` needs
    this. A cost or latency that is unknown for all systems is not compared. Other unknown values may be any number of
    at least 0.

    Args:
        candidates: the systems, in any order.
        jitter_ms: latencies whose distance is below this count as equal, as in `find_front`.
        latency_limit_ms: limit on `bound_ms`, which has no jitter: a system that may violate it replaces no system that
            may meet it. None: no limit.

    Raises:
        ValueError: as for `find_front`.
    """
    check_candidates(candidates)
    table, _ = _without_unknown_axes(_tabulate(candidates, jitter_ms))
    no_dearer: Flags = table.cost_high[:, None] <= table.cost_low
    slower_by = table.slow[:, None] - table.fast
    no_slower: Flags = (slower_by < table.jitter) | (slower_by <= 0)
    bounds = [each.bound_ms for each in candidates]
    if latency_limit_ms is None or all(bound is None for bound in bounds):
        return no_dearer & no_slower
    meets: Flags = _fill_unknown(bounds, math.inf) <= latency_limit_ms
    violates: Flags = _fill_unknown(bounds, 0.0) > latency_limit_ms
    return no_dearer & no_slower & (meets[:, None] | violates)


def check_candidates(candidates: Sequence[Candidate]) -> None:
    """Check names and measures of candidates.

    Raises:
        ValueError: two candidates have the same name, or their numbers of measures differ.
    """
    twice = [name for name, count in Counter(each.name for each in candidates).items() if count > 1]
    if twice:
        raise ValueError(f"two candidates have the name {min(twice)!r}")
    if len({len(each.quality) for each in candidates}) > 1:
        raise ValueError("candidates must have the same measures, but their numbers of qualities differ")


def round_quality(quality: npt.ArrayLike) -> Floats:
    """Return qualities rounded for comparison, so that rounding errors of sums do not matter and equality is
    transitive.
    """
    values: Floats = np.asarray(quality, dtype=np.float64)
    return values.round(QUALITY_DECIMALS)


class _CandidateTable(NamedTuple):
    """One row per candidate; an unknown value ranges from 0 to infinity."""

    cost_low: Floats
    cost_high: Floats
    fast: Floats
    slow: Floats
    quality: Floats
    jitter: float
    share: float = 0.0

    def cheaper(self, costs: Floats | np.float64, others: Floats | np.float64) -> Flags:
        """Return which `costs` are below `others` by at least the jitter."""
        below: Flags = np.asarray((costs * (1 + self.share) <= others) & (costs < others))
        return below


def _tabulate(candidates: Sequence[Candidate], jitter_ms: float, cost_jitter: float = 0.0) -> _CandidateTable:
    if not (math.isfinite(cost_jitter) and cost_jitter >= 0):
        raise ValueError(f"the cost jitter must be a finite share of at least 0, got {cost_jitter}")
    if not (math.isfinite(jitter_ms) and jitter_ms >= 0):
        raise ValueError(f"the jitter must be a finite number of at least 0 ms, got {jitter_ms}")
    if len({len(each.quality) for each in candidates}) > 1:
        raise ValueError("candidates must have the same measures, but their numbers of qualities differ")
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
    """Return which rows this row dominates."""
    slower_by = table.slow[row] - table.fast  # infinite if this row's latency is unknown
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
    """Yield the rows so that a dominating row precedes the rows that it dominates.

    In `order`, rows of different quality already precede the rows that they dominate. Only rows of equal quality are
    reordered.
    """
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
    """Return the rows ordered by quality, cost, latency, K, tokens and name.

    A dominating row precedes the rows that it dominates, unless the costs have a jitter (see `_beaten_last`).
    """
    keys = [(each.k, each.tokens, each.name) for each in candidates]
    place = np.empty(len(keys), dtype=np.int64)
    place[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return np.lexsort((place, table.slow, table.cost_high, *(-table.quality.T[::-1])))


@dataclass(frozen=True)
class DepthPoint:
    """A system at one K: its quality, its median latency in ms, and its cost in USD per 1,000 queries (None if
    unknown).
    """

    k: int
    quality: float
    latency_ms: float | None
    usd_per_1k: float | None


@dataclass(frozen=True)
class DepthGain:
    """Gain and cost of the step from one K to the next larger K.

    Attributes:
        k, to: number of candidates before and after.
        quality: change of quality, in the unit of the measure; may be negative.
        ms, usd_per_1k: additional latency and cost, which may be negative; None if unknown.
        per_ms: quality gain per ms; None if the step takes no additional time or its latency is unknown.
        per_usd: quality gain per USD per 1,000 queries; None if the step has no additional cost or its cost is unknown.
        within_jitter: whether the latencies differ by less than the jitter; `per_ms` is then not meaningful. False if a
            latency is unknown.
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
    """Return the retrieval-local efficiency: mean quality per second of median latency (section 3.3).

    Args:
        quality: values to average; the paper uses N-Recall4+ and RA-nWG, both at 10 and 30.
        latency_ms: median latency of retrieval (in the paper's Table 9: of the reranker only).

    Returns:
        Efficiency in 1/s. If the latency is 0, the result is 0 for a mean quality of 0, and infinite otherwise.

    Raises:
        ValueError: no quality is given, or the latency is not a finite number of at least 0.
    """
    if not quality or not (math.isfinite(latency_ms) and latency_ms >= 0):
        raise ValueError(
            f"efficiency needs a quality and a latency of at least 0 ms, got {tuple(quality)} and {latency_ms} ms"
        )
    mean = math.fsum(quality) / len(quality)
    if latency_ms == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / (latency_ms / 1000)


def marginal_gains(steps: Sequence[DepthPoint], jitter_ms: float = JITTER_MS) -> tuple[DepthGain, ...]:
    """Return the gain of each step to the next larger K, per ms and per USD (section 5.4).

    Args:
        steps: the same system at several K, in any order.
        jitter_ms: latencies whose distance is below this are marked as equal.

    Raises:
        ValueError: two steps have the same K.
    """
    ordered = sorted(steps, key=lambda step: step.k)
    if any(one.k == other.k for one, other in pairwise(ordered)):
        raise ValueError("two steps have the same K")
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


MAX_LOSS = 0.02  # maximum of the loss relative to the exact index


@dataclass(frozen=True)
class MeasuredIndex:
    """An index at one setting: its qualities (higher is better; same measures for all indexes) and median latency in
    ms.
    """

    name: str
    quality: tuple[float, ...]
    latency_ms: float | None = None


@dataclass(frozen=True)
class IndexDelta:
    """An index compared with the exact one.

    Attributes:
        name: name of the index.
        quality: relative change of each measure, such as -0.12 for 12% less; None if the exact index has the value 0.
        latency: relative change of the median latency; None if a latency is unknown or that of the exact index is 0.
        loss: largest relative loss of any measure, 0 or more; None if no measure can be compared.
    """

    name: str
    quality: tuple[float | None, ...]
    latency: float | None
    loss: float | None


def deltas(exact: MeasuredIndex, others: Sequence[MeasuredIndex]) -> tuple[IndexDelta, ...]:
    """Return the changes of each index relative to the exact one, in the given order.

    Raises:
        ValueError: the numbers of measures differ, or a value is not finite.
    """
    return tuple(_delta(exact, other) for other in others)


def _delta(exact: MeasuredIndex, other: MeasuredIndex) -> IndexDelta:
    if len(exact.quality) != len(other.quality) or not all(map(math.isfinite, exact.quality + other.quality)):
        raise ValueError(f"{other.name} and {exact.name} must have finite values on the same measures")
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
LINK_BYTES = 4  # bytes per link, a 32-bit id
NODE_BYTES = 12  # bytes per graph node in addition to its links: its level, and the offset of its links


@dataclass(frozen=True)
class IndexMemory:
    """Size of an index in bytes.

    Attributes:
        count: number of vectors.
        vectors: bytes of the vectors or their codes.
        links: other bytes that grow with the number of vectors: links of a graph, ids in lists.
        fixed: bytes that do not grow with the number of vectors: centroids and code books.
        measured: whether the total was measured, or extrapolated from a measured one, instead of computed.
    """

    count: int
    vectors: float
    links: float = 0.0
    fixed: float = 0.0
    measured: bool = False

    @property
    def total(self) -> float:
        """Total bytes."""
        return self.vectors + self.links + self.fixed

    @property
    def gib(self) -> float:
        """Total in GiB (2^30 bytes)."""
        return self.total / GIB

    def at(self, count: int) -> IndexMemory:
        """Return the size extrapolated to `count` vectors; vectors and links grow in proportion.

        Raises:
            ValueError: the index is empty, or `count` is negative.
        """
        if self.count < 1 or count < 0:
            raise ValueError(f"cannot extrapolate from {self.count} vectors to {count}")
        factor = count / self.count
        return replace(self, count=count, vectors=self.vectors * factor, links=self.links * factor)


def flat_memory(count: int, dims: int, element: Element = "f32") -> IndexMemory:
    """Return the size of a flat index: only the vectors.

    Raises:
        ValueError: a number is not positive, or the element type is unknown.
    """
    _positive(count=count, dims=dims)
    if element not in ELEMENT_BYTES:
        raise ValueError(f"unknown element {element!r}; known: {', '.join(ELEMENT_BYTES)}")
    return IndexMemory(count, float(count * dims * ELEMENT_BYTES[element]))


def hnsw_memory(count: int, dims: int, m: int, element: Element = "f32", link_bytes: int = LINK_BYTES) -> IndexMemory:
    """Return the size of an HNSW index: vectors and a graph with M links per node and level, 2M on the lowest level.

    Args:
        count: number of vectors.
        dims: dimensions of a vector.
        m: links per node and level (M), at least 2.
        element: element type of the vectors.
        link_bytes: bytes per link: 4, or 8 with 64-bit ids.

    Raises:
        ValueError: as for `flat_memory`, or M is below 2.
    """
    _positive(link_bytes=link_bytes)
    if m < 2:
        raise ValueError(f"a graph needs an M of at least 2, got {m}")
    links = 2 * m + m / (m - 1)  # a node is on 1/m + 1/m^2 + ... = 1 / (m - 1) higher levels on average
    return replace(flat_memory(count, dims, element), links=count * (links * link_bytes + NODE_BYTES))


def measured_memory(count: int, size: int, *, vector_bytes: float = 0.0, fixed: float = 0.0) -> IndexMemory:
    """Return the size of an index that was measured to have `size` bytes.

    Args:
        count: number of vectors.
        size: total bytes.
        vector_bytes: bytes per vector, 0 if unknown; the other bytes, except `fixed`, count as links.
        fixed: bytes that do not grow with the number of vectors.

    Raises:
        ValueError: `count` is below 1, or the parts exceed the total.
    """
    _positive(count=count)
    links = size - fixed - count * vector_bytes
    if links < 0:
        raise ValueError(
            f"{count} vectors of {vector_bytes} bytes plus {fixed} fixed bytes exceed the size of {size} bytes"
        )
    return IndexMemory(count, count * vector_bytes, links, fixed, measured=True)


def _positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
