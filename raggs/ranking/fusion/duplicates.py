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

from raggs.base.arrays import SmallInts

WORD = re.compile(r"[^\W_]+")
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
        words = WORD.findall(plain) or [plain.strip()]
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
