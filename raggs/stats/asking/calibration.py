"""Where a threshold stands, found by looking at pairs in binary search.

The report's way: pairs near a value are looked at, and the value moves down while they pass (these two do ask the
same; this excerpt is about its question) and up while they do not. A step shows up to three pairs and goes with most
of them, so one odd pair does not decide. The state is the answers alone: taking one back is forgetting it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from raggs.base.arrays import Floats, Vectors

SHOWN = 3  # pairs a step
WIDTH = 0.01  # a threshold that is known so well is found
BINS = 20


@dataclass(frozen=True)
class Standing:
    """Where a search stands.

    Attributes:
        low, high: between which the threshold lies.
        row: the pair to show next; None when the search is over.
    """

    low: float
    high: float
    row: int | None

    @property
    def threshold(self) -> float:
        """The middle, on two digits."""
        return round((self.low + self.high) / 2, 2)


@dataclass
class Search:
    """A search for the cosine above which pairs pass.

    Attributes:
        cosines: of the pairs, shape (pairs,).
        answers: given so far, whether the pair shown passes.
    """

    cosines: Floats
    answers: list[bool] = field(default_factory=list)

    def answer(self, passes: bool) -> None:
        """Note what was seen of the pair that `standing` shows."""
        self.answers.append(passes)

    def undo(self) -> bool:
        """Forget the last answer; whether there was one."""
        return bool(self.answers) and self.answers.pop() is not None

    def standing(self) -> Standing:
        """Where the answers lead."""
        if not len(self.cosines):
            return Standing(-1.0, 1.0, None)
        low, high = float(self.cosines.min()), float(self.cosines.max())
        seen: set[int] = set()
        votes: list[bool] = []
        given = iter(self.answers)
        while high - low > WIDTH:
            row = None if _settled(votes) else self._nearest((low + high) / 2, low, high, seen)
            if row is None and not votes:
                break  # every pair between was looked at
            if row is None:
                low, high = _halved(low, high, votes)
                votes = []
                continue
            passes = next(given, None)
            if passes is None:
                return Standing(low, high, row)
            seen.add(row)
            votes.append(passes)
        return Standing(low, high, None)

    def _nearest(self, value: float, low: float, high: float, seen: set[int]) -> int | None:
        """The pair nearest to a value that was not seen, between the bounds."""
        order = np.argsort(np.abs(self.cosines - value), kind="stable").tolist()
        return next((row for row in order if row not in seen and low <= self.cosines[row] <= high), None)


def _settled(votes: Sequence[bool]) -> bool:
    """Whether most of a step's pairs agree whatever the rest says."""
    most = SHOWN // 2 + 1
    return sum(votes) >= most or len(votes) - sum(votes) >= most


def _halved(low: float, high: float, votes: Sequence[bool]) -> tuple[float, float]:
    middle = (low + high) / 2
    return (low, middle) if 2 * sum(votes) >= len(votes) else (middle, high)


def nearest_earlier(vectors: Vectors) -> tuple[Floats, list[int]]:
    """For each question but the first, its highest cosine with an earlier one, and which that is."""
    cosines = np.full(max(0, len(vectors) - 1), -1.0)
    nearest = [0] * len(cosines)
    for row in range(1, len(vectors)):
        near = vectors[:row] @ vectors[row]
        nearest[row - 1] = int(near.argmax())
        cosines[row - 1] = float(near[nearest[row - 1]])
    return cosines, nearest


def furthest_excerpt(cosines: Floats, owner: Sequence[int]) -> tuple[Floats, list[int]]:
    """For each question with excerpts, the lowest of their cosines, and the row of that excerpt.

    Args:
        cosines, owner: of the excerpts (`raggs.stats.asking.filters.excerpt_cosines`).
    """
    lowest: dict[int, int] = {}
    for row, question in enumerate(owner):
        if question not in lowest or cosines[row] < cosines[lowest[question]]:
            lowest[question] = row
    rows = [lowest[question] for question in sorted(lowest)]
    return np.asarray(cosines[rows], dtype=np.float64), rows


def histogram(cosines: Floats, bins: int = BINS) -> tuple[tuple[float, int], ...]:
    """How many cosines begin where: the lower edge of each bin of 0..1 and its count; what is below 0 counts as 0."""
    counts, edges = np.histogram(np.clip(cosines, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return tuple(zip((round(float(edge), 6) for edge in edges), counts.tolist(), strict=False))
