"""Quality per second, and what a step to more candidates buys: to shortlist near-equals, never to choose by.

Dallaire, "Practical RAG Evaluation", 2025, sections 3.3 and 5.4: a ratio knows no limit and favours small K, so it only
breaks ties; marginal gains show where further candidates cease to pay for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from raggs.stats.decision.front import JITTER_MS


@dataclass(frozen=True)
class Step:
    """A system at one K: its quality, median latency in ms and USD for 1,000 queries (None where unknown)."""

    k: int
    quality: float
    latency_ms: float | None
    usd_per_1k: float | None


@dataclass(frozen=True)
class Gain:
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


def marginal_gains(steps: Sequence[Step], jitter_ms: float = JITTER_MS) -> tuple[Gain, ...]:
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


def _gain(one: Step, other: Step, jitter_ms: float) -> Gain:
    quality = other.quality - one.quality
    ms = _rise(one.latency_ms, other.latency_ms)
    usd = _rise(one.usd_per_1k, other.usd_per_1k)
    return Gain(
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
