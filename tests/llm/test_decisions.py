"""Decision requests and log-probabilities: checked, paid for once, in the ledger and counted by dry runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.llm_bench import MODEL, PRICE, question
from support.llm_decisions import (
    DECISION_FORMS,
    DIGIT_FORMS,
    UNUSABLE_DECISIONS,
    UNUSABLE_DIGITS,
    decided,
    peaked,
)
from support.llm_server import no_truth

from raggs.llm import ChatRequest, DecisionRequest
from raggs.llm.prices import decides
from raggs.llm.providers import answer_form
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts.judges.decisions import best_question, grade_question
from raggs.parts.judges.litellm import check_digit
from raggs.stats.grade_distribution import canonical, distribution_of_levels

PERPLEXITY = "perplexity/pplx-decider-latest"
TEXT = "<data-00>\nwhat?\n</data-00>\n\n<data-11>\nthis\n</data-11>"
WANTED = canonical(peaked(no_truth("what?", "this")))


def decision(**changes: Any) -> DecisionRequest[tuple[float, ...]]:
    defaults: dict[str, Any] = {"model": MODEL, "text": TEXT, "question": grade_question("en"), "schema_name": "grade"}
    return DecisionRequest(**{**defaults, "check": distribution_of_levels, **changes})


def digit(**changes: Any) -> ChatRequest[tuple[float, ...]]:
    return question(**{"schema": {}, "check": check_digit, "logprobs": 20, "max_output_tokens": 2, **changes})


REQUESTS = {"decision": decision, "logprobs": digit}
CASES = [("decision", fault) for fault in UNUSABLE_DECISIONS] + [("logprobs", fault) for fault in UNUSABLE_DIGITS]
FORMS = [("decision", form) for form in DECISION_FORMS] + [("logprobs", form) for form in DIGIT_FORMS]


@pytest.mark.parametrize("kind", REQUESTS)
def test_an_answer_is_paid_for_once_and_counted_as_the_server_counts(bench, kind):
    with bench() as b:
        request, llm, again = REQUESTS[kind](), b.llm(), b.llm()
        first, second = b.run(lambda llm: llm.ask(request), llm), b.run(lambda llm: llm.ask(request), again)
        assert first.value == second.value == WANTED
        assert b.server.count == llm.spent.calls == 1
        assert (again.spent.calls, again.spent.cached) == (0, 1)
        assert llm.spent.usd == pytest.approx(
            (llm.spent.prompt_tokens * PRICE.input + llm.spent.completion_tokens * PRICE.output) / 1e6
        )
        (body,) = b.server.requests
        if kind == "decision":
            assert body == {"model": "test-model", "input": TEXT, "questions": [grade_question("en")]}
            assert llm.spent.completion_tokens == 0
        else:
            assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 2)
            assert "response_format" not in body
        other = REQUESTS[kind](sample=1)
        assert b.run(lambda llm: llm.ask(other)).value == WANTED
        assert b.server.count == 2, "another sample is another answer"


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_other_forms_of_an_answer_are_understood(bench, kind, form):
    with bench(faults=[form]) as b:
        found = b.run(lambda llm: llm.ask(REQUESTS[kind]())).value
        assert b.server.count == 1
        assert found == pytest.approx(WANTED, abs=2e-4)


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_truncated_list_leaves_little_for_the_rest(bench, kind):
    with bench(faults=["truncated list"]) as b:
        found = b.run(lambda llm: llm.ask(REQUESTS[kind]())).value
        assert b.server.count == 1
        assert sum(found) == pytest.approx(1) and found == pytest.approx(WANTED, abs=0.03)


@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_an_unusable_answer_is_requested_again_and_never_cached(bench, kind, fault):
    with bench(faults=[fault]) as b:
        llm = b.llm()
        found = b.run(lambda llm: llm.ask(REQUESTS[kind]()), llm)
        assert found.value == WANTED
        assert (b.server.count, llm.spent.calls, llm.spent.repaired) == (2, 2, 1)
    with bench(faults=[fault] * 3) as b:
        found = b.run(lambda llm: llm.ask(REQUESTS[kind](sample=7)))
        assert (found.value, found.unusable, b.server.count) == (None, True, 3)
        assert "cannot be used" in found.error
        assert b.run(lambda llm: llm.ask(REQUESTS[kind](sample=7))).value == WANTED


@pytest.mark.parametrize("fault", ["429", "500", "reset", "garbage"])
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_failing_provider_is_called_again(bench, kind, fault):
    with bench(faults=[fault]) as b:
        llm = b.llm()
        assert b.run(lambda llm: llm.ask(REQUESTS[kind]()), llm).value == WANTED
        assert b.server.count == llm.spent.calls == 2


@pytest.mark.parametrize("fault", [None, "500", "refused"])
def test_other_providers_of_decisions_are_called_through_litellm(bench, monkeypatch, fault):
    monkeypatch.setenv("PERPLEXITYAI_API_KEY", "sk-some-key-0123456789")
    with bench(faults=[fault]) as b:
        llm = b.llm(prices={PERPLEXITY: PRICE})
        found = b.run(lambda llm: llm.ask(decision(model=PERPLEXITY)), llm)
        assert found.value == WANTED, found.error
        assert b.server.count == llm.spent.calls == (1 if fault is None else 2)
        assert b.server.requests[0]["model"] == "pplx-decider-latest"


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_dry_run_counts_the_call_and_its_longest_answer(bench, kind):
    with bench() as b:
        settings = b.llm().settings
        dry = DryRunLLM(settings, b.folder / "llm")
        assert asyncio.run(dry.ask(REQUESTS[kind]())).value is None
        asked = dry.asked(MODEL, "grade")
        longest = 0 if kind == "decision" else 2
        assert (asked.calls, asked.missing, asked.answers, asked.limit) == (1, 1, longest, longest)
        asyncio.run(dry.close())
        assert b.server.count == 0
        b.run(lambda llm: llm.ask(REQUESTS[kind]()))
        dry = DryRunLLM(settings, b.folder / "llm")
        assert asyncio.run(dry.ask(REQUESTS[kind]())).value == WANTED
        assert (dry.asked(MODEL, "grade").known, dry.asked(MODEL, "grade").calls) == (1, 0)
        asyncio.run(dry.close())


def test_parameters_of_chat_models_are_not_sent_with_decisions(bench):
    with bench() as b:
        b.run(lambda llm: llm.ask(decision()), parameters={"temperature": 0})
        b.run(lambda llm: llm.ask(digit()), parameters={"temperature": 0, "max_completion_tokens": 500})
        decided, chatted = b.server.requests
        assert "temperature" not in decided
        assert (chatted["temperature"], chatted["max_tokens"]) == (0, 2)
        assert "max_completion_tokens" not in chatted


def test_requests_without_log_probabilities_keep_their_cache_keys(bench):
    with bench() as b:
        llm = b.llm()
        key = llm._key(question(), llm._parameters(question()))
        assert key == "d92b97a8224b2cb80c1916cdbda3c44a10d1459b410f69372082ed34bad7c656"
        assert json.loads(json.dumps(llm._parameters(question()))) == {}


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("openai/gpt-4o-mini", "logprobs"),
        ("openai/gpt-5-mini", "text"),
        ("openai/gpt-6-luna", "decision"),
        ("perplexity/pplx-decider-latest", "decision"),
        ("typesafe/jev", "decision"),
        ("laya/english", "text"),
        ("anthropic/claude-sonnet-4-5", "text"),
        ("no-such-provider/x", "text"),
    ],
)
def test_the_form_of_an_answer_is_read_from_tables(model, form):
    assert answer_form(model) == form
    assert decides(model) == (form == "decision")


def test_requests_and_the_answers_of_the_local_server_are_those_of_the_installed_litellm():
    types = pytest.importorskip("litellm.types.decisions")
    passages = "".join(f"<data-a>\n{text}\n</data-a>" for text in ("q", "one", "two"))
    for each in (grade_question("en"), grade_question("fr"), best_question("en", ["A", "B"])):
        body = {"model": "gpt-6-luna", "input": passages, "questions": [each]}
        sent = types.OpenAIDecisionRequestBody.model_validate(body)
        assert sent.questions[0].type == each["type"]
        answer = decided(body, lambda *_: 4, "", counted=True)
        found = types.OpenAIDecisionResponse.model_validate(answer).answers[0]
        assert sum(each.probability for each in found.probabilities) == pytest.approx(1, abs=1e-5)
