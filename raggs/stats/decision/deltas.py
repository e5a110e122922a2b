"""What an approximate index loses against the exact one, and how much effort is enough.

Dallaire, "Practical RAG Evaluation", 2025, section 5.3: raise the effort of a search (efSearch, nprobe) until quality
is within 1 to 2% of the exact index; more only burns latency. Changes are computed, never copied: the paper's own
table has three that contradict its figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
