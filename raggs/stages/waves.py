"""The rankings of all questions from one budget: wave after wave, each of the rounds that promise most.

`Waves` is the fold: which questions get their next round is a function of all answers of the waves before, so that a
resumed run, any number of calls at once and an audit come to the same ones. `in_waves` asks for what a wave lacks, and
chooses the next round of a question as soon as its answers are there. All rankings are in memory until the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from raggs.ranking.allocation import Offer, next_wave
from raggs.stages.judgedbatches import JudgedBatches
from raggs.stages.ordered import Looped, run_ordered
from raggs.stages.purse import Purse
from raggs.stages.replay import Batch, Course, KeptPool

Wave = Mapping[str, tuple[Batch, ...]]  # by question, its next round


class Waves:
    """Whose turn it is.

    Args:
        courses: by question, each before a round.
        purse: what all may cost together.
        paid: by question, what was asked before the first wave.

    Attributes:
        spent: so far.
    """

    def __init__(self, courses: Mapping[str, Course], purse: Purse, paid: Mapping[str, Sequence[Batch]]) -> None:
        self._courses, self._purse = courses, purse
        self._open = dict(courses)
        self.spent = sum(purse.price(qid, courses[qid], batches) for qid, batches in paid.items())

    def next(self) -> Wave:
        """The next wave, all answers to the last of which must have been learned; an empty one at the end."""
        self._open = {qid: course for qid, course in self._open.items() if course.draw()}
        taken = next_wave(map(self._offer, self._open), self._purse.amount - self.spent, len(self._courses))
        self.spent += sum(offer.price for offer in taken)
        if not taken:
            for course in self._open.values():
                course.leave()
        return {offer.name: self._courses[offer.name].next_round() for offer in taken}

    def leave(self, qid: str) -> None:
        """Nothing more is asked for this question."""
        self._open.pop(qid)

    def unpaid(self, qid: str, batches: Sequence[Batch]) -> None:
        """Nobody was asked for these."""
        self.spent -= self._purse.price(qid, self._courses[qid], batches)

    def _offer(self, qid: str) -> Offer:
        course = self._courses[qid]
        gain = course.promise * course.price(course.draw())
        return Offer(qid, gain, self._purse.price(qid, course, course.draw()), asked=course.asked > 0)


@dataclass(frozen=True)
class Begun:
    """A ranking before its first wave. `paid`: what was asked before."""

    pool: KeptPool
    course: Course
    judged: JudgedBatches
    paid: tuple[Batch, ...] = ()


Answered = Callable[[Course, JudgedBatches, Sequence[Batch]], Awaitable[Sequence[Batch]]]


def in_waves(begun: Sequence[Begun], purse: Purse, services: Looped, answered: Answered) -> None:
    """Ask wave after wave until the purse is empty or everything is settled.

    Args:
        begun: all rankings.
        purse: what they may cost together.
        services: where the answers are waited for.
        answered: teaches a course the answers to a round; gives the batches that nobody is paid to answer.
    """
    found, turn = {each.pool.qid: each for each in begun}, asyncio.Lock()

    async def teach(item: tuple[str, tuple[Batch, ...]]) -> Sequence[Batch]:
        qid, batches = item
        unpaid = await answered(found[qid].course, found[qid].judged, batches)
        async with turn:  # a ranker thinks for milliseconds, and others wait for theirs
            await asyncio.sleep(0)
            found[qid].course.draw()
        return unpaid

    courses, paid = {qid: each.course for qid, each in found.items()}, {qid: each.paid for qid, each in found.items()}
    waves = Waves(courses, purse, paid)
    while wave := waves.next():
        taught = run_ordered(services, wave.items(), teach, size=lambda item: len(item[1]))
        for qid, unpaid in zip(wave, taught, strict=True):
            waves.unpaid(qid, unpaid)
