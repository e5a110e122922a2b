"""The rankings of all questions from one budget: wave after wave, each of the rounds that promise most.

`Waves` is the fold: which questions get their next round is a function of all answers of the waves before, so that a
resumed run, any number of calls at once and an audit come to the same ones. `in_waves` asks for what a wave lacks, and
chooses the next round of a question as soon as its answers are there. All rankings are in memory until the end.

What all rankings of a set may cost together, and what each batch takes of it: calls, or an estimate in USD.

An estimate, and not what the ledger books: the same batches cost the same in every run, on a resume and in an audit,
whatever was in the cache. Texts are needed for USD alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pydantic import Field, ValidationError, model_validator

from raggs.base.artifacts import Passage, Query
from raggs.base.errors import ConfigError
from raggs.base.settings import Settings
from raggs.llm.prices import estimate_tokens
from raggs.llm.settings import Price
from raggs.ranking.bayes import NextRound, next_wave
from raggs.stages.ordered import run_ordered
from raggs.stages.replay import Batch, JudgedBatches, KeptPool, RankingProcess

if TYPE_CHECKING:
    from raggs.parts.workspace import Workspace

PooledPassages = Iterable[tuple[Query, Mapping[str, Passage]]]  # each question with the passages of its pool
ORDERED = 40  # tokens of an order, besides hidden ones


class SetBudget(Settings):
    """What all questions together may use."""

    calls: int | None = Field(
        None, ge=1, description='judge calls; with batch_size "auto", what so many lists of five cost'
    )
    usd: float | None = Field(
        None, gt=0, description="what the calls are estimated to cost, by the judge's price and the length of the texts"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.calls is None) == (self.usd is None):
            raise ValueError("name one of both: {calls: 2000} or {usd: 5}")
        return self


class ModelPrice(Settings):
    """What a model charges, and how long its answer to a batch is taken to be, in tokens."""

    price: Price
    answer: int


class OrderPrices(Settings):
    """What the judge's models charge for an order.

    Attributes:
        prompt: tokens of the prompt's own words.
        models: by name; None where the price is not known.
    """

    prompt: int
    models: Mapping[str, ModelPrice | None]

    def usd(self, tokens: int) -> float:
        """Of a batch whose texts have so many tokens."""
        known = [each for each in self.models.values() if each is not None]
        return sum(
            each.price.usd(self.prompt + tokens, each.answer, int(each.price.per_1k_searches > 0)) for each in known
        )


class SharedBudget:
    """What all rankings may cost together.

    Args:
        budget: in calls or in USD.
        length: of a list, in passages, as a call has it.
        prices: of the judge, as a lock holds them; wanted for USD.
        texts: of all questions; read for USD alone.

    Attributes:
        amount: in the unit of the prices.
        calls: how many calls it is expected to buy.

    Raises:
        ConfigError: USD cannot be counted, since nobody is paid, or a price is not known.
    """

    def __init__(self, budget: SetBudget, length: int, prices: object, texts: PooledPassages) -> None:
        self._prices: OrderPrices | None = None
        self._tokens: dict[str, tuple[int, dict[str, int]]] = {}
        if budget.usd is None:
            self.amount = self.calls = float(budget.calls or 0)
            return
        self._prices = known_prices(prices)
        for query, passages in texts:
            lengths = {doc_id: estimate_tokens(passage.text) for doc_id, passage in passages.items()}
            self._tokens[query.qid] = estimate_tokens(query.text), lengths
        self.amount = budget.usd
        self.calls = budget.usd / self._prices.usd(self._typical(length))

    def price(self, qid: str, course: RankingProcess, batches: Sequence[Batch]) -> float:
        """Of some batches of a question."""
        if self._prices is None:
            return course.price(batches)
        question, lengths = self._tokens[qid]
        return sum(self._prices.usd(question + sum(lengths[each] for each in batch.shown)) for batch in batches)

    def _typical(self, length: int) -> int:
        """Tokens of the texts of a call, on average."""
        questions = [question for question, _ in self._tokens.values()]
        passages = [tokens for _, lengths in self._tokens.values() for tokens in lengths.values()]
        return round(sum(questions) / max(len(questions), 1) + length * sum(passages) / max(len(passages), 1))


def most_orders(budget: SetBudget | None, calls: int, usd: float) -> int:
    """How many calls a budget allows; `calls`: at most without it, and what they would cost together."""
    if budget is None:
        return calls
    if budget.usd is not None:
        return min(calls, int(calls * budget.usd / usd)) if usd else calls
    return min(calls, budget.calls or 0)


def known_prices(found: object) -> OrderPrices:
    """The judge's prices, as `raggs.stages.base.Services.causes` and locks state them.

    Raises:
        ConfigError: nobody is paid, or a price is not known.
    """
    try:
        prices = OrderPrices.model_validate(found)
    except ValidationError as error:
        raise ConfigError("the lock does not say what the judge charges", remedy="run the rank stage again") from error
    if unknown := [model for model, each in prices.models.items() if each is None]:
        wanted = f'llm.prices: {{"{unknown[0]}": {{input: ..., output: ...}}}}'
        raise ConfigError(
            f"the price of {unknown[0]} is not known, so rank.budget.usd cannot be kept",
            remedy=f"set {wanted}, or name rank.budget.calls",
        )
    if not prices.usd(1):
        raise ConfigError(
            "this judge costs no money, so rank.budget.usd means nothing", remedy="name rank.budget.calls"
        )
    return prices


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

    def __init__(
        self, courses: Mapping[str, RankingProcess], purse: SharedBudget, paid: Mapping[str, Sequence[Batch]]
    ) -> None:
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

    def _offer(self, qid: str) -> NextRound:
        course = self._courses[qid]
        gain = course.promise * course.price(course.draw())
        return NextRound(qid, gain, self._purse.price(qid, course, course.draw()), asked=course.asked > 0)


@dataclass(frozen=True)
class StartedRanking:
    """A ranking before its first wave. `paid`: what was asked before."""

    pool: KeptPool
    course: RankingProcess
    judged: JudgedBatches
    paid: tuple[Batch, ...] = ()


Answered = Callable[[RankingProcess, JudgedBatches, Sequence[Batch]], Awaitable[Sequence[Batch]]]


def in_waves(begun: Sequence[StartedRanking], purse: SharedBudget, workspace: Workspace, answered: Answered) -> None:
    """Ask wave after wave until the purse is empty or everything is settled.

    Args:
        begun: all rankings.
        purse: what they may cost together.
        workspace: where the answers are waited for.
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
        taught = run_ordered(workspace, wave.items(), teach, size=lambda item: len(item[1]))
        for qid, unpaid in zip(wave, taught, strict=True):
            waves.unpaid(qid, unpaid)
