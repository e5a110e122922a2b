"""Judges by name: one file and one line each (see `Judge`).

What a judge is: someone who grades one passage, and orders a few.

The same judge serves both stages. A judge that fails says so in its answer; it never invents a grade or an order. One
that has nothing to say (people who have not read a passage) abstains, which is neither a failure nor a grade.

What several grades of one passage come to.

Pure: grades in 1..5 in, None where there is none. At least half of those asked must have answered, else there is no
grade: what a few say when most fail is no consensus.

Whether a judge can err, and whether it may abstain, told from its causes as locks keep them, without making one.

A judge that answers by rule has no errors to repeat, and pairs that it cannot tell apart are ties. What is said of the
health of others would be wrong of it.

What an order costs a judge besides the passages that it is shown, so that the length of lists can follow prices.

Tokens are as `estimate_tokens` counts them. What a model thinks before it answers is not in it: nobody knows how that
grows with a list.

From a share of what an answer needs to a grade; shared by the judges that count.

What a judge says without people: in a panel that holds the judge `human`, the grade of the other members.

Whoever holds a judge against people must not let their own votes be part of it.
"""

from __future__ import annotations

import asyncio
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import JudgeRecord, Passage, Query
from raggs.base.judge_health import HUMAN_SOURCE, is_people, source_of
from raggs.base.registry import Registry
from raggs.base.secrets import mask
from raggs.base.settings import Causes
from raggs.base.text import BYTES_PER_TOKEN, replace_surrogates
from raggs.base.types import as_list, as_object
from raggs.llm.prices import LIKELY_BYTES, estimate_tokens, remembered_tokens
from raggs.llm.settings import Price

if TYPE_CHECKING:
    from raggs.llm import LLM
    from raggs.prompts import Prompt

REGISTRY: Registry[Judge] = Registry(
    "judge",
    "judges",
    "raggs.parts.judges:Judge",
    {
        "cascade": "raggs.parts.judges.composite:CascadeJudge",
        "human": "raggs.parts.judges.human:HumanJudge",
        "litellm": "raggs.parts.judges.litellm:LiteLLMJudge",
        "nuggets": "raggs.parts.judges.nuggets:NuggetJudge",
        "panel": "raggs.parts.judges.composite:PanelJudge",
        "python": "raggs.parts.callables:PythonJudge",
        "qrels": "raggs.parts.judges.qrels:QrelsJudge",
        "reference": "raggs.parts.judges.reference:ReferenceJudge",
        "scripted": "raggs.parts.judges.scripted:ScriptedJudge",
    },
)


EPSILON = 1e-9  # a weighted mean may miss a half by its last bit


def quorum(asked: int, answered: int) -> bool:
    """Whether enough have answered: one, and at least half."""
    return answered > 0 and 2 * answered >= asked


def lower_median(grades: Sequence[int | None]) -> int | None:
    """The median of the grades there are, of two middle ones the lower; None without a quorum.

    On a tie the caution of the lower grade is meant: what half of the judges doubt is not promoted.
    """
    given = [grade for grade in grades if grade is not None]
    return median_low(given) if quorum(len(grades), len(given)) else None


def weighted_grade(grades: Sequence[int | None], weights: Sequence[float]) -> int | None:
    """The weighted mean of the grades there are, rounded to the nearest grade, a half down; None without a quorum.

    The quorum counts heads, not weights. `weights` are above 0, one for each of `grades`.
    """
    given = [(grade, weight) for grade, weight in zip(grades, weights, strict=True) if grade is not None]
    if not quorum(len(grades), len(given)):
        return None
    mean = sum(grade * weight for grade, weight in given) / sum(weight for _, weight in given)
    return math.ceil(mean - 0.5 - EPSILON)


def is_exact(causes: object) -> bool:
    """Whether the judge of these causes answers by rule and without noise; only those of raggs itself are believed.

    Causes of orders say nothing of noise in grades: see `grade_noises`.
    """
    found = as_object(causes)
    kind = found.get("type")
    return isinstance(kind, str) and kind in REGISTRY.builtin and REGISTRY.load(kind).exact(dict(found))


def grade_noises(causes: object) -> list[float]:
    """The noise that the judge of these causes adds to labels, and that of the judges that it is made of."""
    found = as_object(causes)
    own = found.get("grade_noise")
    inner = [noise for each in as_list(found.get("judges")) for noise in grade_noises(each)]
    return [*([float(own)] if isinstance(own, int | float) and own else []), *inner]


def may_abstain(settings: object) -> bool:
    """Whether the judge of these settings may abstain from a grade; one that raggs has not itself is taken to."""
    found = as_object(settings)
    kind = found.get("type")
    return not isinstance(kind, str) or kind not in REGISTRY.builtin or REGISTRY.load(kind).abstains(dict(found))


@dataclass(frozen=True)
class OrderPrice:
    """In tokens sent. The values are those of a judge whose price is not known.

    Attributes:
        instructions: of the prompt and the form of the answer; fewer where the provider remembers them for less.
        dearer: what a token of the answer costs.
        usd: what a million tokens sent cost; 0 where that is not known.
    """

    instructions: float = 250.0
    dearer: float = 4.0
    usd: float = 0.0

    @classmethod
    def together(cls, prices: Iterable[OrderPrice]) -> OrderPrice:
        """Of several that are asked the same, by what each costs; typical where none is known."""
        known = [price for price in prices if price.usd]
        if not known:
            return TYPICAL
        usd = sum(price.usd for price in known)
        instructions = sum(price.usd * price.instructions for price in known) / usd
        return cls(instructions, sum(price.usd * price.dearer for price in known) / usd, usd)


TYPICAL = OrderPrice()


def order_price(model: str, price: Price | None, system: str, rest: str) -> OrderPrice:
    """By the price of `model`; typical where that is unknown, or nothing is paid by the token.

    Args:
        system: what all prompts begin with.
        rest: the other words of the prompt, and the form of the answer.
    """
    if price is None or not price.input or not price.output:
        return TYPICAL
    sent = estimate_tokens(system) + estimate_tokens(rest)
    remembered = remembered_tokens(model, system) * LIKELY_BYTES / BYTES_PER_TOKEN  # as `estimate_tokens` counts
    spared = price.discount(round(remembered)) / price.input * 1_000_000
    return OrderPrice(max(0.0, sent - spared), price.output / price.input, price.input)


Task = Literal["grade", "grades", "order"]

MAX_STORED_CHARS = 10_000  # characters of a reason, an error or an unusable answer that are stored
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
        short = text if _is_bounded(text) else f"{text[:MAX_STORED_CHARS]}… ({len(text):,} characters in all)"
        if (clean := mask(replace_surrogates(short))) != text:
            object.__setattr__(answer, name, clean)


def _is_bounded(text: str) -> bool:
    """Return whether `text` is short enough, or was bounded before: an audit reads stored answers again."""
    bound = BOUNDED.search(text, MAX_STORED_CHARS) if MAX_STORED_CHARS < len(text) < 2 * MAX_STORED_CHARS else None
    return len(text) <= MAX_STORED_CHARS or (bound is not None and bound.start() == MAX_STORED_CHARS)


def _no_other_judge(_: AdapterConfig) -> Judge:
    raise TypeError("no other judge can be had here")


REVIEWS_FOLDER = "reviews"


def reviews_beside(workspace: Path) -> Path:
    """Where the reviews of the runs in `workspace` are kept, if nobody says otherwise: in a folder beside it."""
    return workspace.resolve().parent / REVIEWS_FOLDER


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
    judge: Callable[[AdapterConfig], Judge] = _no_other_judge
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


ThresholdShare = Annotated[float, Field(gt=0, le=1)]


def _rising(values: tuple[float, float, float]) -> tuple[float, float, float]:
    if not values[0] < values[1] < values[2]:
        raise ValueError(f"thresholds must rise, {values} do not")
    return values


Thresholds = Annotated[tuple[ThresholdShare, ThresholdShare, ThresholdShare], AfterValidator(_rising)]


def grade_of(share: float, thresholds: tuple[float, float, float]) -> int:
    """1 for nothing at all, 2 for anything, 3 to 5 from the three thresholds up. `share` is in 0..1."""
    if share <= 0:
        return 1
    # A sum of weights may miss a threshold by its last bit.
    return 2 + sum(share >= threshold - 1e-9 for threshold in thresholds)


def by_people(record: JudgeRecord) -> bool:
    """Whether a run's grade is people's own."""
    return source_of(record.judge) == HUMAN_SOURCE


def without_human_grade(record: JudgeRecord) -> JudgeRecord:
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
