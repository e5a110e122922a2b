"""Judges: base class, registry, and the types of their answers.

A judge grades passages, one by one or in groups, and orders small batches of passages. The judge stage and the rank
stage use the same judge. If a call fails, the answer has an `error` and no grade or order. A judge without an opinion
abstains, for example if no annotator has labelled the passage. An abstention is neither a failure nor a grade.

The module also combines several grades of one passage (`lower_median`, `weighted_grade`). These functions are pure.
Their grades are 1 to 5, or None if missing. If fewer than half of the judges have answered, the result is None.

`is_exact`, `grade_noises` and `may_abstain` derive properties of a judge from its settings or its causes (as stored in
locks), without creating the judge. A judge that answers by rule has no random errors. If its orders leave a pair of
passages undecided, they are tied. Statistics of judge health do not apply to such a judge.

`OrderPrice` is the cost of an order in addition to the passages shown. This cost determines the batch sizes. Tokens are
counted as in `estimate_tokens`. Reasoning tokens are not included, because their dependence on the batch size is
unknown.

`without_human_grade` removes human votes from a panel's grade. This is necessary to compare a judge with human labels,
which must not be part of the judge's own grade.
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
from raggs.stats.grade_distribution import Distribution, mean_distribution

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


EPSILON = 1e-9  # A weighted mean may differ from a half in its last bit.


def quorum(asked: int, answered: int) -> bool:
    """Return whether enough judges have answered: at least one, and at least half of those called."""
    return answered > 0 and 2 * answered >= asked


def lower_median(grades: Sequence[int | None]) -> int | None:
    """Return the median of the grades that are not None, or None without a quorum.

    Of two middle grades, the lower one is returned: a grade that half of the judges reject is not used.
    """
    given = [grade for grade in grades if grade is not None]
    return median_low(given) if quorum(len(grades), len(given)) else None


def weighted_grade(grades: Sequence[int | None], weights: Sequence[float]) -> int | None:
    """Return the weighted mean of the grades that are not None, or None without a quorum.

    The mean is rounded to the nearest grade, and a half is rounded down. The quorum counts judges, not weights.
    `weights` has one value above 0 for each of `grades`.
    """
    given = [(grade, weight) for grade, weight in zip(grades, weights, strict=True) if grade is not None]
    if not quorum(len(grades), len(given)):
        return None
    mean = sum(grade * weight for grade, weight in given) / sum(weight for _, weight in given)
    return math.ceil(mean - 0.5 - EPSILON)


def is_exact(causes: object) -> bool:
    """Return whether the judge with these causes answers by rule and without noise; False for judges of plugins.

    The causes of orders do not include noise in grades: see `grade_noises`.
    """
    found = as_object(causes)
    kind = found.get("type")
    return isinstance(kind, str) and kind in REGISTRY.builtin and REGISTRY.load(kind).exact(dict(found))


def grade_noises(causes: object) -> list[float]:
    """Return the values of `grade_noise` above 0, of the judge with these causes and of its members."""
    found = as_object(causes)
    own = found.get("grade_noise")
    inner = [noise for each in as_list(found.get("judges")) for noise in grade_noises(each)]
    return [*([float(own)] if isinstance(own, int | float) and own else []), *inner]


def may_abstain(settings: object) -> bool:
    """Return whether the judge with these settings may abstain from a grade; True for judges of plugins."""
    found = as_object(settings)
    kind = found.get("type")
    return not isinstance(kind, str) or kind not in REGISTRY.builtin or REGISTRY.load(kind).abstains(dict(found))


@dataclass(frozen=True)
class OrderPrice:
    """Cost of an order in addition to its passages, in input tokens. The defaults apply if the price is unknown or 0.

    Attributes:
        instructions: input tokens of the prompt and the answer schema, minus the discount for a cached prefix.
        dearer: price of an output token divided by the price of an input token.
        usd: price of a million input tokens in USD, summed over the judges that order; 0 if the defaults apply.
    """

    instructions: float = 250.0
    dearer: float = 4.0
    usd: float = 0.0

    @classmethod
    def together(cls, prices: Iterable[OrderPrice]) -> OrderPrice:
        """Return the common price of judges that order the same passages; `TYPICAL` if no price is known.

        `usd` is the sum of the known prices, and the other values are means weighted by `usd`.
        """
        known = [price for price in prices if price.usd]
        if not known:
            return TYPICAL
        usd = sum(price.usd for price in known)
        instructions = sum(price.usd * price.instructions for price in known) / usd
        return cls(instructions, sum(price.usd * price.dearer for price in known) / usd, usd)


TYPICAL = OrderPrice()


def order_price(model: str, price: Price | None, system: str, rest: str) -> OrderPrice:
    """Return the price of an order by `model`; `TYPICAL` if the price is unknown or tokens are free.

    Args:
        system: prefix that all prompts share.
        rest: the part of the prompt after `system`, and the schema of the answer.
    """
    if price is None or not price.input or not price.output:
        return TYPICAL
    sent = estimate_tokens(system) + estimate_tokens(rest)
    # in tokens as `estimate_tokens` counts them
    remembered = remembered_tokens(model, system) * LIKELY_BYTES / BYTES_PER_TOKEN
    spared = price.discount(round(remembered)) / price.input * 1_000_000
    return OrderPrice(max(0.0, sent - spared), price.output / price.input, price.input)


Task = Literal["grade", "grades", "order"]
DistributionSource = Literal["logprobs", "decision"]

MAX_STORED_CHARS = 10_000  # limit for a stored reason, error or unusable answer
BOUNDED = re.compile(r"… \([\d,]+ characters in all\)\Z")  # end of a truncated text


@dataclass(frozen=True)
class Judgment:
    """One graded passage: `grade` in 1..5, or None with either `error` or `silent`.

    Attributes:
        votes: answers of the called members by name. A panel omits abstentions. Under rule `first`, the votes of a
            member panel or cascade replace its own answer, unless the judge `human` answered. A cascade stores
            abstentions of cheap judges as failures, and omits an abstention of the good judge.
        silent: reason for the abstention.
        by: member that gave the grade, all cheap judges of a cascade, or annotators ("human: ada"); empty if the judge
            as a whole gave it.
        answerers: keys of the models that answered (see `raggs.llm.Reply`), without the models behind `votes`.
        distribution: probabilities of the grades 1 to 5, as rounded by `canonical`; None if the judge states none. The
            grade of a single judge is their lower median.
        distribution_source: source of the probabilities; None without probabilities, or if the members of a panel have
            several sources.
    """

    grade: int | None
    reason: str = ""
    error: str | None = None
    raw: str | None = None
    votes: Mapping[str, Judgment] = field(default_factory=dict)
    silent: str | None = None
    by: str = ""
    answerers: tuple[str, ...] = field(default=(), compare=False)
    distribution: tuple[float, ...] | None = None
    distribution_source: DistributionSource | None = None

    def __post_init__(self) -> None:
        _make_sound(self, reason=self.reason, error=self.error, raw=self.raw, silent=self.silent, by=self.by)

    @property
    def all_answerers(self) -> Iterator[str]:
        """Keys of all models that answered, including the models behind the votes; may contain duplicates."""
        yield from self.answerers
        for vote in self.votes.values():
            yield from vote.all_answerers


def mean_of_distributions(
    found: Sequence[Judgment], weights: Sequence[float] | None = None
) -> tuple[Distribution | None, DistributionSource | None]:
    """Return the mean distribution of graded judgments, and its source.

    Both are None if a judgment has no distribution. Only the source is None if the judgments have several sources.
    `weights` has one value per judgment.
    """
    stated = [said.distribution for said in found if said.distribution is not None]
    if not stated or len(stated) < len(found):
        return None, None
    sources = {said.distribution_source for said in found}
    return mean_distribution(stated, weights), sources.pop() if len(sources) == 1 else None


@dataclass(frozen=True)
class Ordering:
    """The order of a batch: positions in the order of presentation, best first; or None with either `error` or
    `silent`.

    Attributes:
        silent: reason for the abstention.
        by: member or annotators that gave the order; empty if the judge as a whole gave it.
        answerers: keys of the models that answered (see `raggs.llm.Reply`).
        best: for each passage of `order`, the probability that it is the best of the batch, as rounded by `canonical`;
            None if the judge states none.
    """

    order: tuple[int, ...] | None
    error: str | None = None
    raw: str | None = None
    silent: str | None = None
    by: str = ""
    answerers: tuple[str, ...] = field(default=(), compare=False)
    best: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _make_sound(self, error=self.error, raw=self.raw, silent=self.silent, by=self.by)


@dataclass(frozen=True)
class KnownOrder:
    """An order that is known before the first call.

    Attributes:
        groups: groups of passage ids, best group first; passages of one group are tied.
        sharpness: precision of its author: with 3, passages one grade apart are ordered correctly in 95% of cases.
        by: author of the order.
        carried: first digits of the version that the order was carried over from; empty for human orders.
    """

    groups: tuple[tuple[str, ...], ...]
    sharpness: float
    by: str
    carried: str = ""


@dataclass(frozen=True)
class Calls:
    """Lower and upper limit of the expected number of calls to a model per answer."""

    least: float
    most: float

    @staticmethod
    def together(found: Iterable[Mapping[str, Calls]]) -> Mapping[str, Calls]:
        """Return the sum of the calls for each model, for several judges that are all called."""
        sums: dict[str, Calls] = {}
        for calls in found:
            for model, each in calls.items():
                before = sums.get(model, Calls(0, 0))
                sums[model] = Calls(before.least + each.least, before.most + each.most)
        return sums


def _make_sound(answer: Judgment | Ordering, **texts: str | None) -> None:
    """Make the texts of an answer storable: truncate them, replace unpaired surrogates and mask API keys."""
    for name, text in texts.items():
        if not text:
            continue
        short = text if _is_bounded(text) else f"{text[:MAX_STORED_CHARS]}… ({len(text):,} characters in all)"
        if (clean := mask(replace_surrogates(short))) != text:
            object.__setattr__(answer, name, clean)


def _is_bounded(text: str) -> bool:
    """Return whether `text` is short or already truncated; an audit parses stored answers again."""
    bound = BOUNDED.search(text, MAX_STORED_CHARS) if MAX_STORED_CHARS < len(text) < 2 * MAX_STORED_CHARS else None
    return len(text) <= MAX_STORED_CHARS or (bound is not None and bound.start() == MAX_STORED_CHARS)


def _no_other_judge(_: AdapterConfig) -> Judge:
    raise TypeError("this judge cannot have member judges")


REVIEWS_FOLDER = "reviews"


def reviews_beside(workspace: Path) -> Path:
    """Return the default folder of the reviews of all runs in `workspace`: `reviews`, next to the workspace."""
    return workspace.resolve().parent / REVIEWS_FOLDER


@dataclass(frozen=True)
class JudgeContext:
    """Resources for judges. `llm` and the prompts are for judges with `models`; `judge` creates a member judge.

    Attributes:
        reviews: folder of the human labels, used if the settings name no folder.
        questions: function that returns the queries that are judged; None if they are not known in advance.
        grades_prompt: prompt for grading several passages in one call; None to grade them one by one.
    """

    llm: LLM
    grade_prompt: Prompt
    order_prompt: Prompt
    judge: Callable[[AdapterConfig], Judge] = _no_other_judge
    reviews: Path = Path("reviews")
    questions: Callable[[], Iterable[Query]] | None = None
    grades_prompt: Prompt | None = None


class Judge(Adapter, ABC):
    """Base class of judges: grades and orders passages. Created as ``cls(config, context)``, without reading files."""

    IN_PANEL: ClassVar[bool] = True  # whether the judge may be a member of a panel
    IN_CASCADE: ClassVar[bool] = True  # whether the judge may be a member of a cascade

    def __init__(self, config: AdapterConfig, context: JudgeContext) -> None:
        self.config = config
        self.context = context

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - most err, whatever their causes
        """Return whether a judge with these causes answers by rule and without noise, so that repeats are identical."""
        return False

    @classmethod
    def abstains(cls, settings: Causes) -> bool:  # noqa: ARG003 - most never do
        """Return whether a judge with these settings may abstain; an audit rejects abstentions of judges that may
        not.
        """
        return False

    def labels(self) -> Mapping[str, Mapping[str, int]]:
        """Return grades that are known before the first call, by query id and passage id; empty by default."""
        return {}

    def without_noise(self, qid: str, doc_id: str) -> int | None:
        """Return the grade before a simulated judge adds noise to it; None for judges that add no noise."""
        return None

    @property
    def models(self) -> tuple[str, ...]:
        """Language models that the judge calls; empty if it calls none.

        For judges with models, the call settings are part of the fingerprint, and the dry run and `raggs doctor`
        include the models.
        """
        return ()

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """Return the number of calls per answer to `task`, for each of `models`."""
        return {model: Calls(1, 1) for model in self.models}

    @property
    def reads(self) -> bool:
        """Whether the judge can grade any text for any query, so that checks may use synthetic passages."""
        return bool(self.models)

    @classmethod
    def groups(cls, spec: AdapterConfig) -> bool:  # noqa: ARG003 - most show one passage, whatever their settings
        """Return whether judges with these settings can show several passages together (see `grades_together`)."""
        return False

    @property
    def grades_together(self) -> bool:
        """Whether `grades` shows passages together, so that a grade may depend on the other passages of its group."""
        return False

    @property
    def alone(self) -> frozenset[str]:
        """The models that grade each passage in a separate call, even if other models see groups of passages."""
        return frozenset() if self.grades_together else frozenset(self.models)

    @property
    def central(self) -> bool:
        """Whether only one process of a cluster may judge: calls cost money, or the input may change during the run."""
        return bool(self.models)

    @property
    def told(self) -> str | None:
        """Hash of all known orders of the run's queries; None if there are none."""
        return None

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """Return the orders of some of these passages that are known before the first call; their sequence is always
        the same.
        """
        return ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the judge, stored with each grade without `by`: its type, with its model, file or members if any."""

    def causes(self, task: Task) -> Causes:
        """Return everything that affects this judge's answers to `task`: settings, file contents, prompt, model."""
        return self.own_causes()

    def check(self, queries: Iterable[Query]) -> None:
        """Raise an error if required inputs are missing, before the first call.

        Raises:
            DataError: a query or a file lacks data that the judge needs.
            ConfigError: the model is unknown, or its price is unknown although a budget is set.
        """
        return

    @property
    def order_price(self) -> OrderPrice:
        """Cost of an order in addition to its passages; used to choose batch sizes automatically."""
        return TYPICAL

    @property
    def by_place(self) -> bool:
        """Whether grades can compare offsets of references and passages, which requires matching document names."""
        return False

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """Return whether two near-duplicates need separate grades; calls no model.

        Separate grades are needed if the grade depends on more than the text.
        """
        return False

    async def confirm(self) -> Sequence[tuple[str, bool]]:
        """Test by one call per model that it answers in the form that the settings need. Return a note for each tested
        model, and whether the test passed. Most judges need no test.

        Raises:
            RaggsError: a call failed and no further call can succeed.
        """
        return ()

    def remarks(self) -> Iterator[str]:
        """Yield remarks about the grades given so far, for readers of the results."""
        return iter(())

    @abstractmethod
    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        """Return the grade of one passage for the query; different samples of the same pair may differ.

        Raises:
            BudgetError, AuthenticationError: no further call can succeed, so the run must stop.
        """

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """Return one judgment per passage, in the order of `passages`.

        A judge with `grades_together` shows the passages in one prompt, in this order. By default, each passage is
        graded by `grade`.

        Raises:
            BudgetError, AuthenticationError: no further call can succeed, so the run must stop.
        """
        return await asyncio.gather(*(self.grade(query, passage, sample=sample) for passage in passages))

    @abstractmethod
    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        """Return all passages from best to worst, as a permutation of all their positions.

        Raises:
            BudgetError, AuthenticationError: no further call can succeed, so the run must stop.
        """

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """Return one of several independent answers to `order`; sample 0 is the answer of `order` itself.

        By default, `order` is called. This is correct for judges that answer by rule or do not cache answers.

        Raises:
            BudgetError, AuthenticationError: no further call can succeed, so the run must stop.
        """
        return await self.order(query, passages)


ThresholdShare = Annotated[float, Field(gt=0, le=1)]


def _rising(values: tuple[float, float, float]) -> tuple[float, float, float]:
    if not values[0] < values[1] < values[2]:
        raise ValueError(f"thresholds must be strictly increasing, got {values}")
    return values


Thresholds = Annotated[tuple[ThresholdShare, ThresholdShare, ThresholdShare], AfterValidator(_rising)]


def grade_of(share: float, thresholds: tuple[float, float, float]) -> int:
    """Return the grade of a share in 0..1: 1 for 0, otherwise 2 plus the number of thresholds that it reaches."""
    if share <= 0:
        return 1
    # A sum of weights may differ from a threshold in its last bit.
    return 2 + sum(share >= threshold - 1e-9 for threshold in thresholds)


def by_people(record: JudgeRecord) -> bool:
    """Return whether the grade in a record of a run is a human label."""
    return source_of(record.judge) == HUMAN_SOURCE


def without_human_grade(record: JudgeRecord) -> JudgeRecord:
    """Return the record with its grade recomputed without human votes.

    The new grade is the lower median over the other members; each member counts by the lower median of its samples.
    A record without human votes is returned unchanged, and so is a record with only human votes. Use `by_people` to
    recognise the latter.
    """
    others = {name: votes for name, votes in record.votes.items() if not is_people(name)}
    if not others or len(others) == len(record.votes):
        return record
    grades = [lower_median([vote for vote in votes if vote is not None]) for votes in others.values()]
    judge = " + ".join(others) if by_people(record) else record.judge
    return record.model_copy(update={"grade": lower_median(grades), "judge": judge})


def answers_of(record: JudgeRecord) -> tuple[int, ...]:
    """Return all grades of a record that are not human, over samples and members; empty if all grades are human."""
    said = [vote for name, votes in record.votes.items() if not is_people(name) for vote in votes]
    if not record.votes and not by_people(record):
        said = [*record.grades] or [record.grade]
    return tuple(vote for vote in said if vote is not None)
