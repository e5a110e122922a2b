"""Signals that a question is hard, read off its own lists: margins, entropy, what rewriting did, names, agreement.

Source: "Practical RAG Evaluation" (2025), sections 1, 5.2 and 6, which names them and gives neither formula nor
threshold; both are raggs' own. A signal that cannot be read, since a list is too short or there is no reranker, is None
and never fires. Pure Python, since a run reads them for each question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

HEAD = 10  # the rank between the head and the tail of a list


@dataclass(frozen=True)
class Kind:
    """What a signal is.

    Attributes:
        high: whether large values tell of doubt; else small ones do.
        words: what it measures, as a clause.
    """

    high: bool
    words: str


SIGNALS: Final[Mapping[str, Kind]] = {
    "head_margin": Kind(False, "dense score of rank 1 less that of rank 10"),
    "tail_margin": Kind(False, "dense score of rank 10 less that of the last rank of the base"),
    "entropy": Kind(True, "entropy of the softmax of the reranker's scores, by the logarithm of their number"),
    "rewrite": Kind(True, "1 - cosine of the question and its rewrite"),
    "name": Kind(True, "1 where the question holds a proper name, else 0"),
    "agreement": Kind(False, "rank-biased overlap of the dense and the lexical list"),
}

Readings = Mapping[str, float | None]  # by signal


def head_margin(scores: Sequence[float]) -> float | None:
    """s1 - s10 of a list, best first; None where it is shorter."""
    return scores[0] - scores[HEAD - 1] if len(scores) >= HEAD else None


def tail_margin(scores: Sequence[float], base: int) -> float | None:
    """s10 - s(base) of a list, best first; None where it is shorter than `base`, or `base` is no more than 10."""
    return scores[HEAD - 1] - scores[base - 1] if len(scores) >= base > HEAD else None


def entropy(scores: Sequence[float]) -> float | None:
    """-sum p ln p / ln n with p = softmax(scores), in 0..1: 1 where a reranker sees no difference.

    None below two scores. Finite for any finite scores.
    """
    if len(scores) < 2:
        return None
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    total = math.fsum(weights)
    parts = [weight / total for weight in weights]
    found = -math.fsum(part * math.log(part) for part in parts if part > 0)
    return min(1.0, max(0.0, found / math.log(len(scores))))


def rewrite_distance(question: Sequence[float], rewrite: Sequence[float]) -> float | None:
    """1 - cosine of two vectors, in 0..2; None where one has no length.

    Raises:
        ValueError: they have different dimensions.
    """
    lengths = math.hypot(*question) * math.hypot(*rewrite)
    if not lengths:
        return None
    dot = math.fsum(one * two for one, two in zip(question, rewrite, strict=True))
    return min(2.0, max(0.0, 1.0 - dot / lengths))


def agreement(dense: Sequence[str], lexical: Sequence[str]) -> float | None:
    """Rank-biased overlap (extrapolated, p 0.9) of two lists, in 0..1; None where one is empty."""
    from raggs.stats.agreement import rbo  # late: it brings numpy

    found = rbo(dense, lexical).extrapolated
    return None if math.isnan(found) else found


def fired(found: Readings, when: Mapping[str, float]) -> tuple[str, ...]:
    """The signals that reach their threshold, in the order of `SIGNALS`.

    Args:
        found: the signals of one question.
        when: thresholds, by signal; at the threshold itself a signal fires.

    Raises:
        ValueError: a threshold of what is no signal.
    """
    if strange := when.keys() - SIGNALS.keys():
        raise ValueError(f"no signal {min(strange)!r}; there are {', '.join(SIGNALS)}")
    return tuple(name for name, kind in SIGNALS.items() if name in when and _reaches(kind, found.get(name), when[name]))


def _reaches(kind: Kind, value: float | None, threshold: float) -> bool:
    if value is None:
        return False
    return value >= threshold if kind.high else value <= threshold
