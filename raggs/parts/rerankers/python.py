"""A Python function as a reranker: any model in a few lines, without a package around it.

    def rerank(query: str, passages: list[str]) -> list[float]: ...   # one score a passage, higher is better

It may be a coroutine function. A passage is its title and text. What it gives is not kept: a function may be anything.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence, Set
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Literal

from raggs.base.adapter import CallableConfig, UserFunction
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes
from raggs.base.text import plural, shorten
from raggs.parts.rerankers.base import Reranker, RerankerConfig, Reranking

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage

UNORDERED = (str, bytes, Mapping, Set)


class PythonReranker(Reranker):
    """A Python function of yours: f(query, passages) gives a score for each passage."""

    INDEPENDENT: ClassVar[bool] = False  # nobody can know

    class Config(RerankerConfig, CallableConfig):
        type: Literal["python"] = "python"

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    def check(self) -> None:
        self._function.load()

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        if not passages:
            return Reranking(())
        about = f"the query {shorten(query, 40)!r} with {plural(len(passages), 'passage')}"
        start = time.perf_counter()
        found = await self._function.ask(about, query, [passage.content for passage in passages])
        ms = (time.perf_counter() - start) * 1000
        return Reranking.of(passages, self._scores(found, passages, about), ms=ms)

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _scores(self, found: object, passages: Sequence[Passage], about: str) -> list[float]:
        """What the function gave, checked.

        Raises:
            ProviderError: it is not one finite number for each passage.
        """
        try:
            scores = list(found) if isinstance(found, Collection) and not isinstance(found, UNORDERED) else None
        except TypeError:  # an array of no dimension
            scores = None
        if scores is None:
            raise self._wrong(f"gave {type(found).__name__}, not a list of scores, on {about}")
        if len(scores) != len(passages):
            raise self._wrong(f"gave {plural(len(scores), 'score')} on {about}")
        return [
            self._score(score, f"{passage.doc_id} on {about}") for score, passage in zip(scores, passages, strict=True)
        ]

    def _score(self, score: object, about: str) -> float:
        if isinstance(score, bool) or not isinstance(score, Real):
            raise self._wrong(f"gave {shorten(repr(score), 60)}, which is no number, for {about}")
        try:
            found = float(score)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise self._wrong(f"gave the score {shorten(repr(score), 60)} for {about}")
        return found

    def _wrong(self, problem: str) -> ProviderError:
        return ProviderError(f"{self.config.callable} {problem}", remedy="give one finite score for each passage")
