"""Rerank endpoints as rerankers: what is asked, what is kept, and the sentence where there is no score."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from support.judging import passage
from support.llm_reranks import relevance, tokens
from support.reranking import asked_at_a_server, counted

from raggs.base.errors import ConfigError, ProviderError
from raggs.llm import BudgetSettings, LLMSettings, Price
from raggs.parts.rerankers.litellm import LiteLLMReranker
from raggs.parts.workspace import Workspace

MODEL = "openai/a-reranker"
PASSAGES = [passage(f"p{number}", f"text {number}" * (1 + number % 3)) for number in range(12)]


def contract_case(folder, request):
    return asked_at_a_server(request)


@pytest.fixture
def make(server, tmp_path):
    """A reranker in a workspace of its own, over one workspace."""
    made = []

    def new(price=None, max_usd=1.0, **config):
        prices = {MODEL: price or Price(per_1k_searches=2.0)}
        llm = LLMSettings(api_base=server.url, backoff_s=0.001, prices=prices if price is not False else {})
        workspace = Workspace(tmp_path / "runs", llm, BudgetSettings(max_usd=max_usd))
        made.append(workspace)
        return workspace.reranker(LiteLLMReranker.Config(model=MODEL, **config)), workspace

    yield new
    for workspace in made:
        workspace.close()


def ask(workspace, who, passages=PASSAGES, query="what?"):
    return workspace.loop.run(who.rerank(query, "en", passages))


def test_it_orders_by_the_scores_of_the_endpoint(make, server):
    who, workspace = make()
    found = ask(workspace, who)
    wanted = {each.doc_id: relevance("what?", each.text) for each in PASSAGES}
    assert {each.doc_id: each.score for each in found.ranked} == wanted
    assert [each.doc_id for each in found.ranked] == sorted(wanted, key=lambda doc_id: -wanted[doc_id])
    assert found.tokens == tokens(server.requests[0])
    assert (found.calls, found.usd) == (1, pytest.approx(0.002))
    assert found.ms > 0


def test_another_run_pays_nothing_and_knows_what_it_took(make, server):
    first = ask(*reversed(make()))
    again = ask(*reversed(make()))
    assert again == first
    fewer = ask(*reversed(make()), PASSAGES[:5])
    assert (fewer.ms, fewer.calls) == (None, 1)
    assert fewer.usd == pytest.approx(0.002), "a search is paid whole"
    assert server.count == 1


def test_what_stays_wrong_is_named(make, server):
    server.fault_for = lambda number, body: "fewer results"
    who, workspace = make()
    with pytest.raises(ProviderError, match="returned no usable scores: 11 scores for 12 passages"):
        ask(workspace, who)


def test_an_unknown_price_is_told_before_anything_is_asked(make, server):
    who, _ = make(price=False)
    with pytest.raises(ConfigError, match=f"the price of {MODEL} is unknown"):
        who.check()
    make(price=False, max_usd=None)[0].check()
    assert server.count == 0


@pytest.mark.parametrize("name", ["top_n", "top_k", "query", "documents", "return_documents"])
def test_its_own_parameters_cannot_be_set(name):
    with pytest.raises(ValidationError, match="not allowed here; raggs sends"):
        LiteLLMReranker.Config(model=MODEL, parameters={name: 3})


def test_parameters_are_sent_and_change_scores(make, server):
    ask(*reversed(make()))
    who, workspace = make(parameters={"max_tokens_per_doc": 7})
    ask(workspace, who)
    assert server.requests[1]["max_tokens_per_doc"] == 7
    assert who.causes() != make()[0].causes()
    assert make(batch=3)[0].causes() == make()[0].causes()


def test_a_dry_run_counts_what_is_paid(make, server):
    who, workspace = make(batch=150)
    many = [passage(f"m{number}", f"a passage {number}") for number in range(201)]
    found = ask(workspace, who, many)
    told = counted(workspace, who.config, many, "what?")
    assert (told.calls, told.usd) == (server.count, pytest.approx(found.usd)) == (2, pytest.approx(0.006))
