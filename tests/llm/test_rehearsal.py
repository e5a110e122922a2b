"""Models that ask nobody: what they count, once and for others like it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from raggs.llm import LLMSettings
from raggs.llm.messages import ChatRequest, EmbedRequest
from raggs.llm.rehearsal import DryRunLLM
from raggs.runs.forecast import follow, lines_of, typical

MODEL, REASONS = "openai/gpt-4o-mini", "openai/gpt-5-mini"


def question(text: str, model: str = MODEL) -> ChatRequest[object]:
    return ChatRequest(model, [{"role": "user", "content": text}], {}, "grade", dict, max_output_tokens=50)


@pytest.fixture
def llm() -> Iterator[DryRunLLM]:
    made = DryRunLLM(LLMSettings(), None)
    yield made
    asyncio.run(made.close())


def test_one_question_stands_for_many(llm: DryRunLLM) -> None:
    llm.turn_to("judge")
    asyncio.run(llm.ask(question("a text")))
    one = llm.asked(MODEL, "grade")
    assert (one.calls, one.missing, one.answers, one.guessed) == (1, 1, 50, False)
    tokens = one.tokens
    with llm.standing_for(9):
        asyncio.run(llm.ask(question("a text")))
    assert (one.calls, one.missing, one.tokens, one.answers, one.guessed) == (10, 10, 10 * tokens, 500, True)
    with llm.standing_for(0):
        asyncio.run(llm.ask(question("a text")))
    assert one.calls == 10


def test_stages_are_counted_apart_and_hidden_reasoning_is_assumed(llm: DryRunLLM) -> None:
    for stage, model in (("judge", MODEL), ("rank", MODEL), ("rank", REASONS)):
        llm.turn_to(stage)
        asyncio.run(llm.ask(question("a text", model)))
    llm.guess()
    lines = list(lines_of(llm))
    assert [(line.stage, line.who, line.calls) for line in lines] == [
        ("judge", MODEL, 1),
        ("rank", MODEL, 1),
        ("rank", REASONS, 1),
    ]
    assert [line.exact for line in lines] == [True, False, False]
    assert [(line.output_tokens, line.hidden_tokens) for line in lines[1:]] == [(50, 0), (1050, 1000)]
    assert lines[1].repairs == LLMSettings().max_repairs


def test_a_text_is_embedded_once_and_what_is_local_costs_nothing(llm: DryRunLLM) -> None:
    for texts in (["a", "b"], ["b", "c"], []):
        asyncio.run(llm.embed(EmbedRequest(MODEL, texts, 4, batch=1)))
    llm.count("oracle (local)", "grade", 7, exact=True, paid=False)
    embedded, local = lines_of(llm)
    assert (embedded.stage, embedded.calls, embedded.output_tokens, embedded.repairs) == ("embed", 3, 0, 0)
    assert (local.calls, local.usd, local.exact) == (7, 0.0, True)


def test_each_embedder_and_number_of_dimensions_has_vectors_of_its_own(llm: DryRunLLM) -> None:
    for model, dims in ((MODEL, 4), (REASONS, 4), (MODEL, 8), (MODEL, 4), (REASONS, 4)):
        asyncio.run(llm.embed(EmbedRequest(model, ["a", "b"], dims)))
    assert {line.who: line.calls for line in lines_of(llm)} == {MODEL: 2, REASONS: 1}
    assert (llm.asked(MODEL, "embed").missing, llm.asked(MODEL, "embed").known) == (4, 2)
    assert (llm.asked(REASONS, "embed").missing, llm.asked(REASONS, "embed").known) == (2, 2)


def test_a_ranking_is_followed_until_an_answer_is_missing(llm: DryRunLLM) -> None:
    class Course:
        asked, learned = 4, 0

        def learn(self, entries: list[object]) -> None:
            self.learned += len(entries)

    async def known(batch: object) -> object:
        return batch

    async def missing(batch: object) -> object:
        await llm.ask(question("an order"))
        return batch

    rounds, course = [["a", "b"], ["c"]], Course()
    assert asyncio.run(follow(llm, course, rounds, known, 80)) == 0  # type: ignore[arg-type]
    assert course.learned == 3
    assert asyncio.run(follow(llm, course, rounds, missing, 80)) == 76  # type: ignore[arg-type]
    assert course.learned == 3 and llm.missing == 2


def test_the_typical_text_is_the_one_nearest_to_the_mean() -> None:
    assert typical(["a" * length for length in (1, 2, 9, 40)]) == "a" * 9
    assert typical([]) == ""
