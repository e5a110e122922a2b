"""Several judges as one: each grades every passage, and a rule settles what they say together.

Every member's grade is kept beside the panel's. Where members fail, the others decide as long as at least half of them
answered; otherwise the panel fails, and says what each failure was. Orders are settled by Kemeny's rule, where the
first member has the casting vote. A panel holds no panel, unless its rule is `first`.

A member that abstains has no vote and is not counted; where all do, the panel abstains. Under rule `first` members are
asked one after the other until one speaks, and that one decides: nobody later is asked, or paid. With `ask_all` the
later members grade too, so that a judge can be compared with the human labels that came before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.artifacts import Passage, Query
from raggs.base.judge_health import PEOPLE
from raggs.base.settings import Causes, Later
from raggs.parts import judges
from raggs.parts.judges.base import (
    Calls,
    JudgeContext,
    Judgment,
    Ordering,
    OrderPrice,
    Task,
    lower_median,
    quorum,
    weighted_grade,
)
from raggs.parts.judges.several import SeveralJudge, reasons
from raggs.ranking.fusion import consensus_order

Said = TypeVar("Said", Judgment, Ordering)
MemberSpec = Annotated[AdapterConfig, OneOf(judges.REGISTRY, lambda judge: judge.IN_PANEL)]


class PanelConfig(AdapterConfig):
    type: Literal["panel"] = "panel"
    judges: tuple[MemberSpec, ...] = Field(min_length=2, description="the members; the first has the casting vote")
    rule: Literal["median", "weighted", "first"] = Field(
        "median",
        description="of the members' grades: the lower median, or the weighted mean, a half rounded down; first: the"
        " first member that speaks decides, later ones are asked only where those before them abstain or fail",
    )
    weights: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(
        None, description="for rule weighted, one for each member; they count in orders too"
    )
    ask_all: Later[bool] = Field(
        False,
        description="for rule first: also ask the members after the one that decides for a grade, which is kept beside"
        " the deciding one and counts for `raggs judge check` alone",
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
        if self.ask_all and self.rule != "first":
            raise ValueError("ask_all is for rule first; every other rule asks all members anyway")
        held = [member for member in self.judges if isinstance(member, PanelConfig)]
        if held and (self.rule != "first" or any(isinstance(each, PanelConfig) for one in held for each in one.judges)):
            raise ValueError("a panel holds another panel only under rule first, and only one level deep")
        return self


def people_first(spec: AdapterConfig) -> PanelConfig | AdapterConfig:
    """Return the judge whose grades are the human labels, and those of `spec` where nobody gave one.

    `spec` grades all passages, so that `raggs judge check` can compare it with the labels.
    """
    if spec.type == PEOPLE:
        return spec
    held = spec.judges if isinstance(spec, PanelConfig) and spec.rule == "first" else ()
    if len(held) == 2 and held[0].type == PEOPLE:
        return spec.model_copy(update={"ask_all": True})
    return PanelConfig.model_validate({"judges": [{"type": PEOPLE}, spec], "rule": "first", "ask_all": True})


class PanelJudge(SeveralJudge):
    """Several judges, each any of the others, settled by median or weights."""

    Config = PanelConfig
    IN_CASCADE = False
    config: PanelConfig

    def __init__(self, config: PanelConfig, context: JudgeContext) -> None:
        super().__init__(config, context, config.judges)

    @property
    def name(self) -> str:
        return f"{'first of' if self._first else 'panel'} {' + '.join(self.members)}"

    @property
    def _first(self) -> bool:
        return self.config.rule == "first"

    @property
    def _grades_of_all(self) -> bool:
        return not self._first or self.config.ask_all

    @classmethod
    def groups(cls, spec: AdapterConfig) -> bool:
        """See `Judge.groups`: if any member can."""
        members = spec.judges if isinstance(spec, PanelConfig) else ()
        return any(judges.REGISTRY.of(member).groups(member) for member in members)

    @property
    def grades_together(self) -> bool:
        return any(member.grades_together for member in self.members.values())

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """See `Judge.calls`; under rule `first` of the first member alone surely, unless all are asked."""
        members = [member.calls(task) for member in self.members.values()]
        if self._first and (task == "order" or not self.config.ask_all):
            members[1:] = [{model: Calls(0, each.most) for model, each in found.items()} for found in members[1:]]
        return Calls.together(members)

    @property
    def order_price(self) -> OrderPrice:
        """See `Judge.order_price`: of all members, or of the first one where later ones are seldom asked."""
        prices = [member.order_price for member in self.members.values()]
        return prices[0] if self._first else OrderPrice.together(prices)

    def causes(self, task: Task) -> Causes:
        return {
            "type": self.config.type,
            "rule": self.config.rule,
            "weights": None if self.config.weights is None else list(self.config.weights),
            "version": self.VERSION,
            **({"ask_all": True} if self.config.ask_all else {}),
            "judges": [member.causes(task) for member in self.members.values()],
        }

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        asked = {name: partial(member.grade, query, passage, sample=sample) for name, member in self.members.items()}
        every = _all(asked) if self._grades_of_all else _until(asked, lambda said: said.grade is not None)
        return self._decided(await every)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """See `Judge.grades`. Under rule `first` a later member sees all that it would see if nobody had spoken before.

        So no word of people changes the company of the other passages, or what is asked and paid for them.
        """
        found: list[dict[str, Judgment]] = [{} for _ in passages]
        if self._grades_of_all:
            asked = [member.grades(query, passages, sample=sample) for member in self.members.values()]
            for name, given in zip(self.members, await asyncio.gather(*asked), strict=True):
                for votes, said in zip(found, given, strict=True):
                    votes[name] = said
            return [self._decided(votes) for votes in found]
        for name, member in self.members.items():
            waiting = [place for place, votes in enumerate(found) if not any(said.grade for said in votes.values())]
            if not waiting:
                break
            shown = range(len(passages)) if member.grades_together else waiting
            given = await member.grades(query, [passages[place] for place in shown], sample=sample)
            said_of = dict(zip(shown, given, strict=True))
            for place in waiting:
                found[place][name] = said_of[place]
        return [self._decided(votes) for votes in found]

    def _decided(self, found: Mapping[str, Judgment]) -> Judgment:
        """What the answers of those who were asked about a passage come to."""
        spoken = {name: said for name, said in found.items() if said.silent is None}
        if not spoken:
            return Judgment(None, silent=reasons({name: said.silent for name, said in found.items()}))
        votes = _inner(spoken) if self._first and PEOPLE not in spoken else spoken
        grade = self._settled({name: vote.grade for name, vote in spoken.items()})
        if grade is None:
            raw = next((vote.raw for vote in spoken.values() if vote.grade is None), None)
            errors = reasons({name: vote.error for name, vote in spoken.items()})
            return Judgment(None, error=errors, raw=raw, votes=votes)
        given = {name: vote for name, vote in spoken.items() if vote.grade is not None}
        name = min(given, key=lambda name: abs((given[name].grade or 0) - grade))
        by = (given[name].by or name) if self._first else ""
        return Judgment(grade, given[name].reason, votes=votes, by=by)

    def _settled(self, grades: Mapping[str, int | None]) -> int | None:
        """What the grades of those who did not abstain come to; None where too few gave one."""
        if self._first:
            return next((grade for grade in grades.values() if grade is not None), None)
        given = list(grades.values())
        return lower_median(given) if self.config.weights is None else weighted_grade(given, self._weights(grades))

    def _weights(self, names: Iterable[str]) -> list[float]:
        weights = dict(zip(self.members, self.config.weights or (1.0,) * len(self.members), strict=True))
        return [weights[name] for name in names]

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return await self.reorder(query, passages, sample=0)

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """See `Judge.reorder`: of all members."""
        asked = {name: partial(member.reorder, query, passages, sample=sample) for name, member in self.members.items()}
        found = await (_until(asked, lambda said: said.order is not None) if self._first else _all(asked))
        spoken = {name: said for name, said in found.items() if said.silent is None}
        if not spoken:
            return Ordering(None, silent=reasons({name: said.silent for name, said in found.items()}))
        given = {name: said.order for name, said in spoken.items() if said.order is not None}
        answerers = tuple(dict.fromkeys(key for said in spoken.values() for key in said.answerers))
        if not (given if self._first else quorum(len(spoken), len(given))):
            errors = reasons({name: said.error for name, said in spoken.items()})
            raw = next((said.raw for said in spoken.values() if said.order is None), None)
            return Ordering(None, errors, raw, answerers=answerers)
        by = next((spoken[name].by or name for name in given), "") if self._first else ""
        return Ordering(consensus_order(list(given.values()), self._weights(given)), by=by, answerers=answerers)


def _inner(spoken: Mapping[str, Judgment]) -> dict[str, Judgment]:
    """The votes, of a member that is made of others theirs."""
    return {inner: vote for name, said in spoken.items() for inner, vote in (said.votes or {name: said}).items()}


async def _all(asked: Mapping[str, Callable[[], Awaitable[Said]]]) -> dict[str, Said]:
    """Every member's answer, asked for at once."""
    return dict(zip(asked, await asyncio.gather(*(ask() for ask in asked.values())), strict=True))


async def _until(asked: Mapping[str, Callable[[], Awaitable[Said]]], speaks: Callable[[Said], bool]) -> dict[str, Said]:
    """The answers up to the first that says something, one after the other."""
    found: dict[str, Said] = {}
    for name, ask in asked.items():
        found[name] = await ask()
        if speaks(found[name]):
            break
    return found
