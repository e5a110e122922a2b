"""By how much a grade moves with the company in which it was given, told by samples: each shows a passage in another.

A passage's grade in a sample less its mean over all, against the mean grade of those beside it less its mean: the slope
of the one on the other. A judge that grades each passage as if it were alone errs on each by itself, so that its slope
is nought whatever the passages are; nobody is asked anything for it. The companies follow from the records, as the
stage drew them. The interval is by the jackknife over questions, whose companies are their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

from raggs.artifacts import JudgeRecord
from raggs.health import Shift
from raggs.stages.grouping import ahead, groups

Pair = tuple[float, float]  # the mean grade of those beside a passage, and its own, in one sample


class CompanyMoves:
    """Counted while the records of one run of the stage pass, question by question.

    Args:
        samples: grades that are asked of each passage, at least two.
        stop_after: low grades in a row that end the walk down a pool; None where it never ends early.
        size: passages that are graded together, at most.
        low: a grade up to here counts for `stop_after`.
    """

    def __init__(self, samples: int, stop_after: int | None, size: int, low: int) -> None:
        self._samples, self._stop_after, self._size, self._low = samples, stop_after, size, low
        self._qid = ""
        self._asked: list[tuple[int | None, tuple[int | None, ...]]] = []  # of the question at hand, by rank
        self._sums: list[Pair] = []  # of each question: products of both deviations, squares of the company's

    def see(self, record: JudgeRecord) -> None:
        """Take notice of a passage that was asked about, near-duplicates and those beyond a walk's end left out."""
        if record.qid != self._qid:
            self._end()
            self._qid = record.qid
        whole = record.grades if len(record.grades) == self._samples else (None,) * self._samples
        self._asked.append((record.grade, whole))

    def shift(self) -> Shift | None:
        """By how many grades a grade moves for each grade that its company is better; None where nothing can tell."""
        self._end()
        if not self._sums:
            return None
        count = len(self._sums)
        products, squares = (math.fsum(sums) for sums in zip(*self._sums, strict=True))
        slope = products / squares
        if count < 2:
            return Shift(grades=round(slope, 4), interval=None, questions=count)
        from scipy.special import stdtrit  # late: few runs ask several samples of groups

        without = [(products - product) / (squares - square) for product, square in self._sums]
        mean = fmean(without)
        error = math.sqrt((count - 1) / count * sum((each - mean) ** 2 for each in without))
        half = float(stdtrit(count - 1, 0.975)) * error
        return Shift(grades=round(slope, 4), interval=(round(slope - half, 4), round(slope + half, 4)), questions=count)

    def _end(self) -> None:
        """Sum up the question at hand."""
        pairs: defaultdict[int, list[Pair]] = defaultdict(list)
        for place, pair in self._pairs():
            pairs[place].append(pair)
        products = squares = 0.0
        for found in pairs.values():
            beside, own = fmean(pair[0] for pair in found), fmean(pair[1] for pair in found)
            products += sum((pair[0] - beside) * (pair[1] - own) for pair in found)
            squares += sum((pair[0] - beside) ** 2 for pair in found)
        if squares > 0:
            self._sums.append((products, squares))
        self._asked = []

    def _pairs(self) -> Iterator[tuple[int, Pair]]:
        """For each passage and sample: the company's mean grade and its own."""
        for first, count in self._steps():
            for sample in range(self._samples):
                for group in groups(self._qid, first, count, self._size, sample):
                    given = {place: self._asked[first + place][1][sample] for place in group}
                    known = {place: grade for place, grade in given.items() if grade is not None}
                    for place, grade in known.items():
                        if len(known) > 1:
                            yield first + place, ((sum(known.values()) - grade) / (len(known) - 1), float(grade))

    def _steps(self) -> Iterator[tuple[int, int]]:
        """The first passage and the length of each step of the walk."""
        limit, first, low = self._stop_after or len(self._asked), 0, 0
        while first < len(self._asked):
            count = min(ahead(max(1, limit - low), self._size), len(self._asked) - first)
            yield first, count
            for grade, _ in self._asked[first : first + count]:
                if grade is not None:
                    low = low + 1 if grade <= self._low else 0
            first += count
