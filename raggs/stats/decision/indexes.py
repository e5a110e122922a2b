"""What an approximate index loses against the exact one, and how much effort is enough.

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

AIM, MOST = 0.01, 0.02  # shares of the exact index' quality that may be lost: what to aim at, what to accept


@dataclass(frozen=True)
class Measured:
    """An index at one setting: qualities (the same measures for all, higher is better) and median latency in ms."""

    name: str
    quality: tuple[float, ...]
    latency_ms: float | None = None


@dataclass(frozen=True)
class Delta:
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


def deltas(exact: Measured, others: Sequence[Measured]) -> tuple[Delta, ...]:
    """The changes of each index against the exact one, in their order.

    Raises:
        ValueError: different numbers of measures, or one that is not a finite number.
    """
    return tuple(_delta(exact, other) for other in others)


def enough_effort(exact: Measured, steps: Sequence[Measured], aim: float = AIM, most: float = MOST) -> Delta | None:
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


def _delta(exact: Measured, other: Measured) -> Delta:
    if len(exact.quality) != len(other.quality) or not all(map(math.isfinite, exact.quality + other.quality)):
        raise ValueError(f"{other.name} and {exact.name} need finite values on the same measures")
    changes = tuple(_change(*pair) for pair in zip(exact.quality, other.quality, strict=True))
    known = [change for change in changes if change is not None]
    return Delta(
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
class Memory:
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

    def at(self, count: int) -> Memory:
        """The same index over `count` vectors, extrapolated: what grows, grows in proportion.

        Raises:
            ValueError: there is no vector to extrapolate from, or a number below 0 is asked for.
        """
        if self.count < 1 or count < 0:
            raise ValueError(f"{self.count} vectors say nothing of {count}")
        factor = count / self.count
        return replace(self, count=count, vectors=self.vectors * factor, links=self.links * factor)


def flat_memory(count: int, dims: int, element: Element = "f32") -> Memory:
    """Vectors alone.

    Raises:
        ValueError: a number that is not positive, or an unknown element.
    """
    _positive(count=count, dims=dims)
    if element not in ELEMENT_BYTES:
        raise ValueError(f"unknown element {element!r}; known: {', '.join(ELEMENT_BYTES)}")
    return Memory(count, float(count * dims * ELEMENT_BYTES[element]))


def hnsw_memory(count: int, dims: int, m: int, element: Element = "f32", link_bytes: int = LINK_BYTES) -> Memory:
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


def ivf_memory(count: int, dims: int, lists: int, element: Element = "f32", pq: int | None = None) -> Memory:
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


def measured_memory(count: int, size: int, *, vector_bytes: float = 0.0, fixed: float = 0.0) -> Memory:
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
    return Memory(count, count * vector_bytes, links, fixed, measured=True)


def _positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it is at least 1")
