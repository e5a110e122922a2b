"""Rerankers by name, who read a query with its best passages: one file and one line each (see `Reranker`).

What a reranker is: a query and its candidates in, the same candidates in a better order out.

A reranker never loses a passage, adds one or names one twice; scores are finite; equal scores keep the order in which
the candidates came. It knows no run and no retriever: who gives it candidates has removed near-duplicates before.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.base.errors import DataError
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.base.text import shorten

if TYPE_CHECKING:
    from raggs.llm import LLM


def _no_other(config: RerankerConfig) -> Reranker:
    raise TypeError(f"nobody makes other rerankers here, such as {config.type}")


@dataclass(frozen=True)
class RerankerContext:
    """What a reranker may use: language models, and the cache of what was computed.

    `tell`: hears what a user should know. `reranker`: makes another reranker, in the same surroundings.
    """

    llm: LLM
    cache: Cache | None  # None: nothing is looked up or kept, so that each time is that of the work
    tell: Callable[[str], None] = lambda _: None
    reranker: Callable[[RerankerConfig], Reranker] = _no_other


class RerankerConfig(AdapterConfig):
    """What every reranker's settings hold."""


@dataclass(frozen=True)
class RerankedPassage:
    """A candidate with its score, higher is better; `logit`: what the model itself gave, where it gave one.

    `numbers`: all that it gave for the pair, where that is more than the logit: of two, the logit is their distance.
    """

    doc_id: str
    score: float
    logit: float | None = None
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Reranking:
    """The candidates of one query, best first, each once, and what reading them took.

    Attributes:
        ranked: score descending, then the order in which they came.
        tokens: that were read over all candidates, query and passage; 0 where nobody counts them.
        ms: of the work or of the paid calls, when they were done, also where the answer was kept; None where not known.
        calls, usd: the paid calls behind it, also where their answers were kept.
        searches: units by which they were paid, of rerankers that are paid so.
        repaired: answers that could be used though they named passages twice, not at all, or such as were not shown.
        problems: what failed and left an earlier order as it was, in words.
    """

    ranked: tuple[RerankedPassage, ...]
    tokens: int = 0
    ms: float | None = None
    calls: int = 0
    usd: float = 0.0
    repaired: int = 0
    problems: tuple[str, ...] = ()
    searches: int = 0

    @classmethod
    def of(
        cls,
        passages: Sequence[Passage],
        scores: Sequence[float],
        logits: Sequence[float] | None = None,
        *,
        numbers: Sequence[tuple[float, ...]] | None = None,
        tokens: int = 0,
        ms: float | None = None,
        calls: int = 0,
        usd: float = 0.0,
        searches: int = 0,
    ) -> Reranking:
        """The candidates in the order of their scores.

        Args:
            passages: the candidates as they came.
            scores, logits, numbers: one for each candidate.

        Raises:
            DataError: a score or a logit is not finite.
        """
        raw: Sequence[float | None] = [None] * len(passages) if logits is None else logits
        gave = numbers or [()] * len(passages)
        found = [
            RerankedPassage(
                passage.doc_id, _finite(score, passage), None if logit is None else _finite(logit, passage), each
            )
            for passage, score, logit, each in zip(passages, scores, raw, gave, strict=True)
        ]
        ranked = tuple(sorted(found, key=lambda each: -each.score))
        return cls(ranked, tokens=tokens, ms=ms, calls=calls, usd=usd, searches=searches)


class Reranker(Adapter, ABC):
    """Orders candidates. Built as ``cls(config, context)``; loads its model at first use."""

    Config: ClassVar[type[RerankerConfig]] = RerankerConfig
    PAID: ClassVar[bool] = False  # whether it asks language models, and so works where keys and budget are
    METERED: ClassVar[bool] = False  # what is paid is the tokens that it reads, and searches; nothing that it writes
    FOLDS: ClassVar[bool] = (
        False  # whether it reads quotation marks as keyboards have them: `raggs.base.text.fold_quotes`
    )
    INDEPENDENT: ClassVar[bool] = True  # a score does not depend on the other candidates: those at 200 give those at 50

    config: RerankerConfig

    def __init__(self, config: RerankerConfig, context: RerankerContext) -> None:
        self.config = config
        self.context = context

    @classmethod
    def paid(cls, config: RerankerConfig) -> bool:  # noqa: ARG003
        """Whether it asks language models with these settings."""
        return cls.PAID

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are paid; empty where nobody is."""
        return ()

    @property
    def reader(self) -> Reranker:
        """The reranker that reads the passages and is paid: itself, or the one that it holds."""
        return self

    def causes(self) -> Causes:
        """All that can change a score."""
        return self.own_causes()

    def check(self) -> None:
        """Find what it lacks before anything is paid for.

        Raises:
            RaggsError: a package, a file or a price is missing.
        """
        return

    @abstractmethod
    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        """All candidates in a better order; of none an empty `Reranking` for which nobody is asked.

        Args:
            query: as passages are to be ranked for it.
            language: of the query, "en" or "fr".
            passages: the candidates, best first; no doc_id twice.

        Raises:
            RaggsError: the model failed, or gave what is no score for each candidate.
        """

    def close(self) -> None:
        """Let go of what is open. May be called twice."""
        return


def _finite(score: float, passage: Passage) -> float:
    if not math.isfinite(score):
        raise DataError(f"passage {shorten(passage.doc_id, 60)} got the score {score}", remedy="mend the reranker")
    return float(score)


REGISTRY: Registry[Reranker] = Registry(
    "reranker",
    "rerankers",
    "raggs.parts.rerankers:Reranker",
    {
        "boosted": "raggs.parts.rerankers.boosted:BoostedReranker",
        "late-interaction": "raggs.parts.rerankers.local:LateReranker",
        "listwise": "raggs.parts.rerankers.chat:ListwiseReranker",
        "litellm": "raggs.parts.rerankers.litellm:LiteLLMReranker",
        "onnx": "raggs.parts.rerankers.local:OnnxReranker",
        "pointwise": "raggs.parts.rerankers.chat:PointwiseReranker",
        "python": "raggs.parts.callables:PythonReranker",
    },
)
