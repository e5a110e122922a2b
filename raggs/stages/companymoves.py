"""By how much a grade moves with the company in which it was given, and with its place there; nobody is asked for it.

Company is told by samples, each of which shows a passage in another one: a passage's grade in a sample less its mean
over all, against the mean grade of those beside it less its mean; the slope of the one on the other. A judge that
grades each passage as if it were alone errs on each by itself, so that its slope is nought whatever the passages are.
Places are drawn by lot: the first of a call is as good as the last, on average. Companies and places follow from the
records, as the stage drew them. Intervals are by the jackknife over questions, whose companies are their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean

from raggs.base.artifacts import JudgeRecord
from raggs.base.health import Shift
from raggs.stages.grouping import Walk, groups

Pair = tuple[float, float]  # the mean grade of those beside a passage, and its own, in one sample


class CompanyMoves:
    """Counted while the records of one run of the stage pass, question by question.

    Args:
        samples: grades that are asked of each passage.
        stop_after: low grades in a row that end the walk down a pool; None where it never ends early.
        size: passages that are graded together, at most.
        low: a grade up to here counts for `stop_after`.
    """

    def __init__(self, samples: int, stop_after: int | None, size: int, low: int) -> None:
        self._samples, self._stop_after, self._size, self._low = samples, stop_after, size, low
        self._qid = ""
        self._asked: list[tuple[int | None, tuple[int | None, ...]]] = []  # of the question at hand, by rank
        self._sums: list[Pair] = []  # of each question: products of both deviations, squares of the company's
        self._ends: list[Pair] = []  # of each question: first less last grades of its calls, and how many calls

    def see(self, record: JudgeRecord) -> None:
        """Take notice of a passage that was asked about, near-duplicates and those beyond a walk's end left out."""
        if record.qid != self._qid:
            self._end()
            self._qid = record.qid
        whole = record.grades if len(record.grades) == self._samples else (None,) * self._samples
        self._asked.append((record.grade, whole))

    def company(self) -> Shift | None:
        """By how many grades a grade moves for each grade that its company is better; None where nothing can tell."""
        self._end()
        return _ratio(self._sums)

    def place(self) -> Shift | None:
        """By how many grades being shown first rather than last moves a grade; None where nothing can tell."""
        self._end()
        return _ratio(self._ends)

    def _end(self) -> None:
        """Sum up the question at hand."""
        pairs: defaultdict[int, list[Pair]] = defaultdict(list)
        ends = []
        for group in self._calls():
            known = {place: grade for place, grade in group if grade is not None}
            for place, grade in known.items() if len(known) > 1 else ():
                pairs[place].append(((sum(known.values()) - grade) / (len(known) - 1), float(grade)))
            (_, first), (_, last) = group[0], group[-1]
            if len(group) > 1 and first is not None and last is not None:
                ends.append(first - last)
        products = squares = 0.0
        for found in pairs.values():
            beside, own = fmean(pair[0] for pair in found), fmean(pair[1] for pair in found)
            products += sum((pair[0] - beside) * (pair[1] - own) for pair in found)
            squares += sum((pair[0] - beside) ** 2 for pair in found)
        if squares > 0:
            self._sums.append((products, squares))
        if ends:
            self._ends.append((sum(ends), len(ends)))
        self._asked = []

    def _calls(self) -> Iterator[list[tuple[int, int | None]]]:
        """For each call the passages as they were shown, with their grades."""
        for first, count in self._steps():
            for sample in range(self._samples):
                for group in groups(self._qid, first, count, self._size, sample):
                    yield [(first + place, self._asked[first + place][1][sample]) for place in group]

    def _steps(self) -> Iterator[tuple[int, int]]:
        """The first passage and the length of each step of the walk."""
        walk = Walk(len(self._asked), self._stop_after, self._size, self._low)
        while count := walk.step():
            first = walk.done
            yield first, count
            walk.take(grade for grade, _ in self._asked[first : first + count])


def _ratio(sums: Sequence[Pair]) -> Shift | None:
    """The sum of the first numbers by that of the second ones, with its interval of 95%; None where there are none."""
    if not sums:
        return None
    count = len(sums)
    above, below = (math.fsum(part) for part in zip(*sums, strict=True))
    if count < 2:
        return Shift(grades=round(above / below, 4), interval=None, questions=count)
    from scipy.special import stdtrit  # late: few runs grade passages together

    without = [(above - one) / (below - other) for one, other in sums]
    mean = fmean(without)
    error = math.sqrt((count - 1) / count * sum((each - mean) ** 2 for each in without))
    found, half = above / below, float(stdtrit(count - 1, 0.975)) * error
    return Shift(grades=round(found, 4), interval=(round(found - half, 4), round(found + half, 4)), questions=count)
