"""What a judge is: someone who grades one passage, and orders a few.

The same judge serves both stages. A judge that fails says so in its answer; it never invents a grade or an order. One
that has nothing to say (people who have not read a passage) abstains, which is neither a failure nor a grade.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Passage, Query
from raggs.base.secrets import mask
from raggs.base.settings import Causes
from raggs.base.text import sound
from raggs.parts.judges.orderprice import TYPICAL, OrderPrice

if TYPE_CHECKING:
    from raggs.llm import LLM
    from raggs.prompts import Prompt

Task = Literal["grade", "grades", "order"]

MOST_SAID = 10_000  # characters of a reason, an error or an unusable answer that are stored
BOUNDED = re.compile(r"… \([\d,]+ characters in all\)\Z")  # the end of what was longer


@dataclass(frozen=True)
class Judgment:
    """One graded passage: `grade` in 1..5, or None with `error`, or None with `silent`.

    Attributes:
        votes: what each member of a panel said that was asked and did not abstain.
        silent: why the judge abstains.
        by: who gave the grade, where it was not the judge as a whole.
        answerers: keys of the models that answered (see `raggs.llm.Reply`), without those of `votes`.
    """

    grade: int | None
    reason: str = ""
    error: str | None = None
    raw: str | None = None
    votes: Mapping[str, Judgment] = field(default_factory=dict)
    silent: str | None = None
    by: str = ""
    answerers: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _make_sound(self, reason=self.reason, error=self.error, raw=self.raw, silent=self.silent, by=self.by)

    @property
    def all_answerers(self) -> Iterator[str]:
        """Keys of all models that answered, those of the votes among them; some may be there twice."""
        yield from self.answerers
        for vote in self.votes.values():
            yield from vote.all_answerers


@dataclass(frozen=True)
class Ordering:
    """A batch, best first, as positions in the order of presentation; or None with `error`, or None with `silent`.

    Attributes:
        silent: why the judge abstains.
        by: who gave the order, where it was not the judge as a whole.
        answerers: keys of the models that answered (see `raggs.llm.Reply`).
    """

    order: tuple[int, ...] | None
    error: str | None = None
    raw: str | None = None
    silent: str | None = None
    by: str = ""
    answerers: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _make_sound(self, error=self.error, raw=self.raw, silent=self.silent, by=self.by)


@dataclass(frozen=True)
class KnownOrder:
    """An order that was there before anything was asked.

    Attributes:
        groups: passage ids, best first; those of one group are equal.
        sharpness: of whoever gave it: 3 tells a grade apart 19 times in 20.
        by: who gave it.
    """

    groups: tuple[tuple[str, ...], ...]
    sharpness: float
    by: str


@dataclass(frozen=True)
class Calls:
    """How many calls of a model one answer takes, on average: at least, and at most."""

    least: float
    most: float

    @staticmethod
    def together(found: Iterable[Mapping[str, Calls]]) -> Mapping[str, Calls]:
        """By model, those of several who are all asked."""
        sums: dict[str, Calls] = {}
        for calls in found:
            for model, each in calls.items():
                before = sums.get(model, Calls(0, 0))
                sums[model] = Calls(before.least + each.least, before.most + each.most)
        return sums


def _make_sound(answer: Judgment | Ordering, **texts: str | None) -> None:
    """Make what a judge said storable: bounded, without half of a surrogate pair, without a key."""
    for name, text in texts.items():
        if not text:
            continue
        short = text if _is_bounded(text) else f"{text[:MOST_SAID]}… ({len(text):,} characters in all)"
        if (clean := mask(sound(short))) != text:
            object.__setattr__(answer, name, clean)


def _is_bounded(text: str) -> bool:
    """Return whether `text` is short enough, or was bounded before: an audit reads stored answers again."""
    bound = BOUNDED.search(text, MOST_SAID) if MOST_SAID < len(text) < 2 * MOST_SAID else None
    return len(text) <= MOST_SAID or (bound is not None and bound.start() == MOST_SAID)


def _alone(_: AdapterConfig) -> Judge:
    raise TypeError("no other judge can be had here")


@dataclass(frozen=True)
class JudgeContext:
    """What a judge may use. `llm` and the prompts are there for judges with `models`; `judge` makes another one.

    Attributes:
        reviews: where people's word is kept, if the settings name no folder.
        questions: gives the questions that are judged; None where nobody knows them beforehand.
        grades_prompt: by which several passages are graded together; None where nobody wants that.
    """

    llm: LLM
    grade_prompt: Prompt
    order_prompt: Prompt
    judge: Callable[[AdapterConfig], Judge] = _alone
    reviews: Path = Path("reviews")
    questions: Callable[[], Iterable[Query]] | None = None
    grades_prompt: Prompt | None = None


class Judge(Adapter, ABC):
    """Grades and orders. Built as ``cls(config, context)``; cheap to build."""

    IN_PANEL: ClassVar[bool] = True  # whether it may sit in a panel
    IN_CASCADE: ClassVar[bool] = True  # whether it may be one of a cascade

    def __init__(self, config: AdapterConfig, context: JudgeContext) -> None:
        self.config = config
        self.context = context

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - most err, whatever their causes
        """Whether a judge of these causes answers by rule and without noise, so that its repeats tell nothing."""
        return False

    @classmethod
    def abstains(cls, settings: Causes) -> bool:  # noqa: ARG003 - most never do
        """Whether a judge of these settings may abstain from a grade; an audit believes no others that they did."""
        return False

    def labels(self) -> Mapping[str, Mapping[str, int]]:
        """The grades that are known before anything is asked, by query and passage; none of most judges."""
        return {}

    def without_noise(self, qid: str, doc_id: str) -> int | None:
        """The grade to which a simulated judge adds noise; None of a judge that adds none."""
        return None

    @property
    def models(self) -> tuple[str, ...]:
        """The language models that are asked; empty where nobody is paid.

        With any, the settings of calls belong to the fingerprint, and the dry run and the doctor count them.
        """
        return ()

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """What one answer to `task` asks of each of `models`."""
        return {model: Calls(1, 1) for model in self.models}

    @property
    def reads(self) -> bool:
        """Whether its grades come of reading the passage, so that passages may be made up to try it."""
        return bool(self.models)

    @classmethod
    def groups(cls, spec: AdapterConfig) -> bool:  # noqa: ARG003 - most show one passage, whatever their settings
        """Whether judges of these settings can show several passages together (see `grades_together`)."""
        return False

    @property
    def grades_together(self) -> bool:
        """Whether `grades` shows passages together, so that a grade may hang on the company in which it was given."""
        return False

    @property
    def alone(self) -> frozenset[str]:
        """Those of `models` that are asked about each passage by itself, also where others are shown several."""
        return frozenset() if self.grades_together else frozenset(self.models)

    @property
    def central(self) -> bool:
        """Whether one process answers for all of a cluster: somebody is paid, or what is read may change meanwhile."""
        return bool(self.models)

    @property
    def told(self) -> str | None:
        """A hash of all orders that are known for the questions, whatever their passages; None where there are none."""
        return None

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """Orders of some of these passages that are known before anything is asked, in a lasting order."""
        return ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Who judges, for the record: type and model or file."""

    def causes(self, task: Task) -> Causes:
        """All that can change this judge's answers to `task`: settings, content of files, prompt, model."""
        return self.own_causes()

    def check(self, queries: Iterable[Query]) -> None:
        """Find what the judge lacks before anything is asked or paid for.

        Raises:
            DataError: a question or a file lacks what the judge needs.
            ConfigError: the model, or its price under a cap, is not known.
        """
        return

    @property
    def order_price(self) -> OrderPrice:
        """What an order costs besides its passages, where lists are as long as tells most for its price."""
        return TYPICAL

    @property
    def by_place(self) -> bool:
        """Whether it goes by where references and passages stand, and so needs documents of the same names."""
        return False

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """Whether near-duplicates do not share a grade, since more than their texts decides. Asks nobody."""
        return False

    def remarks(self) -> Iterator[str]:
        """What a reader of the grades that were given so far must know, in sentences."""
        return iter(())

    @abstractmethod
    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        """The utility of one passage for the query; samples of the same pair may differ.

        Raises:
            BudgetError, AuthenticationError: the run must stop.
        """

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """One judgment of each passage, in their order; a judge that can shows them together, in this order.

        One that cannot grades them one by one, and need not say anything here.

        Raises:
            BudgetError, AuthenticationError: the run must stop.
        """
        return await asyncio.gather(*(self.grade(query, passage, sample=sample) for passage in passages))

    @abstractmethod
    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        """All passages from best to worst, as a full permutation of their positions.

        Raises:
            BudgetError, AuthenticationError: the run must stop.
        """

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """The same question as `order`, asked once more: an answer of its own for each sample, that of `order` for 0.

        A judge that answers by rule, or asks somebody each time, need not say anything here.

        Raises:
            BudgetError, AuthenticationError: the run must stop.
        """
        return await self.order(query, passages)
