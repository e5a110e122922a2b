"""A language model as judge that states probabilities of grades."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from support.llm_bench import MODEL, PRICE
from support.llm_decisions import UNUSABLE_DECISIONS, UNUSABLE_DIGITS, peaked
from support.llm_server import FENCED, KEY, LLMServer

from raggs.base.artifacts import Passage, Query
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.judges import JudgeContext, Judgment
from raggs.parts.judges.litellm import LiteLLMJudge
from raggs.prompts import load_prompt
from raggs.stats.grade_distribution import canonical

QUERY = Query(qid="secret-qid", text="Where do herons nest?")
PASSAGE = Passage(doc_id="secret-doc", title="Herons", text="Herons nest up high.")
FORMS = ("decision", "logprobs")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def judge_for(server, folder=None, model=MODEL, **config):
    settings = LLMSettings(api_base=server.url, prices={model: PRICE}, timeout_s=20, backoff_s=0.001)
    llm = LLM(settings, BudgetSettings(), folder)
    context = JudgeContext(llm, load_prompt("grade@1", "grade"), load_prompt("order@1", "order"))
    return LiteLLMJudge(LiteLLMJudge.Config(model=model, **config), context), llm


def run(llm, work):
    async def main():
        try:
            return await work
        finally:
            await llm.close()

    return asyncio.run(main())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("grade", range(1, 6))
def test_the_grade_is_the_median_of_what_the_model_states(form, grade):
    with LLMServer(truth=lambda *_: grade) as server:
        judge, llm = judge_for(server, answers=form)
        found = run(llm, judge.grade(QUERY, PASSAGE))
        shares = canonical(peaked(grade))
        assert found == Judgment(grade, distribution=shares, distribution_source=form)
        assert found.answerers
        (body,) = server.requests
        sent = body["input"] if form == "decision" else body["messages"][1]["content"]
        assert [match[2] for match in FENCED.finditer(sent)] == [QUERY.text, PASSAGE.content]
        assert "secret" not in json.dumps(body)


@pytest.mark.parametrize(
    ("form", "fault"),
    [("decision", UNUSABLE_DECISIONS[2]), ("logprobs", UNUSABLE_DIGITS[1]), ("logprobs", UNUSABLE_DIGITS[-1])],
)
def test_an_unusable_answer_is_an_error_and_no_grade(form, fault):
    with LLMServer(faults=[fault] * 3) as server:
        judge, llm = judge_for(server, answers=form)
        found = run(llm, judge.grade(QUERY, PASSAGE))
    assert (found.grade, found.distribution, found.distribution_source) == (None, None, None)
    assert found.error.startswith("the answer cannot be used")
    assert found.raw


@pytest.mark.parametrize("form", FORMS)
def test_passages_are_graded_one_by_one_in_the_language_of_the_query(form):
    with LLMServer() as server:
        judge, llm = judge_for(server, answers=form)
        judge = LiteLLMJudge(judge.config, replace(judge.context, grades_prompt=load_prompt("grades@1", "grades")))
        assert not judge.grades_together
        assert not LiteLLMJudge.groups(judge.config)
        french = QUERY.model_copy(update={"language": "fr"})
        assert len(run(llm, judge.grades(french, [PASSAGE] * 2))) == 2
        assert server.count == 1, "the same passage is paid for once"
        assert "Sans rapport avec la question" in json.dumps(server.requests[0], ensure_ascii=False)


def test_causes_contain_the_form_of_a_grade_and_only_for_grades():
    with LLMServer() as server:
        usual, *_ = judge_for(server)
        explicit, *_ = judge_for(server, answers="text")
        assert usual.causes("grade") == explicit.causes("grade")
        assert "answers" not in usual.causes("grade")
        digit, *_ = judge_for(server, answers="logprobs")
        auto, *_ = judge_for(server, answers="auto")
        assert auto.causes("grade") == digit.causes("grade") != usual.causes("grade")
        assert digit.causes("order") == usual.causes("order")
        decided, *_ = judge_for(server, answers="decision")
        assert decided.causes("grade")["question"] != decided.causes("order").get("question")
        assert digit.causes("grade")["digit_prompt"] == load_prompt("digit@1", "digit").sha256


def test_auto_follows_the_tables():
    with LLMServer() as server:
        for model, form in (("openai/gpt-6-luna", "decision"), ("openai/gpt-5-mini", None), (MODEL, "logprobs")):
            judge, *_ = judge_for(server, model=model, answers="auto")
            assert judge.causes("grade").get("answers") == form
        assert server.count == 0
