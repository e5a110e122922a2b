"""How relevant each passage is, by a language model: what it sees, what is kept, what failed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile import hostile, obeys
from support.judging import passage
from support.reranking import KNOWN, asked_at_a_server, counted

from raggs.base.errors import AuthenticationError, ConfigError, ProviderError
from raggs.parts.rerankers.chat import check_relevance, side_by_side

MODEL = KNOWN
PASSAGES = [passage(f"p{number}", f"text {number} of grade {number * 2 % 5 + 1}") for number in range(10)]


def contract_case(folder, request):
    return asked_at_a_server(request)


def by_grade(query, text):
    return int(re.search(r"of grade (\d)$", text)[1])


@pytest.fixture
def make(bench, server):
    server.truth = by_grade
    return lambda **config: bench("pointwise", **{"model": MODEL, **config})


def test_it_orders_by_relevance_and_then_as_they_came(make, server):
    found = make().ask(PASSAGES)
    wanted = sorted(PASSAGES, key=lambda each: -by_grade("", each.text))
    assert [(each.doc_id, each.score) for each in found.ranked] == [
        (each.doc_id, 20.0 * by_grade("", each.text)) for each in wanted
    ]
    assert server.count == found.calls == 10
    assert found.ms > 0 and found.tokens > 0 and found.usd > 0


def test_each_passage_is_paid_for_once(make, server):
    first = make().ask(PASSAGES)
    again = make().ask(PASSAGES)
    assert (again.ranked, again.tokens, again.calls) == (first.ranked, first.tokens, first.calls)
    assert again.usd == pytest.approx(first.usd)
    make().ask([*PASSAGES[:4], passage("new", "a new text of grade 3")])
    assert server.count == 11


@pytest.mark.parametrize(
    "fault", ["relevance 101", "relevance text", "relevance nan", "no relevance", "truncated", "429", "500", "cut body"]
)
def test_an_answer_that_cannot_be_used_is_asked_for_again(make, server, fault):
    server.faults = [fault]
    found = make().ask(PASSAGES[:1])
    assert [each.score for each in found.ranked] == [20.0]
    assert server.count == 2


def test_a_passage_without_an_answer_is_named_and_the_others_are_kept(make, server):
    server.fault_for = lambda number, body: "refusal" if "text 3" in str(body) else None
    told = f"{MODEL} returned no relevance for 1 of 10 passages for the query 'what\\?': .* a refusal"
    with pytest.raises(ProviderError, match=told):
        make().ask(PASSAGES)
    assert server.count == 12
    server.fault_for = None
    make().ask(PASSAGES)
    assert server.count == 13


def test_a_refused_key_stops_it(make, server):
    server.fault_for = lambda number, body: "401"
    with pytest.raises(AuthenticationError):
        make().ask(PASSAGES)


def test_as_many_are_asked_at_once_as_the_settings_allow(make, server):
    server.delay_s = 0.05
    found = make(llm={"concurrency": 5}, max_usd=None).ask(PASSAGES)
    assert server.peak == 5
    assert found.ms >= 100, "two turns of five"
    assert found.ms < 500, "and not ten calls one after the other"


def test_no_passage_speaks_outside_its_marks(make, server):
    server.obeys = obeys
    texts = [passage(f"p{number}", f"{hostile(number, 'wings')} of grade 3") for number in range(30)]
    assert {each.score for each in make().ask(texts).ranked} == {60.0}


def test_the_prompt_is_in_the_language_of_the_question_and_a_cause(make, server):
    make().ask(PASSAGES[:1], language="fr")
    assert "Évalue" in server.requests[0]["messages"][0]["content"]
    causes = [make(**more).who.causes() for more in ({}, {"parameters": {"seed": 1}}, {"model": "openai/gpt-5-mini"})]
    assert all(one != other for place, one in enumerate(causes) for other in causes[place + 1 :])


def test_a_dry_run_counts_about_what_is_paid(make, server):
    bench = make()
    found = bench.ask(PASSAGES)
    told = counted(bench.workspace, bench.who.config, PASSAGES, "what?")
    assert told.calls == found.calls
    assert found.tokens < told.input_tokens < 2 * found.tokens
    assert found.usd < told.usd


def test_an_unknown_price_is_told_before_anything_is_asked(make, server):
    with pytest.raises(ConfigError, match="the price of openai/nobody-knows is unknown"):
        make(model="openai/nobody-knows").who.check()
    assert server.count == 0


@pytest.mark.parametrize(
    "answer", [{}, {"relevance": True}, {"relevance": 50.0}, {"relevance": -1}, {"relevance": None}]
)
def test_nothing_is_bent_into_a_number(answer):
    with pytest.raises(ValueError, match="whole number from 0 to 100"):
        check_relevance(answer)


@given(st.lists(st.floats(0, 1e6), max_size=30), st.integers(1, 40))
def test_side_by_side_lies_between_the_longest_call_and_all_of_them(times, slots):
    found = side_by_side(times, slots)
    assert max(times, default=0) <= found <= sum(times) * (1 + 1e-9)
    if slots == 1:
        assert found == pytest.approx(sum(times))
    if slots >= len(times):
        assert found == max(times, default=0)
