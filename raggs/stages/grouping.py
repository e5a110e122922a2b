"""Which passages of a question a judge sees together, where it grades several in one question (`judge.group`).

What is asked at once is cut into groups by a shuffle of its own for each sample: the company of a passage is a mixture
of the good and the bad, whatever its rank in the pool, and another one in each sample, in which it stands elsewhere.
Groups follow from the passages that are asked at once and from nothing that was answered before: a resumed run asks
the same questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from raggs.artifacts import MergeRecord
from raggs.judges.base import Judgment
from raggs.seeds import generator
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
