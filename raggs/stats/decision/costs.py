"""What 1,000 queries cost, by step, from counts and prices.

Dallaire, "Practical RAG Evaluation", 2025, section 3.2.1: a reranker reads K candidates of T tokens each, so a query
costs K x T / 1000 x price of 1,000 tokens; a generator reads the passages that are kept. All prices are the caller's,
and what has no price is None, never 0: a sum with an unknown part is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

QUERIES = 1_000
DOCUMENTS_PER_SEARCH = 100  # what providers that charge by search count as one


@dataclass(frozen=True)
class QueryCosts:
    """USD for 1,000 queries, by step; None where it is not known.

    Attributes:
        rewriting: by a language model.
        embedding: of the queries.
        reranking: of the candidates.
        generator: input of the model that answers; beyond retrieval.
    """

    rewriting: float | None = 0.0
    embedding: float | None = 0.0
    reranking: float | None = 0.0
    generator: float | None = 0.0

    @property
    def retrieval(self) -> float | None:
        """All before the generator."""
        return _sum(self.rewriting, self.embedding, self.reranking)

    @property
    def total(self) -> float | None:
        """With the generator's input."""
        return _sum(self.retrieval, self.generator)


def rerank_usd(k: int, tokens: float, usd_per_1k_tokens: float | None) -> float | None:
    """USD for 1,000 queries of a reranker that charges by token.

    Args:
        k: candidates a query.
        tokens: mean tokens of a candidate: query, passage and what is put around it.
        usd_per_1k_tokens: None where unknown, and so is the result.

    Raises:
        ValueError: a number that is not from 0 up.
    """
    return tokens_usd(_number("k", k) * _number("tokens", tokens), usd_per_1k_tokens)


def search_usd(k: int, usd_per_1k_searches: float | None, documents: int = DOCUMENTS_PER_SEARCH) -> float | None:
    """USD for 1,000 queries of a reranker that charges by search, each begun `documents` candidates being one.

    Raises:
        ValueError: a number that is not from 0 up, or no document a search.
    """
    if documents < 1:
        raise ValueError(f"a search holds at least one document, got {documents}")
    if usd_per_1k_searches is None:
        return None
    return math.ceil(_number("k", k) / documents) * _number("price", usd_per_1k_searches) * QUERIES / 1_000


def generator_usd(passages: int, tokens: float, usd_per_1m_tokens: float | None) -> float | None:
    """USD for 1,000 queries of a generator's input: `passages` of `tokens` each, at a price of a million tokens.

    Raises:
        ValueError: a number that is not from 0 up.
    """
    price = None if usd_per_1m_tokens is None else _number("price", usd_per_1m_tokens) / 1_000
    return tokens_usd(_number("passages", passages) * _number("tokens", tokens), price)


def tokens_usd(tokens: float, usd_per_1k_tokens: float | None) -> float | None:
    """USD for 1,000 queries of that many tokens each: of an embedder, say.

    Raises:
        ValueError: a number that is not from 0 up.
    """
    if usd_per_1k_tokens is None:
        return None
    return _number("tokens", tokens) / 1_000 * _number("price", usd_per_1k_tokens) * QUERIES


def _number(what: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{what} is {value}; it is a number from 0 up")
    return value


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return math.fsum(known) if len(known) == len(parts) else None
