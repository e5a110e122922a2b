"""Judges with member judges: panel and cascade.

Fingerprints, checks and remarks of a composite judge cover all of its members. Exception: a cascade's fingerprint for
orders covers only the member that orders. Each kind defines which members are called and how their answers are
combined.

Panel: except under rule `first`, each member grades every passage, and the rule combines the grades. Each member's
grade is stored next to the panel's. If members fail, the remaining ones decide as long as at least half have answered.
If fewer have answered, the panel fails and reports each error. A member that states probabilities votes by its grade.
The panel has a distribution only if every member with a grade has one: their mean, with the panel's weights. Orders are
combined by Kemeny's rule (Borda's for more than 10 passages), and ties are decided by the first member. A panel can
contain another panel only under rule `first`.

A member that abstains does not count; if all abstain, the panel abstains. Under rule `first`, members are called in
sequence until one gives a grade or an order. This answer is final, and its distribution is the panel's. Later members
are not called. With `ask_all`, the later members grade, too, so that a judge can be compared with human labels that
have priority.

Cascade: cheap judges grade every passage. The good judge grades passages with a high or uncertain cheap grade, and a
random sample of the other passages. Its grade replaces the cheap grade, unless it abstains. If the good judge fails,
the judgment fails and the next run repeats the call; the cheap grade is not a substitute. The choice of passages
depends only on the cheap grades and on a hash of the ids, so it does not depend on timing. Confidence that a model
reports about itself is ignored.

The randomly chosen passages are an unbiased sample of the passages that only the cheap judge would grade. This sample
shows how often the cheap judge is wrong on these passages (`raggs.stages.judge_health`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.artifacts import MAX_GRADE, Passage, Query
from raggs.base.hashing import derive_seed, hash_value
from raggs.base.judge_health import HUMAN_SOURCE
from raggs.base.settings import AddedLater, Causes, Effort
from raggs.base.types import as_list
from raggs.parts import judges
from raggs.parts.judges import (
    Calls,
    Judge,
    JudgeContext,
    Judgment,
    KnownOrder,
    Ordering,
    OrderPrice,
    Task,
    is_exact,
    lower_median,
    may_abstain,
    mean_of_distributions,
    quorum,
    weighted_grade,
)
from raggs.ranking.fusion import consensus_order


class SeveralJudge(Judge):
    """A judge with member judges.

    Attributes:
        members: member judges by name, in the order of the settings.
    """

    def __init__(self, config: AdapterConfig, context: JudgeContext, specs: Sequence[AdapterConfig]) -> None:
        super().__init__(config, context)
        made = [context.judge(spec) for spec in specs]
        self.members: Mapping[str, Judge] = dict(zip(_member_names(made), made, strict=True))

    @classmethod
    def exact(cls, causes: Causes) -> bool:
        """Return whether all members are exact (see `Judge.exact`)."""
        return all(is_exact(member) for member in as_list(causes.get("judges")))

    @classmethod
    def abstains(cls, settings: Causes) -> bool:
        """Return whether all members may abstain (see `Judge.abstains`)."""
        return all(may_abstain(member) for member in as_list(settings.get("judges")))

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for member in self.members.values() for model in member.models)

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """Return the calls of all members (see `Judge.calls`)."""
        return Calls.together([member.calls(task) for member in self.members.values()])

    @property
    def alone(self) -> frozenset[str]:
        return frozenset(model for member in self.members.values() for model in member.alone)

    @property
    def reads(self) -> bool:
        return any(member.reads for member in self.members.values())

    @property
    def central(self) -> bool:
        return any(member.central for member in self.members.values())

    def check(self, queries: Iterable[Query]) -> None:
        asked = list(queries)
        for member in self.members.values():
            member.check(asked)

    @property
    def by_place(self) -> bool:
        return any(member.by_place for member in self.members.values())

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """Return whether any member needs separate grades (see `Judge.apart`); False if the judge is `central`."""
        return not self.central and any(member.apart(query, one, other) for member in self.members.values())

    async def confirm(self) -> Sequence[tuple[str, bool]]:
        """Return the tests of all members (see `Judge.confirm`)."""
        return [note for member in self.members.values() for note in await member.confirm()]

    def remarks(self) -> Iterator[str]:
        for member in self.members.values():
            yield from member.remarks()

    @property
    def told(self) -> str | None:
        found = [member.told for member in self.members.values() if member.told is not None]
        return hash_value(found) if found else None

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """Return the known orders of all members, including members that are not called (see `Judge.known`)."""
        return [order for member in self.members.values() for order in await member.known(query, passages)]


def reasons(said: Mapping[str, str | None]) -> str:
    """Join the reasons, each with its member's name; members without a reason are omitted."""
    return "; ".join(f"{name}: {reason}" for name, reason in said.items() if reason is not None)


def _member_names(members: Sequence[Judge]) -> list[str]:
    """Return the members' names; repeated names get a number."""
    seen: Counter[str] = Counter()
    found = []
    for member in members:
        seen[member.name] += 1
        found.append(member.name if seen[member.name] == 1 else f"{member.name} #{seen[member.name]}")
    return found


Said = TypeVar("Said", Judgment, Ordering)
PanelMember = Annotated[AdapterConfig, OneOf(judges.REGISTRY, lambda judge: judge.IN_PANEL)]


class PanelConfig(AdapterConfig):
    type: Literal["panel"] = "panel"
    judges: tuple[PanelMember, ...] = Field(min_length=2, description="member judges; the first decides ties in orders")
    rule: Literal["median", "weighted", "first"] = Field(
        "median",
        description="how grades are combined. median: lower median; weighted: weighted mean, with halves rounded down."
        " first: the grade of the first member that gives one, and later members are not called (except with ask_all)",
    )
    weights: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(
        None, description="weight of each member, for rule weighted; also used for orders"
    )
    ask_all: AddedLater[bool] = Field(
        False,
        description="for rule first: later members grade, too; their grades are stored next to the deciding"
        " grade and used only by `raggs judge check`",
    )

    @model_validator(mode="after")
    def _fits(self) -> PanelConfig:
        if (self.rule == "weighted") != (self.weights is not None):
            raise ValueError("rule weighted requires weights, and other rules do not use them; set both or neither")
        if self.weights is not None and len(self.weights) != len(self.judges):
            raise ValueError(f"{len(self.weights)} weights for {len(self.judges)} judges; set one weight per judge")
        for place, spec in enumerate(self.judges):
            if spec in self.judges[:place]:
                raise ValueError(f"judge {place} repeats an earlier judge; for several calls of a judge, set samples")
        if self.ask_all and self.rule != "first":
            raise ValueError("ask_all requires rule first; all other rules call all members anyway")
        held = [member for member in self.judges if isinstance(member, PanelConfig)]
        if held and (self.rule != "first" or any(isinstance(each, PanelConfig) for one in held for each in one.judges)):
            raise ValueError("a panel can contain another panel only with rule first, and only one level deep")
        return self


def people_first(spec: AdapterConfig) -> PanelConfig | AdapterConfig:
    """Return a judge that uses human labels first, and `spec` for passages without a label.

    `spec` still grades all passages, so that `raggs judge check` can compare it with the labels.
    """
    if spec.type == HUMAN_SOURCE:
        return spec
    held = spec.judges if isinstance(spec, PanelConfig) and spec.rule == "first" else ()
    if len(held) == 2 and held[0].type == HUMAN_SOURCE:
        return spec.model_copy(update={"ask_all": True})
    return PanelConfig.model_validate({"judges": [{"type": HUMAN_SOURCE}, spec], "rule": "first", "ask_all": True})


class PanelJudge(SeveralJudge):
    """Several judges whose grades are combined by median, weighted mean, or the first grade given."""

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
        """Return whether any member can show several passages together (see `Judge.groups`)."""
        members = spec.judges if isinstance(spec, PanelConfig) else ()
        return any(judges.REGISTRY.of(member).groups(member) for member in members)

    @property
    def grades_together(self) -> bool:
        return any(member.grades_together for member in self.members.values())

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """Return the calls of all members. Under rule `first`, later members may need no call, except for grades with
        `ask_all`.
        """
        members = [member.calls(task) for member in self.members.values()]
        if self._first and (task == "order" or not self.config.ask_all):
            members[1:] = [{model: Calls(0, each.most) for model, each in found.items()} for found in members[1:]]
        return Calls.together(members)

    @property
    def order_price(self) -> OrderPrice:
        """Price of all members (see `Judge.order_price`); under rule `first`, the price of the first member."""
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
        """Return the grades of all passages (see `Judge.grades`).

        Under rule `first`, a later member that grades groups still sees all passages of the group. Human labels
        therefore change neither the prompts for the other passages nor their cost.
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
        """Combine the answers of the called members into one judgment."""
        spoken = {name: said for name, said in found.items() if said.silent is None}
        if not spoken:
            return Judgment(None, silent=reasons({name: said.silent for name, said in found.items()}))
        votes = _inner(spoken) if self._first and HUMAN_SOURCE not in spoken else spoken
        grade = self._settled({name: vote.grade for name, vote in spoken.items()})
        if grade is None:
            raw = next((vote.raw for vote in spoken.values() if vote.grade is None), None)
            errors = reasons({name: vote.error for name, vote in spoken.items()})
            return Judgment(None, error=errors, raw=raw, votes=votes)
        given = {name: vote for name, vote in spoken.items() if vote.grade is not None}
        name = min(given, key=lambda name: abs((given[name].grade or 0) - grade))
        by = (given[name].by or name) if self._first else ""
        deciding = {name: given[name]} if self._first else given
        shares, source = mean_of_distributions([*deciding.values()], self._weights(deciding))
        reason = given[name].reason
        return Judgment(grade, reason, votes=votes, by=by, distribution=shares, distribution_source=source)

    def _settled(self, grades: Mapping[str, int | None]) -> int | None:
        """Combine the grades of members that did not abstain; None if too few members gave a grade."""
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
        """Return the combined order of all members; under rule `first`, the first order given (see `Judge.reorder`)."""
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
        best = next((spoken[name].best for name in given), None) if self._first else None
        order = consensus_order(list(given.values()), self._weights(given))
        return Ordering(order, by=by, answerers=answerers, best=best)


def _inner(spoken: Mapping[str, Judgment]) -> dict[str, Judgment]:
    """Return the votes; if a member is composite, its members' votes are returned instead."""
    return {inner: vote for name, said in spoken.items() for inner, vote in (said.votes or {name: said}).items()}


async def _all(asked: Mapping[str, Callable[[], Awaitable[Said]]]) -> dict[str, Said]:
    """Call all members concurrently and return their answers."""
    return dict(zip(asked, await asyncio.gather(*(ask() for ask in asked.values())), strict=True))


async def _until(asked: Mapping[str, Callable[[], Awaitable[Said]]], speaks: Callable[[Said], bool]) -> dict[str, Said]:
    """Call members in sequence until `speaks` accepts an answer, and return all answers so far."""
    found: dict[str, Said] = {}
    for name, ask in asked.items():
        found[name] = await ask()
        if speaks(found[name]):
            break
    return found


SEED = 0
SEED_RANGE = 2**64
CascadeMember = Annotated[AdapterConfig, OneOf(judges.REGISTRY, lambda judge: judge.IN_CASCADE)]


class CascadeConfig(AdapterConfig):
    type: Literal["cascade"] = "cascade"
    judges: tuple[CascadeMember, ...] = Field(
        min_length=2, description="cheap judges first, good judge last; all cheap judges grade every passage"
    )
    samples: int = Field(
        1, ge=1, description="samples per cheap judge; if their grades differ, the good judge is called"
    )
    ask_from: int | None = Field(
        2, ge=2, le=MAX_GRADE, description="lowest cheap grade for which the good judge is called; null: no grade"
    )
    audit: float = Field(
        0.05,
        ge=0,
        le=1,
        description="share of the passages that cheap grades would settle, drawn at random: the good judge grades them,"
        " too, for an estimate of the cheap judge's error rate",
    )
    order: Effort[Literal["good", "cheap"]] = (
        Field(  # This setting does not affect grades; only the causes of orders include it.
            "good", description="judge of the rank stage: good is the last judge, cheap the first"
        )
    )

    @model_validator(mode="after")
    def _differ(self) -> CascadeConfig:
        for place, spec in enumerate(self.judges):
            if spec in self.judges[:place]:
                raise ValueError(f"judge {place} repeats an earlier judge; for several calls of a judge, set samples")
        return self

    @property
    def cheap_answers(self) -> int:
        """Number of cheap grades per passage."""
        return (len(self.judges) - 1) * self.samples

    def asks_good(self, grades: Sequence[int | None]) -> bool:
        """Return whether cheap grades require the good judge: a grade is missing, they differ, or they reach
        `ask_from`.
        """
        given = [grade for grade in grades if grade is not None]
        if not given or len(given) < len(grades) or len(set(given)) > 1:
            return True
        return self.ask_from is not None and given[0] >= self.ask_from

    def sends(self, qid: str, doc_id: str, grades: Sequence[int | None]) -> bool:
        """Return whether the good judge grades the passage: because of `asks_good`, or because a hash of the ids
        selects it.
        """
        return self.asks_good(grades) or derive_seed(SEED, "cascade", qid, doc_id) < self.audit * SEED_RANGE


class CascadeJudge(SeveralJudge):
    """A cheap judge for all passages, and a good judge for high or uncertain grades and a random sample."""

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
        """Return whether any cheap judge can show several passages together (see `Judge.groups`)."""
        members = spec.judges[:-1] if isinstance(spec, CascadeConfig) else ()
        return any(judges.REGISTRY.of(member).groups(member) for member in members)

    @classmethod
    def abstains(cls, settings: Causes) -> bool:
        """Return whether the good judge may abstain (see `Judge.abstains`); only then can the cascade abstain."""
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
        """Return the calls of all members (see `Judge.calls`); for orders, those of the member that orders passages.

        For grades, the good judge has at least the calls for the random sample.
        """
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
        """Return the causes (see `Judge.causes`); the causes of orders are those of the member that orders passages."""
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
        """Return the grades (see `Judge.grades`): cheap judges see passages together, the good judge one at a time.

        The good judge's grade of a passage therefore does not depend on the cheap grades of other passages.
        """
        asked = (
            self.members[name].grades(query, passages, sample=sample * self.config.samples + number)
            for name, number in self._cheap_asks
        )
        said = zip(*await asyncio.gather(*asked), strict=True)
        found = zip(passages, map(self._cheap_votes, said), strict=True)
        return await asyncio.gather(*(self._decided(query, passage, votes, sample) for passage, votes in found))

    async def _decided(self, query: Query, passage: Passage, votes: dict[str, Judgment], sample: int) -> Judgment:
        """Combine the cheap votes, and the good judge's grade if it is called."""
        grades = [vote.grade for vote in votes.values()]
        if not self.config.sends(query.qid, passage.doc_id, grades):
            return self._by_cheap(votes)
        said = await self.members[self._good].grade(query, passage, sample=sample)
        if said.silent is not None:
            return self._by_cheap(votes, said.silent)
        votes[self._good] = said
        if said.grade is None:
            return Judgment(None, error=reasons({self._good: said.error}), raw=said.raw, votes=votes)
        found = Judgment(said.grade, said.reason, votes=votes, by=said.by or self._good)
        return replace(found, distribution=said.distribution, distribution_source=said.distribution_source)

    @property
    def _cheap_asks(self) -> list[tuple[str, int]]:
        """The calls to cheap judges: member name and sample number."""
        return [(name, number) for name in self._cheap for number in range(self.config.samples)]

    def _cheap_votes(self, said: Sequence[Judgment]) -> dict[str, Judgment]:
        """Return the votes of all cheap samples; an abstention counts as a failure, so that the good judge decides."""
        return {
            name if number == 0 else f"{name} #sample {number + 1}": vote
            if vote.silent is None
            else Judgment(None, error=vote.silent)
            for (name, number), vote in zip(self._cheap_asks, said, strict=True)
        }

    def _by_cheap(self, votes: Mapping[str, Judgment], silent: str = "") -> Judgment:
        """Return the judgment of the cheap judges without the good judge; `silent`: why the good judge abstained, if
        it did.
        """
        grade = lower_median([vote.grade for vote in votes.values()])
        if grade is None:
            return Judgment(
                None, silent=reasons({**{name: vote.error for name, vote in votes.items()}, self._good: silent})
            )
        given = [vote for vote in votes.values() if vote.grade is not None]
        shares, source = mean_of_distributions(given)
        found = Judgment(grade, given[0].reason, votes=votes, by=" + ".join(self._cheap))
        return replace(found, distribution=shares, distribution_source=source)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return await self.reorder(query, passages, sample=0)

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """Return the order of the member that the setting `order` selects (see `Judge.reorder`)."""
        said = await self.members[self._orderer].reorder(query, passages, sample=sample)
        return said if said.by or said.order is None else replace(said, by=self._orderer)
