"""What a judge says without people: in a panel that holds the judge `human`, the grade of the other members.

Whoever holds a judge against people must not let their own votes be part of it.
"""

from __future__ import annotations

from raggs.base.artifacts import JudgeRecord
from raggs.base.health import PEOPLE, is_people, source_of
from raggs.parts.judges.consensus import lower_median


def by_people(record: JudgeRecord) -> bool:
    """Whether a run's grade is people's own."""
    return source_of(record.judge) == PEOPLE


def unaided(record: JudgeRecord) -> JudgeRecord:
    """The record with the grade of those who are no people: of the other members of a panel in which people voted.

    Of several others the lower median of their grades, each the lower median of its samples. A grade that is
    people's own stays if nobody else graded the passage; `by_people` says so.
    """
    others = {name: votes for name, votes in record.votes.items() if not is_people(name)}
    if not others or len(others) == len(record.votes):
        return record
    grades = [lower_median([vote for vote in votes if vote is not None]) for votes in others.values()]
    judge = " + ".join(others) if by_people(record) else record.judge
    return record.model_copy(update={"grade": lower_median(grades), "judge": judge})


def answers_of(record: JudgeRecord) -> tuple[int, ...]:
    """Every answer of those who are no people, of all samples and members; none where people alone spoke."""
    said = [vote for name, votes in record.votes.items() if not is_people(name) for vote in votes]
    if not record.votes and not by_people(record):
        said = [*record.grades] or [record.grade]
    return tuple(vote for vote in said if vote is not None)
