"""A language model as judge that states probabilities of grades."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace

import pytest
from support.llm_bench import MODEL, PRICE
from support.llm_decisions import UNUSABLE_DECISIONS, UNUSABLE_DIGITS, peaked
from support.llm_server import FENCED, KEY, LLMServer

from raggs.base.artifacts import Passage, Query
from raggs.base.errors import ConfigError, DataError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.judges import JudgeContext, Judgment
from raggs.parts.judges.litellm import LiteLLMJudge
from raggs.prompts import load_prompt
from raggs.runs.execution.channel import judgment
from raggs.stages.judge import JudgeConfig
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


@pytest.mark.parametrize("shown", [(0, 1, 2), (2, 0, 1)])
def test_a_batch_is_ordered_by_the_probability_to_be_the_best(shown):
    passages = [Passage(doc_id=f"d{n}", text=f"Herons nest {'high ' * n}up.") for n in range(3)]
    with LLMServer(truth=lambda _, passage: passage.count("high")) as server:
        judge, llm = judge_for(server, answers="decision")
        found = run(llm, judge.order(QUERY, [passages[place] for place in shown]))
        assert found.order == tuple(sorted(range(3), key=lambda place: -shown[place]))
        assert found.best == canonical([16, 4, 1])
        (question,) = server.requests[0]["questions"]
        assert (question["type"], [each["value"] for each in question["choices"]]) == ("choice", ["A", "B", "C"])


def test_equal_probabilities_keep_the_order_of_presentation():
    with LLMServer(truth=lambda *_: 3) as server:
        judge, llm = judge_for(server, answers="decision")
        found = run(llm, judge.order(QUERY, [PASSAGE.model_copy(update={"doc_id": f"d{n}"}) for n in range(4)]))
    assert (found.order, found.best) == ((0, 1, 2, 3), (0.25,) * 4)


def test_an_unusable_order_is_an_error():
    with LLMServer(faults=["nan probability"] * 3) as server:
        judge, llm = judge_for(server, answers="decision")
        found = run(llm, judge.order(QUERY, [PASSAGE] * 2))
    assert (found.order, found.best) == (None, None)
    assert found.error and found.raw


EVEN = [[0.2] * 5] * 5
IDENTITY = [[float(row == column) for column in range(5)] for row in range(5)]


def calibration(folder, **values):
    path = folder / "calibration.json"
    path.write_text(json.dumps({"temperature": 1, "mix": 0, "confusion": EVEN, "labels": 60, **values}))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_a_calibration_changes_the_recorded_probabilities_and_no_call(tmp_path, form):
    with LLMServer(truth=lambda *_: 4) as server:
        plain, llm = judge_for(server, tmp_path / "cache", answers=form)
        stated = run(llm, plain.grade(QUERY, PASSAGE))
        for values, wanted in (
            ({}, stated.distribution),
            ({"mix": 1}, (0.2,) * 5),
            ({"mix": 1, "confusion": IDENTITY}, (0, 0, 0, 1, 0)),
            ({"temperature": 100}, (0.2,) * 5),
        ):
            judge, llm = judge_for(
                server, tmp_path / "cache", answers=form, calibration=calibration(tmp_path, **values)
            )
            found = run(llm, judge.grade(QUERY, PASSAGE))
            assert found.distribution == pytest.approx(wanted, abs=0.02)
            assert sum(round(10_000 * share) for share in found.distribution) == 10_000
            assert judge.causes("grade") != plain.causes("grade")
            assert judge.causes("order") == plain.causes("order")
        assert server.count == 1


@pytest.mark.parametrize(
    "values",
    [{"temperature": 0}, {"mix": 1.5}, {"confusion": EVEN[1:]}, {"confusion": [[1.0] * 5] * 5}, {"mix": "x"}],
)
def test_an_invalid_calibration_is_named(tmp_path, values):
    with LLMServer() as server:
        judge, _ = judge_for(server, answers="decision", calibration=calibration(tmp_path, **values))
        with pytest.raises(DataError, match="is not a calibration"):
            judge.check([])
        judge, _ = judge_for(server, answers="decision", calibration=tmp_path / "missing.json")
        judge.causes("grade")
        with pytest.raises(DataError, match="cannot be read"):
            judge.check([])


def test_a_calibration_needs_probabilities(tmp_path):
    path = calibration(tmp_path)
    with LLMServer() as server:
        with pytest.raises(ValueError, match="calibration needs probabilities"):
            judge_for(server, calibration=path)
        judge, _ = judge_for(server, model="openai/gpt-5-mini", answers="auto", calibration=path)
        with pytest.raises(ConfigError, match="states no probabilities"):
            judge.check([])


def test_a_prompt_that_is_not_used_is_an_error():
    judge = {"type": "litellm", "model": MODEL, "answers": "logprobs"}
    assert JudgeConfig.model_validate({"judge": judge, "prompt": "grade@1"})
    with pytest.raises(ValueError, match="prompt is not used with answers: logprobs"):
        JudgeConfig.model_validate({"judge": judge, "prompt": "grade@2"})
    assert JudgeConfig.model_validate({"judge": {**judge, "answers": "text"}, "prompt": "grade@2"})


def test_workers_get_the_probabilities():
    shares = canonical(peaked(4))
    said = Judgment(4, votes={"one": Judgment(4, distribution=shares, distribution_source="decision")})
    for found in (said, Judgment(4, distribution=shares, distribution_source="logprobs"), Judgment(None, error="x")):
        assert judgment(json.loads(json.dumps(asdict(found)))) == found
