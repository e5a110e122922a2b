"""Near-duplicates in a pool, so that a judge is not paid for reading one text twice.

Two texts are near-duplicates when the Jaccard similarity of their sets of three-word shingles (Broder, 1997; words
lower-cased, punctuation dropped) reaches the threshold; texts of fewer than three words are compared whole. A text is
compared with representatives only, the first (best fused) of each group, so a chain of small changes cannot join two
texts that differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WORD = re.compile(r"\w+")
SHINGLE = 3


def group_duplicates(texts: Sequence[str], threshold: float) -> list[int]:
    """For each text the position of its group's representative: the first text it is a near-duplicate of, or itself.

    Args:
        texts: best first.
        threshold: similarity in 0..1 (exclusive of 0) from which two texts are one; 1 asks for equal shingles.

    Raises:
        ValueError: the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}; it must be above 0 and at most 1")
    leaders: list[tuple[int, frozenset[int]]] = []
    groups: list[int] = []
    for position, text in enumerate(texts):
        shingles = _shingles(text)
        leader = next((place for place, other in leaders if similar(shingles, other, threshold)), position)
        groups.append(leader)
        if leader == position:
            leaders.append((position, shingles))
    return groups


def similar(first: frozenset[int], second: frozenset[int], threshold: float) -> bool:
    """Whether the Jaccard similarity of two sets reaches the threshold; sizes that cannot are told apart at once."""
    small, large = sorted((len(first), len(second)))
    if small < threshold * large:
        return False
    shared = len(first & second)
    return shared >= threshold * (small + large - shared)


def _shingles(text: str) -> frozenset[int]:
    words = WORD.findall(text.lower())
    if len(words) < SHINGLE:
        return frozenset({hash((text.strip().lower(),))})
    return frozenset(map(hash, zip(*(words[offset:] for offset in range(SHINGLE)), strict=False)))
