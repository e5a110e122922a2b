"""Scores by rerankers' endpoints: checked, each pair paid for once, in the ledger as the server counts them."""

from __future__ import annotations

import asyncio
import json

import pytest
from support.llm_bench import PRICE
from support.llm_reranks import SPOILT, relevance, tokens

from raggs.base.errors import AuthenticationError, BudgetError, ConfigError, ProviderError
from raggs.llm import LLM, BudgetSettings, CallLedger, LLMSettings, Price, RerankRequest
from raggs.llm.cache import CachedAnswer
from raggs.llm.ledger import LedgerLine
from raggs.llm.rehearsal import DryRunLLM
from raggs.llm.reranking import PairScore

MODEL = "cohere/a-reranker"
VLLM = "hosted_vllm/maker/a-reranker"
SEARCHED = Price(per_1k_searches=2.0)
QUERY = "what is it?"


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("COHERE", "VOYAGE", "JINA_AI", "HOSTED_VLLM"):
        monkeypatch.setenv(f"{name}_API_KEY", "none-of-your-business")
        monkeypatch.delenv(f"{name}_API_BASE", raising=False)


def passages(count):
    return [f"passage {number}" + " and more" * (number % 7) for number in range(count)]


def wanted(texts, query=QUERY):
    return tuple(relevance(query, text) for text in texts)


def layer(b, price=SEARCHED, model=MODEL, **settings):
    return b.llm(**{"prices": {model: price}, **settings})


def rerank(b, texts, llm=None, model=MODEL, query=QUERY, **changes):
    request = RerankRequest(model, query, texts, **changes)
    return b.run(lambda llm: llm.rerank(request), llm or layer(b, model=model))


@pytest.mark.parametrize("model", [MODEL, VLLM, "voyage/rerank-9", "jina_ai/j", "openai/any", "litellm_proxy/c/rerank"])
def test_scores_come_in_the_order_of_the_passages(bench, model, monkeypatch):
    monkeypatch.setenv("LITELLM_PROXY_API_KEY", "x")
    with bench() as b:
        found = rerank(b, passages(10), model=model)
        assert found.scores == wanted(passages(10))
        (asked,) = b.server.requests
        assert asked["model"] == model.partition("/")[2]
        assert asked["return_documents"] is False
        assert asked["top_k" if model.startswith("voyage") else "top_n"] == 10
        assert found.took.tokens == tokens(asked)
        assert found.took.calls == 1
        assert found.took.ms > 0


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize(
    ("model", "variable"),
    [(VLLM, "HOSTED_VLLM_API_BASE"), ("cohere/rerank-v3.5", "COHERE_API_BASE"), ("voyage/r", "VOYAGE_API_BASE")],
)
@pytest.mark.parametrize("fault", [None, "429", "500", "cut body", "repeated index"])
def test_other_providers_are_asked_through_litellm(bench, monkeypatch, model, variable, fault):
    with bench(faults=[fault]) as b:
        monkeypatch.setenv(variable, b.server.url)
        llm = LLM(LLMSettings(backoff_s=0.001, prices={model: SEARCHED}), BudgetSettings(), None)
        found = rerank(b, passages(5), llm, model)
        assert found.scores == wanted(passages(5))
        assert found.took.tokens == tokens(b.server.requests[0])
        assert b.server.count == llm.spent.calls == (1 if fault is None else 2)


def test_each_pair_is_paid_for_once(bench):
    texts = passages(30)
    with bench() as b:
        first, second, third = (layer(b) for _ in range(3))
        whole = rerank(b, texts, first)
        part = rerank(b, texts[:7][::-1], second)
        assert part.scores == wanted(texts[:7][::-1])
        assert (second.spent.calls, second.spent.cached) == (0, 7)
        assert part.took.ms is None, "nobody knows how long 7 take"
        assert 0 < part.took.usd < whole.took.usd
        assert rerank(b, texts[::-1]).took == whole.took, "the time of the paid call is kept"
        more = rerank(b, [*texts, "another", texts[0]], third)
        assert more.scores == wanted([*texts, "another", texts[0]])
        assert [request["documents"] for request in b.server.requests] == [texts, ["another"]]
        assert (more.took.calls, more.took.ms) == (2, None)


@pytest.mark.parametrize("change", [{"model": VLLM}, {"parameters": {"max_tokens_per_doc": 5}}, {"query": "why?"}])
def test_another_score_is_asked_anew(bench, change):
    with bench() as b:
        rerank(b, ["a"])
        rerank(b, ["a"], **change)
        assert b.server.count == 2


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("fault", [*SPOILT, "garbage", "cut body", "list body", "html", "429", "500", "reset", "noise"])
def test_an_answer_that_cannot_be_is_asked_for_again(bench, fault):
    with bench(faults=[fault]) as b:
        assert rerank(b, passages(4)).scores == wanted(passages(4))
        assert b.server.count == 2


@pytest.mark.parametrize("fault", ["slow:60", "trickle"])
def test_an_answer_that_does_not_come_is_asked_for_again(bench, fault):
    with bench(faults=[fault]) as b:
        assert rerank(b, passages(4), layer(b, timeout_s=2)).scores == wanted(passages(4))
        assert b.server.count == 2


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("fewer results", "3 scores for 4 passages"),
        ("repeated index", "the position of each passage exactly once"),
        ("nan score", "not a finite number"),
    ],
)
def test_what_stays_wrong_is_named_and_not_kept(bench, fault, told):
    with bench(fault_for=lambda number, _: fault if number <= 3 else None) as b:
        llm = layer(b)
        with pytest.raises(ProviderError, match=f"{MODEL} returned no usable scores: .*{told}"):
            rerank(b, passages(4), llm)
        assert b.server.count == llm.spent.calls == 3
        assert llm.spent.usd == pytest.approx(0.006), "unusable answers are paid for too"
        assert rerank(b, passages(4)).scores == wanted(passages(4))


def test_what_came_before_a_failure_is_kept(bench):
    texts = passages(12)
    with bench(fault_for=lambda _, body: "401" if texts[9] in body["documents"] else None) as b:
        with pytest.raises(AuthenticationError):
            rerank(b, texts, batch=4)
        b.server.fault_for = None
        rerank(b, texts, batch=4)
        assert [len(request["documents"]) for request in b.server.requests] == [4, 4, 4, 4]


def test_many_and_long_passages_go_in_several_calls(bench):
    with bench() as b:
        texts = passages(250)
        found = rerank(b, texts, batch=100)
        assert found.scores == wanted(texts)
        assert found.took.calls == 3
        assert found.took.ms > 0, "one after the other"
        assert [len(request["documents"]) for request in b.server.requests] == [100, 100, 50]
        rerank(b, [str(number) * 300_000 for number in range(4)])
        assert [len(request["documents"]) for request in b.server.requests[3:]] == [2, 2]


def test_what_is_asked_afresh_has_a_time_of_its_own_and_is_kept(bench):
    texts = passages(20)
    with bench() as b:
        whole, part = rerank(b, texts), rerank(b, texts[:5], fresh=True)
        assert part.scores == whole.scores[:5]
        assert part.took.ms > 0 and part.took.calls == 1
        assert [len(request["documents"]) for request in b.server.requests] == [20, 5]
        assert rerank(b, texts[:5]).took == part.took
        assert rerank(b, texts).took.ms is None
        assert b.server.count == 2


def test_no_passage_no_call(bench):
    with bench() as b:
        assert rerank(b, []).scores == ()
        assert b.server.count == 0


# --- money ---


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(("count", "searches"), [(1, 1), (100, 1), (101, 2), (250, 3)])
def test_searches_are_paid_by_the_hundred_passages(bench, count, searches, counted):
    with bench(count_tokens=counted) as b:
        llm = layer(b)
        took = rerank(b, passages(count), llm).took
        assert llm.spent.usd == pytest.approx(searches * 0.002)
        assert took.usd == pytest.approx(llm.spent.usd)


@pytest.mark.parametrize("counted", [True, False])
def test_a_part_of_what_is_known_costs_what_it_would_by_itself(bench, counted):
    long = [f"{number} " + "word " * 500 for number in range(60)]  # counts for several passages, where nobody counts
    with bench(count_tokens=counted) as b:
        assert rerank(b, passages(250)).took.searches == 3
        assert [rerank(b, passages(count)).took.searches for count in (50, 100, 101, 250)] == [1, 1, 2, 3]
        assert rerank(b, [*passages(10), "one", "more"]).took.searches == 1
        whole = rerank(b, long).took.searches
        assert whole == (1 if counted else 2)
        assert rerank(b, long[:10]).took.searches == 1
        assert b.server.count == 3


def test_tokens_are_paid_by_the_million(bench):
    with bench() as b:
        llm = layer(b, PRICE)
        took = rerank(b, passages(30), llm).took
        sent = tokens(b.server.requests[0])
        assert (llm.spent.prompt_tokens, took.tokens) == (sent, sent)
        assert llm.spent.usd == pytest.approx(sent / 1e6)


def test_the_ledger_is_what_the_server_counts(bench, tmp_path):
    path = tmp_path / "ledger.jsonl"
    with bench(faults=["500", "fewer results", None]) as b:
        llm = LLM(
            LLMSettings(api_base=b.server.url, backoff_s=0.001, prices={MODEL: SEARCHED}),
            BudgetSettings(),
            tmp_path / "llm",
            CallLedger(path, "retrieve"),
        )
        rerank(b, passages(120), llm, qid="q1")
        asked = b.server.count
    lines = [LedgerLine.model_validate_json(line) for line in path.read_text().splitlines()]
    assert [(line.task, line.stage, line.qid) for line in lines] == [("rerank", "retrieve", "q1")] * 2
    assert [line.outcome for line in lines] == ["unusable", "answered"]
    assert sum(line.attempts for line in lines) == asked == 3
    assert [line.searches for line in lines] == [2, 2]
    assert all(line.prompt_tokens == tokens(b.server.requests[0]) for line in lines)


def test_the_budget_holds_before_anything_is_sent(bench):
    with bench() as b:
        with pytest.raises(BudgetError, match=r"the next call may cost 0\.0060"):
            rerank(b, passages(201), layer(b, max_usd=0.005))
        assert b.server.count == 0
        with pytest.raises(BudgetError):
            rerank(b, passages(20), layer(b, max_calls=1), batch=10)
        assert b.server.count == 1


def test_an_unknown_price_under_a_cap_is_told(bench):
    with bench() as b:
        with pytest.raises(
            ConfigError, match=f"the price of {MODEL} is unknown, so raggs cannot enforce budget.max_usd"
        ):
            rerank(b, ["a"], b.llm())
        assert b.server.count == 0


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("cohere/rerank-v3.5", Price(per_1k_searches=2.0)),
        ("voyage/rerank-2.5", Price(input=0.05, output=0)),
        ("voyage/rerank-2.5-lite", Price(input=0.02, output=0)),
        ("jina_ai/jina-reranker-v2-base-multilingual", Price(input=0.05, output=0)),
        ("bedrock/amazon.rerank-v1:0", Price(per_1k_searches=1.0)),
    ],
)
def test_the_list_knows_the_prices_of_rerankers(model, price):
    found = LLM(LLMSettings(), BudgetSettings(), None).price(model)
    assert found is not None
    assert vars(found) == pytest.approx(vars(price))


# --- at the same time ---


def test_two_runs_at_once_pay_once(bench):
    texts = passages(20)

    async def work(*layers):
        asked = [
            llm.rerank(RerankRequest(MODEL, query, texts[start : start + 15]))
            for query in ("one", "two", "three")
            for start, llm in enumerate(layers)
        ]
        found = await asyncio.gather(*asked)
        for llm in layers:
            await llm.close()
        return found

    with bench(delay_s=0.1) as b:
        layers = [layer(b) for _ in range(2)]
        found = asyncio.run(work(*layers))
        assert [scored.scores for scored in found] == [
            wanted(texts[start : start + 15], query) for query in ("one", "two", "three") for start in range(2)
        ]
        pairs = [(request["query"], text) for request in b.server.requests for text in request["documents"]]
        assert len(pairs) == len(set(pairs)) == 3 * 16


@pytest.mark.parametrize("cached", [True, False])
def test_who_asks_the_same_meanwhile_waits(bench, cached):
    async def work(llm):
        wishes = (["a", "b"], ["b", "a"], ["b", "c"])
        return await asyncio.gather(*(llm.rerank(RerankRequest(MODEL, QUERY, texts)) for texts in wishes))

    with bench(delay_s=0.1) as b:
        found = b.run(work, layer(b, cached=cached))
        assert [scored.scores for scored in found] == [wanted("ab"), wanted("ba"), wanted("bc")]
        assert [request["documents"] for request in b.server.requests] == [["a", "b"], ["c"]]


def test_who_fails_lets_the_other_one_ask(bench):
    async def work(llm):
        asked = (llm.rerank(RerankRequest(MODEL, QUERY, texts)) for texts in (["a", "b"], ["a"]))
        return await asyncio.gather(*asked, return_exceptions=True)

    with bench(faults=["400"], delay_s=0.1) as b:
        failed, answered = b.run(work, layer(b))
        assert "rejected the request" in str(failed)
        assert answered.scores == wanted("a")


def test_who_goes_away_while_it_is_asked_has_paid_and_kept(bench):
    async def work(llm):
        task = asyncio.ensure_future(llm.rerank(RerankRequest(MODEL, QUERY, ["a"])))
        while not b.server.count:
            await asyncio.sleep(0.01)
        task.cancel()

    with bench(delay_s=0.2) as b:
        b.run(work, layer(b))
        rerank(b, ["a"])
        assert b.server.count == 1


# --- where else it may go wrong ---


def test_no_redirect_is_followed(bench):
    with bench() as there, bench(faults=[f"307:{there.server.url}/rerank"]) as b:
        with pytest.raises(ConfigError, match="follows no redirects"):
            rerank(b, ["a"])
        assert there.server.count == 0


def test_no_redirect_is_followed_by_litellm(bench, monkeypatch):
    with bench() as there, bench(faults=[f"307:{there.server.url}/rerank"]) as b:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", b.server.url)
        with pytest.raises(ConfigError, match="follows no redirects"):
            rerank(b, ["a"], LLM(LLMSettings(), BudgetSettings(), None), VLLM)
        assert there.server.count == 0


def test_a_key_is_missed_before_anything_is_sent(bench, monkeypatch):
    monkeypatch.delenv("COHERE_API_KEY")
    with bench() as b:
        llm = layer(b)
        with pytest.raises(AuthenticationError, match="COHERE_API_KEY"):
            rerank(b, ["a"], llm)
        assert b.server.count == llm.spent.calls == 0


def test_an_account_at_openai_is_told_to_openai_alone(bench, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    heads = []
    with bench() as b:
        original = b.server._answer

        async def answer(body, fault, head, writer):
            heads.append(head.lower())
            return await original(body, fault, head, writer)

        b.server._answer = answer
        rerank(b, ["a"])
        rerank(b, ["a"], model="openai/reranker")
    assert ["org-1" in head for head in heads] == [False, True]


def test_a_rehearsal_counts_what_is_missing(bench):
    with bench() as b:
        rerank(b, passages(5))
        rehearsal = DryRunLLM(LLMSettings(), b.folder / "llm")
        assert rerank(b, passages(5), rehearsal).scores == wanted(passages(5))
        with pytest.raises(ProviderError, match="not paid for yet"):
            rerank(b, passages(12), rehearsal)
        asked = rehearsal.asked(MODEL, "rerank")
        assert (asked.known, asked.missing, asked.calls, asked.searches) == (10, 7, 1, 1)
        assert asked.tokens > 0
        assert b.server.count == 1


@pytest.mark.parametrize(
    "raw", ["", "[]", "{}", '{"score": NaN, "call": "c", "of": 1}', '{"score": true, "call": "c", "of": 1}']
)
def test_a_damaged_entry_is_a_miss(raw):
    entry = PairScore(0.25, "c", 4, 1, 3.5, 7, 0.5).cached(MODEL)
    assert PairScore.of(entry) == PairScore(0.25, "c", 4, 1, 3.5, 7, 0.5)
    assert PairScore.of(CachedAnswer(**{**vars(entry), "raw": raw})) is None
    assert PairScore.of(CachedAnswer(**{**vars(entry), "ms": None})) is None
    assert json.loads(entry.raw) == {"score": 0.25, "call": "c", "of": 4, "searches": 1}


def test_a_price_that_was_forgotten_is_not_zero():
    with pytest.raises(ValueError, match="needs input and output"):
        Price(input=1.0)
    assert Price(per_1k_searches=2.0).usd(10, 10, 3) == pytest.approx(0.006)
