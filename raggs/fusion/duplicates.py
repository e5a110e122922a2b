"""Near-duplicates in a pool, so that a judge is not asked the same question twice.

Two texts agree to the degree 2 * L / (m + n), where m and n are their numbers of words and L is the length of
the longest common subsequence of words: the share of words, over both texts, that stand in the same order in
both. A word is a run of letters or digits; case, accents' encoding and punctuation do not count. At a threshold
of 0.95, two passages of 200 words each may differ in ten words.

Groups are tight: a passage joins the first representative that it agrees with, never a mere member, so no chain
of small differences ties far texts together. All pairs are compared (that is the definition), but few of them
word by word: a histogram of hashed words bounds the agreement from above, and rapidfuzz's bit-parallel
algorithm does the rest over texts in which each distinct word is one character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"[^\W_]+")
BUCKETS = 256
FIRST_CODE = 0xE000  # words become characters above the surrogates
CODES = 0x110000 - FIRST_CODE


def group_duplicates(texts: Sequence[str], threshold: float) -> list[int]:
    """For each text the position of its group's representative: the group's first text, itself if it is alone.

    Args:
        texts: best first.
        threshold: the agreement (see above) from which two texts are the same, above 0 and at most 1.

    Raises:
        ValueError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold is {threshold}; it must be above 0 and at most 1")
    from rapidfuzz.distance import Indel

    coded, histograms = _encode(texts)
    sizes = histograms.sum(axis=1)
    leaders, first_of = [], {}
    heads: list[int] = []
    for position, text in enumerate(coded):
        leader = first_of.get(text)
        if leader is None:
            leader = position
            for head in _plausible(position, heads, histograms, sizes, threshold):
                if Indel.normalized_similarity(text, coded[head], score_cutoff=threshold) >= threshold:
                    leader = head
                    break
            first_of[text] = leader
        if leader == position:
            heads.append(position)
        leaders.append(leader)
    return leaders
