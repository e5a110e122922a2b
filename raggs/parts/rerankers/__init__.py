"""Rerankers: base class, registry, and the types of their results.

A reranker takes a query and its candidates, and returns the same candidates in a better order. It does not drop, add or
repeat passages. Scores are finite, and ties keep the order of the candidates. A reranker does not depend on runs or
retrievers. If near-duplicates should be removed, the caller does this before the call.
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
    raise TypeError(f"this context cannot create another reranker ({config.type})")


@dataclass(frozen=True)
class RerankerContext:
    """Resources for rerankers: language models, and the cache of computed scores.

    `tell` receives messages for the user. `reranker` creates another reranker with the same resources.
    """

    llm: LLM
    cache: Cache | None  # None: scores are not cached, so that latencies are measured on real computations
    tell: Callable[[str], None] = lambda _: None
    reranker: Callable[[RerankerConfig], Reranker] = _no_other


class RerankerConfig(AdapterConfig):
    """Settings common to all rerankers."""


@dataclass(frozen=True)
class RerankedPassage:
    """A candidate with its score, higher is better; `logit`: raw output of the model, or None.

    `numbers`: all outputs for the pair if there are several. With two outputs, the logit is their difference.
    """

    doc_id: str
    score: float
    logit: float | None = None
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Reranking:
    """The candidates of one query, best first, each exactly once, and the cost of scoring them.

    Attributes:
        ranked: candidates by descending score; ties keep the input order.
        tokens: tokens that the model read, summed over all candidates or calls; 0 if not counted.
        ms: original duration of the computation or calls in ms, even if the results are now cached; None if unknown.
        calls, usd: paid calls and their cost, including the calls behind cached answers.
        searches: billed search units, for rerankers with this pricing.
        repaired: number of answers that repeated, omitted or invented passages and were used after correction.
        problems: messages on failures after which passages kept their earlier order.
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
        """Return the candidates in the order of their scores.

        Args:
            passages: candidates in the input order.
            scores, logits, numbers: one for each candidate; `logits` and `numbers` may be None.

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
    """Orders candidates. Created as ``cls(config, context)``; loads its model at first use."""

    Config: ClassVar[type[RerankerConfig]] = RerankerConfig
    PAID: ClassVar[bool] = False  # whether the reranker calls models of providers, which count towards the budget
    METERED: ClassVar[bool] = False  # whether it is billed by input tokens and searches, not by output tokens
    FOLDS: ClassVar[bool] = False  # whether it replaces typographic quotation marks (see `raggs.base.text.fold_quotes`)
    # whether a score does not depend on the other candidates; scores at 200 candidates are then valid at 50
    INDEPENDENT: ClassVar[bool] = True

    config: RerankerConfig

    def __init__(self, config: RerankerConfig, context: RerankerContext) -> None:
        self.config = config
        self.context = context

    @classmethod
    def paid(cls, config: RerankerConfig) -> bool:  # noqa: ARG003
        """Return whether a reranker with these settings calls models of providers (see `PAID`)."""
        return cls.PAID

    @property
    def models(self) -> tuple[str, ...]:
        """Paid models that the reranker calls; empty if it calls none."""
        return ()

    @property
    def reader(self) -> Reranker:
        """The reranker whose model reads the passages: this reranker, or the one that it wraps."""
        return self

    def causes(self) -> Causes:
        """Return everything that affects the scores."""
        return self.own_causes()

    def check(self) -> None:
        """Raise an error if a prerequisite is missing, before any paid call.

        Raises:
            RaggsError: a package, a file or a price is missing.
        """
        return

    @abstractmethod
    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        """Return all candidates in a better order. Without candidates, the result is empty and no model is called.

        Args:
            query: query for which to rank the passages.
            language: language of the query, as an ISO 639-1 code.
            passages: candidates, best first, with unique doc_ids.

        Raises:
            RaggsError: the model failed, or did not return a valid score for each candidate.
        """

    def close(self) -> None:
        """Close open resources. May be called twice."""
        return


def _finite(score: float, passage: Passage) -> float:
    if not math.isfinite(score):
        raise DataError(f"passage {shorten(passage.doc_id, 60)} has score {score}", remedy="return finite scores")
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
