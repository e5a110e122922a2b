"""Rank all queries from one shared budget, in waves. The first wave contains the first round of each ranking, as far as
the budget allows. Each later wave contains the rounds with the largest expected gain for their cost.

`Waves` is a fold: which queries get their next round depends only on the answers of the earlier waves. A resumed run,
an audit, and runs with any concurrency therefore choose the same rounds. `in_waves` requests the missing answers of a
wave, and computes a query's next round as soon as its answers have arrived. All rankings stay in memory until the end.

`SharedBudget` has the limit for all rankings of a golden set and computes the price of each batch. Both are in calls or
in estimated USD.

Prices are estimates and not the booked cost. The same batches therefore cost the same in every run, on resume and in an
audit, independent of the cache. Texts are needed only for prices in USD.
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

PooledPassages = Iterable[tuple[Query, Mapping[str, Passage]]]  # each query with the passages of its pool
ORDERED = 40  # output tokens of an order, without hidden reasoning


class SetBudget(Settings):
    """Limit for all queries together, in calls or in USD."""

    calls: int | None = Field(
        None,
        ge=1,
        description='maximum number of judge calls over all queries; with batch_size "auto", the cost of so many '
        "lists of five passages",
    )
    usd: float | None = Field(
        None,
        gt=0,
        description="maximum estimated cost of the calls over all queries in USD, from the judge's prices and the "
        "length of the texts",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.calls is None) == (self.usd is None):
            raise ValueError("set exactly one of calls and usd: {calls: 2000} or {usd: 5}")
        return self


class ModelPrice(Settings):
    """Price of a model, and the assumed length of its answer to a batch, in tokens."""

    price: Price
    answer: int


class OrderPrices(Settings):
    """Prices of ordering one batch, for the models of the judge.

    Attributes:
        prompt: number of tokens of the prompt template.
        models: price by model name; None if unknown.
    """

    prompt: int
    models: Mapping[str, ModelPrice | None]

    def usd(self, tokens: int) -> float:
        """Return the cost of a batch in USD. `tokens` is the length of its texts."""
        known = [each for each in self.models.values() if each is not None]
        return sum(
            each.price.usd(self.prompt + tokens, each.answer, int(each.price.per_1k_searches > 0)) for each in known
        )


class SharedBudget:
    """Limit for all rankings together.

    Args:
        budget: limit in calls or in USD.
        length: assumed number of passages per call.
        prices: the judge's prices, as stored in a lock; required for USD.
        texts: texts of all queries; read only for USD.

    Attributes:
        amount: limit in the unit of the prices.
        calls: expected number of calls within the limit.

    Raises:
        ConfigError: the limit is in USD, but the judge is free, or its prices are missing or unknown.
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
        """Return the cost of some batches of a query, in the unit of the budget."""
        if self._prices is None:
            return course.price(batches)
        question, lengths = self._tokens[qid]
        return sum(self._prices.usd(question + sum(lengths[each] for each in batch.shown)) for batch in batches)

    def _typical(self, length: int) -> int:
        """Return the mean number of text tokens of a call."""
        questions = [question for question, _ in self._tokens.values()]
        passages = [tokens for _, lengths in self._tokens.values() for tokens in lengths.values()]
        return round(sum(questions) / max(len(questions), 1) + length * sum(passages) / max(len(passages), 1))


def most_orders(budget: SetBudget | None, calls: int, usd: float) -> int:
    """Return the maximum number of calls under a budget. `calls` is the maximum without the budget, and `usd` is the
    cost of this many calls.
    """
    if budget is None:
        return calls
    if budget.usd is not None:
        return min(calls, int(calls * budget.usd / usd)) if usd else calls
    return min(calls, budget.calls or 0)


def known_prices(found: object) -> OrderPrices:
    """Validate and return the judge's prices, as `raggs.stages.base.Services.causes` and locks store them.

    Raises:
        ConfigError: the judge is free, or its prices are missing or unknown.
    """
    try:
        prices = OrderPrices.model_validate(found)
    except ValidationError as error:
        raise ConfigError("the lock does not contain the judge's prices", remedy="run the rank stage again") from error
    if unknown := [model for model, each in prices.models.items() if each is None]:
        wanted = f'llm.prices: {{"{unknown[0]}": {{input: ..., output: ...}}}}'
        raise ConfigError(
            f"the price of {unknown[0]} is unknown, so raggs cannot enforce rank.budget.usd",
            remedy=f"set {wanted}, or use rank.budget.calls",
        )
    if not prices.usd(1):
        raise ConfigError("this judge is free, so rank.budget.usd has no effect", remedy="use rank.budget.calls")
    return prices


Wave = Mapping[str, tuple[Batch, ...]]  # by query: its next round


class Waves:
    """The scheduler of rankings that share a budget.

    Args:
        courses: by query, the ranking process before its next round.
        purse: the shared budget.
        paid: by query, the batches requested before the first wave.

    Attributes:
        spent: cost so far, in the unit of the budget.
    """

    def __init__(
        self, courses: Mapping[str, RankingProcess], purse: SharedBudget, paid: Mapping[str, Sequence[Batch]]
    ) -> None:
        self._courses, self._purse = courses, purse
        self._open = dict(courses)
        self.spent = sum(purse.price(qid, courses[qid], batches) for qid, batches in paid.items())

    def next(self) -> Wave:
        """Return the next wave; empty at the end. All answers to the previous wave must have been processed."""
        self._open = {qid: course for qid, course in self._open.items() if course.draw()}
        taken = next_wave(map(self._offer, self._open), self._purse.amount - self.spent, len(self._courses))
        self.spent += sum(offer.price for offer in taken)
        if not taken:
            for course in self._open.values():
                course.leave()
        return {offer.name: self._courses[offer.name].next_round() for offer in taken}

    def leave(self, qid: str) -> None:
        """Stop scheduling rounds of this query."""
        self._open.pop(qid)

    def unpaid(self, qid: str, batches: Sequence[Batch]) -> None:
        """Refund batches that were not sent."""
        self.spent -= self._purse.price(qid, self._courses[qid], batches)

    def _offer(self, qid: str) -> NextRound:
        course = self._courses[qid]
        gain = course.promise * course.price(course.draw())
        return NextRound(qid, gain, self._purse.price(qid, course, course.draw()), asked=course.asked > 0)


@dataclass(frozen=True)
class StartedRanking:
    """A ranking before its first wave. `paid` contains the batches requested before the first wave."""

    pool: KeptPool
    course: RankingProcess
    judged: JudgedBatches
    paid: tuple[Batch, ...] = ()


Answered = Callable[[RankingProcess, JudgedBatches, Sequence[Batch]], Awaitable[Sequence[Batch]]]


def in_waves(begun: Sequence[StartedRanking], purse: SharedBudget, workspace: Workspace, answered: Answered) -> None:
    """Run wave after wave until the budget is used up or all rankings are settled.

    Args:
        begun: all rankings.
        purse: the shared budget.
        workspace: supplies the event loop.
        answered: passes the answers of a round to a ranking; returns the batches that the budget does not cover.
    """
    found, turn = {each.pool.qid: each for each in begun}, asyncio.Lock()

    async def teach(item: tuple[str, tuple[Batch, ...]]) -> Sequence[Batch]:
        qid, batches = item
        unpaid = await answered(found[qid].course, found[qid].judged, batches)
        async with turn:  # a ranker computes for milliseconds, and other answers must not wait
            await asyncio.sleep(0)
            found[qid].course.draw()
        return unpaid

    courses, paid = {qid: each.course for qid, each in found.items()}, {qid: each.paid for qid, each in found.items()}
    waves = Waves(courses, purse, paid)
    while wave := waves.next():
        taught = run_ordered(workspace, wave.items(), teach, size=lambda item: len(item[1]))
        for qid, unpaid in zip(wave, taught, strict=True):
            waves.unpaid(qid, unpaid)
