"""Which passages of a question a judge sees together, where it grades several in one question (`judge.group`).

What is asked at once is cut into groups by a shuffle of its own for each sample: the company of a passage is a mixture
of the good and the bad, whatever its rank in the pool, and another one in each sample, in which it stands elsewhere.
Groups follow from the passages that are asked at once and from nothing that was answered before: a resumed run asks
the same questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import pairwise

from raggs.base.artifacts import MergeRecord
from raggs.base.seeds import generator
from raggs.parts.judges.base import Judgment
from raggs.stages.base import GradeServices

SEED = 0


def groups(qid: str, first: int, count: int, size: int, sample: int) -> list[list[int]]:
    """Positions 0 to `count` - 1 in as few groups of at most `size` as can be, which differ by one at most.

    Args:
        first: rank among the passages to judge of the one at position 0.
    """
    order: list[int] = generator(SEED, "group", qid, first, sample).permutation(count).tolist()
    number = -(-count // size)
    bounds = [count * place // number for place in range(number + 1)]
    return [order[start:end] for start, end in pairwise(bounds)]


def ahead(wanted: int, size: int) -> int:
    """So many passages at least, in whole groups."""
    return -(-wanted // size) * size


class Walk:
    """A pool that is graded from the top down until `stop_after` low grades stand in a row.

    While some of them do, no end can come before as many more passages are graded as are missing, so these are asked at
    once: no judgment is wasted, and none depends on the time that another took. A failure neither adds to the row nor
    breaks it. Where several are graded in one question a step takes whole groups, and the row may end longer.

    Args:
        total: passages of the pool.
        stop_after: None where the walk never ends early.
        size: passages that are graded together, at most.
        low: a grade up to here is a low one.

    Attributes:
        done: passages that were graded.
        limit: low grades in a row that end it.
    """

    def __init__(self, total: int, stop_after: int | None, size: int, low: int) -> None:
        self.done, self.limit = 0, stop_after or total
        self._total, self._size, self._low = total, size, low
        self._row = 0

    def step(self) -> int:
        """How many passages are asked about at once next; 0 at the end."""
        if self._row >= self.limit:
            return 0
        return min(ahead(self.limit - self._row, self._size), self._total - self.done)

    def take(self, grades: Iterable[int | None]) -> None:
        """The grades of a step; None of a failure."""
        for grade in grades:
            self.done += 1
            if grade is not None:
                self._row = self._row + 1 if grade <= self._low else 0


async def grade_together(
    records: Sequence[MergeRecord], first: int, size: int, samples: int, services: GradeServices
) -> list[list[Judgment]]:
    """All samples of the grade of each passage, in their order; all are asked at once.

    Args:
        first: rank of the first one among the passages of the pool to judge.
    """
    query = services.queries[records[0].qid]

    async def ask(group: Sequence[int], sample: int) -> Sequence[Judgment]:
        return await services.judge.grades(query, [records[place].passage for place in group], sample=sample)

    asked = [
        (group, sample) for sample in range(samples) for group in groups(query.qid, first, len(records), size, sample)
    ]
    found: list[list[Judgment]] = [[] for _ in records]
    for (group, _), given in zip(asked, await asyncio.gather(*(ask(*each) for each in asked)), strict=True):
        for place, said in zip(group, given, strict=True):
            found[place].append(said)
    return found
