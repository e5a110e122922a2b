"""Queries with earlier turns: files, the rewriter, what judges and annotators see, and a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.llm_bench import MODEL, PRICE
from support.llm_server import FENCED, KEY, LLMServer
from support.project import make_project, questions, raggs, write_lines

from raggs.base.artifacts import EarlierTurn, Passage, Query
from raggs.base.errors import DataError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.judges import JudgeContext
from raggs.parts.judges.litellm import LiteLLMJudge
from raggs.parts.queries.fields import load_queries
from raggs.parts.queries.formats import CsvQueries, CsvQueriesConfig, JsonlQueries, JsonlQueriesConfig
from raggs.parts.queries.writing import write_queries
from raggs.parts.reviews import question_digest
from raggs.parts.rewriters import RewriterContext
from raggs.parts.rewriters.llm import ConversationRewriter
from raggs.prompts import load_prompt
from raggs.stages.embed import prepare

TURNS = (EarlierTurn(text="Where do herons nest?"), EarlierTurn(role="assistant", text="In trees,\nnear water."))
QUERY = Query(qid="q7", text="And what do they eat?", history=TURNS)
ALONE = Query(qid="q8", text="Hi! What do storks eat?")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def llm_of(server: LLMServer) -> LLM:
    settings = LLMSettings(api_base=server.url, prices={MODEL: PRICE}, timeout_s=20, backoff_s=0.001)
    return LLM(settings, BudgetSettings(), None)


def fenced(body: dict) -> list[str]:
    return [match[2] for match in FENCED.finditer(body["messages"][-1]["content"])]


def test_a_query_without_turns_has_the_same_bytes_and_text_as_before() -> None:
    assert "history" not in ALONE.model_dump_json()
    assert (ALONE.in_context(), ALONE.in_context("fr")) == (ALONE.text, ALONE.text)


def test_the_context_has_one_line_per_turn_and_headings_in_the_language() -> None:
    lines = QUERY.in_context().splitlines()
    assert lines[1:3] == ["user: Where do herons nest?", "assistant: In trees, near water."]
    assert lines[-1] == QUERY.text
    assert QUERY.in_context("fr").startswith("Tours précédents")
    assert QUERY.in_context("de") == QUERY.in_context("en")


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.csv"])
def test_files_of_queries_keep_the_turns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write_queries([QUERY, ALONE], path)
    reader = (
        CsvQueries(CsvQueriesConfig(path=path)) if name.endswith("csv") else JsonlQueries(JsonlQueriesConfig(path=path))
    )
    assert [*load_queries(reader, path).values()] == [QUERY, ALONE]


def read(tmp_path: Path, history: object) -> Query:
    path = tmp_path / "queries.jsonl"
    write_lines(path, [{"_id": "q", "text": "And then?", "history": history}])
    return load_queries(JsonlQueries(JsonlQueriesConfig(path=path)), path)["q"]


def test_strings_and_chat_messages_are_turns(tmp_path: Path) -> None:
    found = read(tmp_path, ["first", {"role": "assistant", "content": "second"}]).history
    assert found == (EarlierTurn(text="first"), EarlierTurn(role="assistant", text="second"))


@pytest.mark.parametrize(
    "history",
    [[""], [{"role": "system", "text": "x"}], [{"text": "x", "name": "y"}], [5], ["x"] * 101, ["x" * 100_001]],
)
def test_wrong_turns_name_file_and_line(history: object, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, history)
    assert caught.value.line == 1


def rewritten(server: LLMServer, query: Query) -> str:
    llm = llm_of(server)
    rewriter = ConversationRewriter(ConversationRewriter.Config(model=MODEL), RewriterContext(llm))

    async def main():
        try:
            return (await prepare(query, rewriter, "en")).rewrite
        finally:
            await llm.close()

    return asyncio.run(main())


def test_the_model_restates_the_last_turn_and_sees_the_turns_as_data() -> None:
    with LLMServer() as server:
        assert rewritten(server, QUERY) == "And what do they eat? (user: Where do herons nest?)"
        (body,) = server.requests
    assert fenced(body) == [QUERY.earlier_turns, QUERY.text]


def test_a_query_without_turns_is_cleaned_without_a_call() -> None:
    with LLMServer() as server:
        assert rewritten(server, ALONE) == "What do storks eat?"
        assert server.count == 0


def test_the_judge_sees_the_turns_as_data_and_other_prompts_stay() -> None:
    passage = Passage(doc_id="d", text="Herons eat fish.")
    prompts = [load_prompt(f"{name}@2", name) for name in ("grade", "order")]

    async def graded(query: Query):
        llm = llm_of(server)
        judge = LiteLLMJudge(LiteLLMJudge.Config(model=MODEL), JudgeContext(llm, *prompts))
        try:
            return await judge.grade(query, passage), await judge.order(query, [passage, Passage(doc_id="e", text="x")])
        finally:
            await llm.close()

    with LLMServer() as server:
        asyncio.run(graded(QUERY))
        asyncio.run(graded(ALONE))
    shown = [fenced(body)[0] for body in server.requests]
    assert shown == [QUERY.in_context()] * 2 + [ALONE.text] * 2


def test_labels_of_a_conversation_are_not_those_of_its_last_turn_alone() -> None:
    alone = Query(qid="q7", text=QUERY.text)
    assert question_digest(QUERY) != question_digest(alone)
    assert question_digest(alone) == question_digest(Query(qid="x", text=QUERY.text))


def test_a_run_searches_for_stand_alone_queries(tmp_path: Path, server: LLMServer) -> None:
    project = make_project(tmp_path, rank=None, queries=3)
    rows = questions(3)
    rows[0]["history"] = ["Tell me about the heron."]
    write_lines(tmp_path / "queries.jsonl", rows)
    plain = raggs("run", "--config", project.config)
    assert plain.returncode == 0, plain.stderr
    assert "1 query with earlier turns: the searches read only the last turn" in " ".join(plain.stderr.split())
    project.change(
        llm={"api_base": server.url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}},
        embed={"rewrite": {"type": "conversation", "model": MODEL}},
    )
    forecast = raggs("run", "--config", project.config, "--dry-run", "--json")
    assert forecast.returncode == 0, forecast.stderr
    assert [line["calls"] for line in json.loads(forecast.stdout)["estimates"] if line["stage"] == "embed"] == [1]
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0 and "earlier turns" not in done.stderr, done.stderr
    assert server.count == 1
    found = [json.loads(line) for line in (project.run / "embed.jsonl").read_text().splitlines()]
    assert found[0]["rewrite"].endswith("(user: Tell me about the heron.)")
    assert found[1]["rewrite"] == rows[1]["text"]
    audited = raggs("audit", project.run)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_added_turns_are_judged_again_and_nothing_else(tmp_path: Path, server: LLMServer) -> None:
    project = make_project(tmp_path, rank=None, queries=3, judge={"judge": {"type": "litellm", "model": MODEL}})
    project.change(llm={"api_base": server.url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}})
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    before = server.count
    rows = questions(3)
    rows[0]["history"] = ["Tell me about the heron."]
    write_lines(tmp_path / "queries.jsonl", rows)
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    new = [fenced(body)[0] for body in server.requests[before:]]
    assert new and all("user: Tell me about the heron." in text for text in new)
    assert len(new) < before and server.paid_twice == []
