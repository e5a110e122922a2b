"""Several judges as one: each grades every passage, and a rule settles what they say together.

Every member's grade is kept beside the panel's. Where members fail, the others decide as long as at least half of them
answered; otherwise the panel fails, and says what each failure was. Orders are settled by Kemeny's rule, where the
first member has the casting vote. A panel holds no panel.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from raggs import judges
from raggs.adapter import AdapterConfig, OneOf
from raggs.artifacts import Passage, Query
from raggs.fusion.kemeny import consensus_order
from raggs.jsontypes import as_list
from raggs.judges.base import Judge, JudgeContext, Judgment, Ordering, Task
from raggs.judges.consensus import lower_median, quorum, weighted_grade
from raggs.judges.exactness import is_exact
from raggs.settings import Causes

MemberSpec = Annotated[AdapterConfig, OneOf(judges.REGISTRY, lambda judge: judge.IN_PANEL)]


class PanelConfig(AdapterConfig):
    type: Literal["panel"] = "panel"
    judges: tuple[MemberSpec, ...] = Field(min_length=2, description="the members; the first has the casting vote")
    rule: Literal["median", "weighted"] = Field(
        "median", description="of the members' grades: the lower median, or the weighted mean, a half rounded down"
    )
    weights: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(
        None, description="for rule weighted, one for each member; they count in orders too"
    )

    @model_validator(mode="after")
    def _fits(self) -> PanelConfig:
        if (self.rule == "weighted") != (self.weights is not None):
            raise ValueError("rule weighted and weights belong together; give both or neither")
        if self.weights is not None and len(self.weights) != len(self.judges):
            raise ValueError(f"{len(self.weights)} weights for {len(self.judges)} judges; give one for each")
        for place, spec in enumerate(self.judges):
            if spec in self.judges[:place]:
                raise ValueError(f"judge {place} is the same as one before it; to ask one judge often, set samples")
        return self


class PanelJudge(Judge):
    """Several judges, each any of the others, settled by median or weights."""

    Config = PanelConfig
    IN_PANEL = False
    config: PanelConfig

    def __init__(self, config: PanelConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        made = [context.judge(spec) for spec in config.judges]
        self.members = dict(zip(_names(made), made, strict=True))

    @classmethod
    def exact(cls, causes: Causes) -> bool:
        """See `Judge.exact`: if all members are."""
        return all(is_exact(member) for member in as_list(causes.get("judges")))

    @property
    def name(self) -> str:
        return f"panel {' + '.join(self.members)}"

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for member in self.members.values() for model in member.models)

    def causes(self, task: Task) -> Causes:
        return {
            "type": self.config.type,
            "rule": self.config.rule,
            "weights": None if self.config.weights is None else list(self.config.weights),
            "version": self.VERSION,
            "judges": [member.causes(task) for member in self.members.values()],
        }

    def check(self, queries: Iterable[Query]) -> None:
        asked = list(queries)
        for member in self.members.values():
            member.check(asked)

    @property
    def by_place(self) -> bool:
        return any(member.by_place for member in self.members.values())

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """See `Judge.apart`; where somebody is paid, near-duplicates are not asked about for the sake of the others."""
        return not self.models and any(member.apart(query, one, other) for member in self.members.values())

    def remarks(self) -> Iterator[str]:
        for member in self.members.values():
            yield from member.remarks()

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        found = await asyncio.gather(*(member.grade(query, passage, sample=sample) for member in self.members.values()))
        votes = dict(zip(self.members, found, strict=True))
        grades = [vote.grade for vote in found]
        weights = self.config.weights
        grade = lower_median(grades) if weights is None else weighted_grade(grades, weights)
        if grade is None:
            raw = next((vote.raw for vote in found if vote.grade is None), None)
            return Judgment(
                None, error=_failures({name: vote.error for name, vote in votes.items()}), raw=raw, votes=votes
            )
        nearest = min(
            (vote for vote in found if vote.grade is not None), key=lambda vote: abs((vote.grade or 0) - grade)
        )
        return Judgment(grade, nearest.reason, votes=votes)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        found = await asyncio.gather(*(member.order(query, passages) for member in self.members.values()))
        weights = self.config.weights or (1.0,) * len(found)
        given = [(each.order, weight) for each, weight in zip(found, weights, strict=True) if each.order is not None]
        if not quorum(len(found), len(given)):
            errors = {name: each.error for name, each in zip(self.members, found, strict=True)}
            return Ordering(None, _failures(errors), next((each.raw for each in found if each.order is None), None))
        return Ordering(consensus_order([order for order, _ in given], [weight for _, weight in given]))


def _names(members: Sequence[Judge]) -> list[str]:
    """Each member's own name; of those with the same name, the later ones numbered."""
    seen: Counter[str] = Counter()
    found = []
    for member in members:
        seen[member.name] += 1
        found.append(member.name if seen[member.name] == 1 else f"{member.name} #{seen[member.name]}")
    return found


def _failures(errors: dict[str, str | None]) -> str:
    return "; ".join(f"{name}: {error}" for name, error in errors.items() if error is not None)
