"""Vectors of a provider: checked, batched, paid for once."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.llm_bench import PRICE
from support.llm_server import embedding

from raggs.base.artifacts import Spending
from raggs.base.errors import AuthenticationError, BudgetError, ProviderError
from raggs.llm import EmbedRequest
from raggs.llm.embedding import cached_vector, check, vector_of

MODEL = "openai/embedder"
OTHER = "hosted_vllm/embedder"  # asked through litellm
BAD = ["shorter answer", "wrong dimension", "nan", "infinity", "null", "same index", "garbage"]


def wanted(texts):
    return np.array([embedding(text, 8) for text in texts], dtype=np.float32)


def embed(b, texts, llm=None, model=MODEL, **changes):
    request = EmbedRequest(model, texts, **{"dims": 8, "batch": 4, **changes})
    used = llm or b.llm(prices={model: PRICE})
    return b.run(lambda llm: llm.embed(request), used)


@pytest.mark.parametrize("model", [MODEL, OTHER])
def test_vectors_come_in_the_order_of_the_texts(bench, model):
    texts = [f"text {number}" for number in range(10)]
    with bench() as b:
        np.testing.assert_array_equal(embed(b, texts, model=model), wanted(texts))
        assert sorted(len(request["input"]) for request in b.server.requests) == [2, 4, 4]


def test_each_text_is_paid_for_once(bench):
    with bench() as b:
        first, second = (b.llm(prices={MODEL: PRICE}) for _ in range(2))
        embed(b, ["a", "b", "a", "c"], first)
        found = embed(b, ["c", "d", "a"], second)
        np.testing.assert_array_equal(found, wanted(["c", "d", "a"]))
        assert [request["input"] for request in b.server.requests] == [["a", "b", "c"], ["d"]]
        assert (second.spent.calls, second.spent.cached) == (1, 2)
        assert 0 < second.spent.saved_usd < first.spent.usd


@pytest.mark.parametrize(
    "change", [{"model": "openai/another"}, {"parameters": {"user": "x"}}, {"dims": 4, "parameters": {"dimensions": 4}}]
)
def test_another_vector_is_asked_anew(bench, change):
    with bench() as b:
        embed(b, ["a"])
        embed(b, ["a"], **change)
        assert b.server.count == 2


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("fault", BAD)
def test_an_answer_that_cannot_be_is_asked_for_again(bench, fault):
    with bench(faults=[fault]) as b:
        np.testing.assert_array_equal(embed(b, ["a", "b"]), wanted(["a", "b"]))
        assert b.server.count == 2


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("shorter answer", "1 vectors for 2 texts"),
        ("wrong dimension", "a vector has 9 dimensions, not 8"),
        ("nan", "NaN or infinity"),
        ("huge number", "a whole number that is too large"),
        ("null", "not a list of numbers"),
    ],
)
def test_what_stays_wrong_stops_and_is_not_kept(bench, fault, told):
    with bench(fault_for=lambda number, _: fault if number <= 3 else None) as b:
        llm = b.llm(prices={MODEL: PRICE})
        with pytest.raises(ProviderError, match=told):
            embed(b, ["a", "b"], llm)
        assert b.server.count == llm.spent.calls == 3
        assert llm.spent.usd > 0, "unusable answers are paid for too"
        np.testing.assert_array_equal(embed(b, ["a", "b"]), wanted(["a", "b"]))


def test_batches_that_came_before_a_failure_are_kept(bench):
    texts = [f"text {number}" for number in range(12)]

    def fault_for(_, body):
        return "401" if "text 9" in body["input"] else None

    with bench(fault_for=fault_for, delay_s=0.05) as b:
        with pytest.raises(AuthenticationError):
            embed(b, texts)
        b.server.fault_for = None
        embed(b, texts)
        assert b.server.count == 4, "three batches, and once more the one that failed"


def test_the_budget_holds(bench):
    with bench() as b:
        with pytest.raises(BudgetError):
            embed(b, ["a"] * 3 + ["b", "c", "d", "e"], b.llm(prices={MODEL: PRICE}, max_calls=1))
        assert b.server.count == 1


def test_batches_go_at_once(bench):
    with bench(delay_s=0.2) as b:
        embed(b, [f"text {number}" for number in range(40)])
        assert b.server.peak == 10


def test_long_texts_go_in_smaller_batches(bench):
    with bench() as b:
        embed(b, [str(number) * 150_000 for number in range(4)])
        assert b.server.count == 4


def test_a_vector_of_tiny_numbers_keeps_its_direction():
    (found,) = check([{"index": 0, "embedding": [3e-300, 4e-300]}], 1, 2)
    assert found[1] / found[0] == pytest.approx(4 / 3)
    assert check([{"index": 0, "embedding": [0.0, 0.0]}], 1, 2).tolist() == [[0.0, 0.0]]


def test_no_text_no_call(bench):
    with bench() as b:
        assert embed(b, []).shape == (0, 8)
        assert b.server.count == 0


def test_two_loops_one_after_the_other(bench):
    with bench() as b:
        llm = b.llm(prices={MODEL: PRICE})
        for text in ("a", "b"):
            asyncio.run(llm.embed(EmbedRequest(MODEL, [text], 8)))
        asyncio.run(llm.close())
        assert b.server.count == 2


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_a_cached_vector_has_the_same_bits(values):
    vector = np.array(values, dtype=np.float32)
    found = vector_of(cached_vector(vector, "m", Spending(), 1.0), len(values))
    assert found is not None
    assert found.tobytes() == vector.tobytes()
    assert vector_of(cached_vector(vector, "m", Spending(), 1.0), len(values) + 1) is None


@pytest.mark.parametrize("raw", ["", "not base64!", "AAAA", "AACAfw=="], ids=["empty", "text", "short", "infinity"])
def test_a_damaged_entry_is_a_miss(raw):
    entry = cached_vector(np.ones(1, dtype=np.float32), "m", Spending(), 1.0)
    assert vector_of(entry, 1) is not None
    assert vector_of(type(entry)(**{**vars(entry), "raw": raw}), 1) is None


def test_two_runs_at_once_pay_for_a_text_once(bench):
    async def work(*layers):
        texts = [f"text {number}" for number in range(10)]
        asked = [texts, [*texts[5:], "one more"], texts[::-1]]
        requests = [EmbedRequest(MODEL, each, dims=8, batch=4) for each in asked]
        found = await asyncio.gather(*(llm.embed(each) for llm, each in zip(layers, requests, strict=True)))
        for llm in layers:
            await llm.close()
        return asked, found

    with bench(delay_s=0.1) as b:
        layers = [b.llm(prices={MODEL: PRICE}, max_usd=None) for _ in range(3)]
        for texts, found in zip(*asyncio.run(work(*layers)), strict=True):
            np.testing.assert_array_equal(found, wanted(texts))
        sent = [text for request in b.server.requests for text in request["input"]]
        assert len(sent) == len(set(sent)) == 11
        assert sum(llm.spent.calls for llm in layers) == b.server.count
        assert sum(llm.spent.cached for llm in layers) == 10 + 6 + 10 - 11
