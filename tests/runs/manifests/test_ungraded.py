"""A golden set without a grade: every command says why there is none, and what helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli import call
from support.llm_server import LLMServer
from support.project import make_project, write_lines

NOTHING = [{"qid": "q00", "text": "zzqx wwvk"}, {"qid": "q01", "text": "vvrt"}]


def said(*arguments: object, code: int = 0) -> str:
    return " ".join(call(*arguments, code=code).output.split())


@pytest.mark.parametrize(
    ("judge", "questions", "why", "helps"),
    [
        ({"type": "qrels", "path": "qrels.txt"}, NOTHING, "2 pools are empty because no", "raggs show {} q00"),
        ({"type": "human"}, [], "no judge gave a grade for 12 passages", "raggs review serve {}"),
        ({"type": "scripted", "path": "busy.jsonl"}, [], "the judge failed on 12 passages", "raggs run --config"),
    ],
    ids=["no pool", "nobody spoke", "all failed"],
)
def test_it_is_told_why_no_passage_has_a_grade(
    tmp_path: Path, judge: dict[str, Any], questions: list[dict[str, Any]], why: str, helps: str
) -> None:
    bm25 = {"retrievers": [{"type": "bm25", "k": 6}]}
    project = make_project(tmp_path, queries=2, corpus=12, judge={"judge": judge}, retrieve=bm25)
    fails = [{"qid": f"q0{q}", "doc_id": f"p{doc:03}", "fail": "busy"} for q in range(2) for doc in range(12)]
    write_lines(tmp_path / "busy.jsonl", fails)
    if questions:
        write_lines(tmp_path / "queries.jsonl", questions)
    why, helps = f"no query has a graded passage: {why}", helps.format(project.run)
    ran = said("run", "--config", project.config, code=7 if "failed" in why else 0)
    assert why in ran and f"next: {helps}" in ran
    (tmp_path / "mine.trec").write_text("q00 Q0 p000 1 1.0 mine\n")
    mine = ("--run", tmp_path / "mine.trec")
    for command in (("eval", "--golden", project.run, *mine), ("review", "plan", project.run)):
        assert why in (told := said(*command, code=5)) and helps in told
    assert why in said("export", project.run, "--format", "trec", "--out", tmp_path / "out")
    stood = said("status", project.run)
    assert why in stood and f"next: {helps}" in stood


def test_a_budget_that_ended_before_the_first_whole_query_is_named(server: LLMServer, tmp_path: Path) -> None:
    judge = {"judge": {"type": "litellm", "model": "openai/judge"}}
    llm = {"api_base": server.url, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}}
    project = make_project(tmp_path, queries=2, corpus=12, judge=judge, llm=llm)
    call("run", "--config", project.config, "--set", "budget.max_calls=2", code=7)
    (tmp_path / "mine.trec").write_text("q00 Q0 p000 1 1.0 mine\n")
    told = said("eval", "--golden", project.run, "--run", tmp_path / "mine.trec", code=4)
    assert "stage judge finished no query because the budget is used up (budget.max_calls 2)" in told
