"""What asks language models, or may: the models themselves, and embedders, rewriters and judges.

Whatever they spend counts together, in one ledger, within one budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import BudgetError
from raggs.base.loops import open_loop
from raggs.base.progress import Building, Hear, Notice, Waiting
from raggs.llm import LLM, BatchSettings, BudgetSettings, CallLedger, LLMSettings
from raggs.parts import askers, embedders, judges, rewriters
from raggs.parts.askers.base import Asker, AskerContext
from raggs.parts.embedders.base import Embedder, EmbedderConfig, EmbedderContext
from raggs.parts.indexes.places import Places
from raggs.parts.judges.base import Judge, JudgeContext
from raggs.parts.reviews import beside
from raggs.parts.rewriters.base import Rewriter, RewriterContext
from raggs.prompts import Prompt, load_prompt

if TYPE_CHECKING:
    from raggs.llm.rehearsal import Rehearsal


class Models:
    """Language models, and what is made of them. Made by the workshop."""

    def __init__(
        self,
        places: Places,
        llm: LLMSettings,
        budget: BudgetSettings,
        *,
        batch: BatchSettings | None,
        keeps_answers: bool,
        hear: Hear,
    ) -> None:
        self.places = places
        self.ledger = CallLedger(allow_mixed=llm.allow_mixed)
        self._settings = llm
        self._budget = budget
        self._batch = batch
        self.keeps_answers = keeps_answers
        self._answers = places.llm if keeps_answers else None
        self._hear = hear

    @cached_property
    def llm(self) -> LLM:
        """Language models. Making it touches neither disk nor network."""
        return LLM(self._settings, self._budget, self._answers, self.ledger, self._batch, self._waiting, self.notify)

    @property
    def concurrency(self) -> int:
        """Calls that may be on their way at once."""
        return self._settings.concurrency

    @cached_property
    def loop(self) -> asyncio.Runner:
        """The event loop in which everything that waits is awaited."""
        return open_loop()

    def embedder(self, spec: EmbedderConfig, llm: LLM | None = None) -> Embedder:
        """An embedder; its model is loaded at first use. `llm`: other language models than one's own."""
        return embedders.REGISTRY.of(spec)(spec, EmbedderContext(llm or self.llm, lambda: self.loop))

    def rehearsal(self) -> Rehearsal:
        """The same models, which only remember; closed by whoever wants them."""
        from raggs.llm.rehearsal import Rehearsal  # late: it brings the ways to providers

        return Rehearsal(self._settings, self.places.llm)

    def rewriter(self, spec: AdapterConfig, llm: LLM | None = None) -> Rewriter:
        """A rewriter of questions. `llm`: other language models than one's own."""
        return rewriters.REGISTRY.of(spec)(spec, RewriterContext(llm or self.llm))

    def asker(self, spec: AdapterConfig, llm: LLM | None = None) -> Asker:
        """Who makes questions of documents. `llm`: other language models than one's own."""
        return askers.REGISTRY.of(spec)(spec, AskerContext(llm or self.llm))

    def judge(
        self,
        spec: AdapterConfig,
        grade: Prompt,
        order: Prompt,
        llm: LLM | None = None,
        questions: Callable[[], Iterable[Query]] | None = None,
        grades: Prompt | None = None,
    ) -> Judge:
        """A judge that is asked by these prompts, where it is a model.

        Args:
            llm: other language models than one's own.
            questions: gives those that are judged, where they are known.
            grades: the prompt by which several passages are graded together, where that is wanted.
        """
        context = JudgeContext(
            llm=llm or self.llm,
            grade_prompt=grade,
            order_prompt=order,
            judge=lambda other: self.judge(other, grade, order, llm, questions, grades),
            reviews=beside(self.places.root.parent),
            questions=questions,
            grades_prompt=grades,
        )
        return judges.REGISTRY.of(spec)(spec, context)

    def building(self, what: str, done: int, total: int) -> None:
        """Tell the listener how far something is that is made once."""
        self._hear(Building(what, done, total))

    def arrive(self) -> None:
        """Let calls on their way arrive, after which all that was paid for is booked."""
        if "llm" in self.__dict__:
            self.loop.run(self.llm.arrive())

    def affords(self) -> float:
        """How many more calls the budget is likely to pay for; inf where nobody asks a language model."""
        return self.llm.budget.affords() if "llm" in self.__dict__ else float("inf")

    def pay_no_more(self, why: BudgetError) -> None:
        """From now on ask no language model: what was not paid for before raises `why`."""
        self.llm.budget.close(why)

    def close(self) -> None:
        """Close what is open; it is not used again."""
        if "llm" in self.__dict__:
            self.loop.run(self.llm.close())
        if "loop" in self.__dict__:
            self.loop.close()

    def notify(self, message: str) -> None:
        """Tell the listener what the user should know."""
        self._hear(Notice(message))

    def _waiting(self, what: str, done: int, total: int) -> None:
        self._hear(Waiting(what, done, total))


def judge_prompts(grade: str, order: str) -> tuple[Prompt, Prompt]:
    """The prompts by which a judge grades and orders, by name or path.

    Raises:
        NotFoundError, ConfigError: there is none, or it lacks a part.
    """
    return load_prompt(grade, "grade"), load_prompt(order, "order")
