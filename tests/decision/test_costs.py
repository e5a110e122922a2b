"""Costs of 1,000 queries: the published tables, what is unknown, and what is paid by search."""

from __future__ import annotations

import math

import pytest
from support.published import TOKENS

from raggs.stats.front import QueryCosts, generator_usd, rerank_usd, search_usd, tokens_usd


@pytest.mark.parametrize(("price", "published"), [(0.00005, (1.25, 2.5, 3.75, 5.0)), (0.00002, (0.5, 1.0, 1.5, 2.0))])
def test_the_published_prices_of_reranking(price, published):
    assert [rerank_usd(k, 500, price) for k in (50, 100, 150, 200)] == pytest.approx(published, rel=1e-12)


def test_measured_tokens_raise_them_by_three_percent():
    """Section 5.5: with the measured mean of about 515 tokens, by about 3 %."""
    for k, tokens in TOKENS.items():
        assert rerank_usd(k, tokens, 0.00005) / rerank_usd(k, 500, 0.00005) == pytest.approx(1.03, abs=0.005)


@pytest.mark.parametrize(
    ("passages", "published"), [(10, (6.25, 1.25, 0.25)), (20, (12.5, 2.5, 0.5)), (30, (18.75, 3.75, 0.75))]
)
def test_the_published_prices_of_a_generators_input(passages, published):
    assert [generator_usd(passages, 500, price) for price in (1.25, 0.25, 0.05)] == pytest.approx(published, rel=1e-12)


@pytest.mark.parametrize(("k", "usd"), [(0, 0.0), (1, 2.0), (100, 2.0), (101, 4.0), (200, 4.0)])
def test_a_search_holds_a_hundred_documents(k, usd):
    assert search_usd(k, 2.0) == usd


def test_an_unknown_price_is_not_zero():
    assert rerank_usd(50, 500, None) is None and search_usd(50, None) is None
    assert generator_usd(10, 500, None) is None and tokens_usd(20, None) is None
    costs = QueryCosts(embedding=0.4, reranking=1.25, generator=None)
    assert costs.retrieval == 1.65 and costs.total is None
    assert QueryCosts(reranking=None).retrieval is None and QueryCosts().total == 0


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf])
def test_numbers_are_from_zero_up(bad):
    for call in (
        lambda: rerank_usd(50, bad, 1.0),
        lambda: rerank_usd(50, 500, bad),
        lambda: search_usd(50, bad),
        lambda: generator_usd(10, 500, bad),
    ):
        with pytest.raises(ValueError, match="from 0 up"):
            call()
    with pytest.raises(ValueError, match="at least one document"):
        search_usd(50, 2.0, documents=0)
