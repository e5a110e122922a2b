"""A cheap judge grades every passage; a good one those where it matters, where cheap grades differ, and some at random.

What the good judge says is the grade wherever it was asked. If it fails, so does the judgment: the cheap grade does not
take its place, and the next run asks again. Whom it is asked about follows from the cheap answers and from a draw by
name, so that neither time nor the order of the work changes it. No answer is trusted for how sure it says that it is.

Those asked at random alone are a fair sample of the passages that the cheap judge keeps to itself: they tell how often
it errs there (`raggs.stages.judge_health`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.artifacts import MAX_GRADE, Passage, Query
from raggs.base.seeds import derive_seed
from raggs.base.settings import Causes, Effort
from raggs.base.types import as_list
from raggs.parts import judges
from raggs.parts.judges.base import Calls, JudgeContext, Judgment, Ordering, OrderPrice, Task, lower_median, may_abstain
from raggs.parts.judges.several import SeveralJudge, reasons

SEED = 0
DRAWS = 2**64
MemberSpec = Annotated[AdapterConfig, OneOf(judges.REGISTRY, lambda judge: judge.IN_CASCADE)]


class CascadeConfig(AdapterConfig):
    type: Literal["cascade"] = "cascade"
    judges: tuple[MemberSpec, ...] = Field(
        min_length=2, description="the cheap one first, the good one last; of several cheap ones all are asked"
    )
    samples: int = Field(
        1, ge=1, description="grades asked of each cheap judge; where they differ, the good one is asked"
    )
    ask_from: int | None = Field(
        2, ge=2, le=MAX_GRADE, description="cheap grades from here up are asked of the good judge; null: none for that"
    )
    audit: float = Field(
        0.05,
        ge=0,
        le=1,
        description="share of the other passages that the good judge is asked, drawn at random: they tell how often the"
        " cheap one errs where nobody looks",
    )
    order: Effort[Literal["good", "cheap"]] = Field(  # no grade hangs on it; whoever asks for orders states it
        "good", description="who orders the batches of the rank stage: the last judge, or the first"
    )

    @model_validator(mode="after")
    def _differ(self) -> CascadeConfig:
        for place, spec in enumerate(self.judges):
            if spec in self.judges[:place]:
                raise ValueError(f"judge {place} is the same as one before it; to ask a cheap one often, set samples")
        return self

    @property
    def cheap_answers(self) -> int:
        """How many cheap grades each passage gets."""
        return (len(self.judges) - 1) * self.samples

    def asks_good(self, grades: Sequence[int | None]) -> bool:
        """Whether cheap grades alone send a passage to the good judge: one is missing, they differ, or it matters."""
        given = [grade for grade in grades if grade is not None]
        if not given or len(given) < len(grades) or len(set(given)) > 1:
            return True
        return self.ask_from is not None and given[0] >= self.ask_from

    def sends(self, qid: str, doc_id: str, grades: Sequence[int | None]) -> bool:
        """Whether the good judge is asked: cheap grades send for it, or a draw by name, which is the same each time."""
        return self.asks_good(grades) or derive_seed(SEED, "cascade", qid, doc_id) < self.audit * DRAWS


class CascadeJudge(SeveralJudge):
    """A cheap judge for all passages, a good one where it matters or the cheap one wavers."""

    Config = CascadeConfig
    IN_CASCADE = False
    config: CascadeConfig

    def __init__(self, config: CascadeConfig, context: JudgeContext) -> None:
        super().__init__(config, context, config.judges)
        *self._cheap, self._good = self.members

    @property
    def name(self) -> str:
        return f"cascade {' + '.join(self.members)}"

    @classmethod
    def groups(cls, spec: AdapterConfig) -> bool:
        """See `Judge.groups`: if any cheap one can."""
        members = spec.judges[:-1] if isinstance(spec, CascadeConfig) else ()
        return any(judges.REGISTRY.of(member).groups(member) for member in members)

    @classmethod
    def abstains(cls, settings: Causes) -> bool:
        """See `Judge.abstains`: if the good one may, whatever became of the cheap ones."""
        return may_abstain(as_list(settings.get("judges"))[-1])

    @property
    def grades_together(self) -> bool:
        return any(self.members[name].grades_together for name in self._cheap)

    @property
    def alone(self) -> frozenset[str]:
        return super().alone | frozenset(self.members[self._good].models)

    @property
    def _orderer(self) -> str:
        return self._good if self.config.order == "good" else self._cheap[0]

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """See `Judge.calls`; of the good judge at least what is drawn at random."""
        if task == "order":
            return self.members[self._orderer].calls(task)
        each, good = self.config.samples, self.members[self._good].calls(task)
        cheap = [self.members[name].calls(task) for name in self._cheap for _ in range(each)]
        return Calls.together(
            [*cheap, {model: Calls(self.config.audit * n.least, n.most) for model, n in good.items()}]
        )

    @property
    def order_price(self) -> OrderPrice:
        return self.members[self._orderer].order_price

    def causes(self, task: Task) -> Causes:
        """See `Judge.causes`: for orders, who orders and nobody else."""
        if task == "order":
            orderer = self.members[self._orderer].causes(task)
            return {"type": self.config.type, "version": self.VERSION, "order": self.config.order, "judges": [orderer]}
        return {
            "type": self.config.type,
            "version": self.VERSION,
            "samples": self.config.samples,
            "ask_from": self.config.ask_from,
            "audit": self.config.audit,
            "judges": [member.causes(task) for member in self.members.values()],
        }

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        asked = (
            self.members[name].grade(query, passage, sample=sample * self.config.samples + number)
            for name, number in self._cheap_asks
        )
        return await self._decided(query, passage, self._cheap_votes(await asyncio.gather(*asked)), sample)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """See `Judge.grades`: the cheap ones see them together, the good one each alone.

        What the good one says of a passage so hangs on nothing that the cheap ones think of the others.
        """
        asked = (
            self.members[name].grades(query, passages, sample=sample * self.config.samples + number)
            for name, number in self._cheap_asks
        )
        said = zip(*await asyncio.gather(*asked), strict=True)
        found = zip(passages, map(self._cheap_votes, said), strict=True)
        return await asyncio.gather(*(self._decided(query, passage, votes, sample) for passage, votes in found))

    async def _decided(self, query: Query, passage: Passage, votes: dict[str, Judgment], sample: int) -> Judgment:
        """What comes of the cheap votes, and of the good judge's where they send for it."""
        grades = [vote.grade for vote in votes.values()]
        if not self.config.sends(query.qid, passage.doc_id, grades):
            return self._by_cheap(votes)
        said = await self.members[self._good].grade(query, passage, sample=sample)
        if said.silent is not None:
            return self._by_cheap(votes, said.silent)
        votes[self._good] = said
        if said.grade is None:
            return Judgment(None, error=reasons({self._good: said.error}), raw=said.raw, votes=votes)
        return Judgment(said.grade, said.reason, votes=votes, by=said.by or self._good)

    @property
    def _cheap_asks(self) -> list[tuple[str, int]]:
        """Whom of the cheap ones is asked, and for which of its samples."""
        return [(name, number) for name in self._cheap for number in range(self.config.samples)]

    def _cheap_votes(self, said: Sequence[Judgment]) -> dict[str, Judgment]:
        """All samples of all cheap judges. One that abstains is as one that failed: somebody else must decide."""
        return {
            name if number == 0 else f"{name} #sample {number + 1}": vote
            if vote.silent is None
            else Judgment(None, error=vote.silent)
            for (name, number), vote in zip(self._cheap_asks, said, strict=True)
        }

    def _by_cheap(self, votes: Mapping[str, Judgment], silent: str = "") -> Judgment:
        """What the cheap ones say without the good one, who abstains where it says why."""
        grade = lower_median([vote.grade for vote in votes.values()])
        if grade is None:
            return Judgment(
                None, silent=reasons({**{name: vote.error for name, vote in votes.items()}, self._good: silent})
            )
        first = next(vote for vote in votes.values() if vote.grade is not None)
        return Judgment(grade, first.reason, votes=votes, by=" + ".join(self._cheap))

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return await self.reorder(query, passages, sample=0)

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """See `Judge.reorder`: of the one who orders."""
        said = await self.members[self._orderer].reorder(query, passages, sample=sample)
        return said if said.by or said.order is None else replace(said, by=self._orderer)
