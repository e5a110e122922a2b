"""`rank: null`: a golden set of grades alone is a whole run; what an earlier ranking left lies there, unread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support import cli
from support.llm_server import LLMServer
from support.project import Project, make_project

from raggs.base.errors import ConfigError
from raggs.config.load import load_config
from raggs.golden import formats
from raggs.golden.formats.tables import JsonlImporter
from raggs.golden.formats.trec import TrecImporter
from raggs.golden.sources import open_golden
from raggs.stages import GOLDEN

NULL = ("--set", "rank=null")
LEFT = "rank: null"


def call(*arguments: object, code: int = 0) -> Result:
    return cli.call(*arguments, code=code, env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("null"), rank=None)
    plan = json.loads(call("run", "--config", project.config, "--dry-run", "--json").output)
    assert "rank" not in plan["plan"] and {line["stage"] for line in plan["estimates"]} == {"judge"}
    told = call("run", "--config", project.config).output
    assert "done: " in told and "Golden set ready: " in told and "next: raggs eval" in told
    return project


def test_it_is_whole_and_says_what_it_leaves_out(graded: Project) -> None:
    assert tuple(graded.manifest()["stages"]) == GOLDEN.order[:-1]
    assert not list(graded.run.glob("rank*"))
    told = call("status", graded.run).output
    assert "disabled (rank: null)" in told and "would run" not in told and "next: raggs eval" in told
    found = json.loads(call("status", graded.run, "--json").output)
    assert found["left_out"] == ["rank"] and "rank" not in found["stages"]
    assert "merge, judge and prune recomputed" in " ".join(call("audit", graded.run).output.split())
    assert "Nothing to do" in call("run", "--config", graded.config).output


def test_commands_work_or_name_the_remedy(graded: Project, tmp_path: Path) -> None:
    run = graded.run
    call("eval", "-g", run, "-r", run)
    assert "rank is null" in call("eval", "-g", run, "-r", run, "-m", "ndcg[utility]", code=5).output
    rows = [line.split() for line in call("show", run, "q01", "--all").output.splitlines()]
    grades = [int(row[1]) for row in rows if len(row) > 2 and row[0].isdigit() and row[1].isdigit()]
    assert len(grades) > 5 and grades == sorted(grades, reverse=True)
    for asked in (("--query", "q01"), ("rank",)):
        assert "omits the stage rank (rank: null)" in call("why", run, *asked, code=2).output
    assert "omits the stage rank" in call("run", "--config", graded.config, "--to", "rank", code=2).output
    call("run", "--config", graded.config, "--set", "rank={max_calls: 0}", "--run-id", "ranked", "-q")
    for pair in ((run, run.parent / "ranked"), (run.parent / "ranked", run)):
        call("diff", *pair)
        call("compare", *pair)
    call("report", run, "--out", tmp_path / "report.html")
    assert "not done yet" not in (tmp_path / "report.html").read_text()
    call("review", "plan", run, "--minutes", "5", "--out", tmp_path / "plan.jsonl")
    call("cost", run)


def test_every_export_works_and_marks_what_stands_for_an_order(graded: Project, tmp_path: Path) -> None:
    for name in formats.EXPORTERS.builtin:
        assert LEFT in call("export", graded.run, "--format", name, "--out", tmp_path / name).output
    grades = [json.loads(line) for line in (graded.run / "judge.jsonl").read_text().splitlines()]
    given = {(each["qid"], each["doc_id"]): each["grade"] for each in grades if each["grade"]}
    golden = [json.loads(line) for line in (tmp_path / "jsonl" / "golden.jsonl").read_text().splitlines()]
    assert {(each["qid"], each["doc_id"]): each["grade"] for each in golden} == given
    assert all(each["unordered"] and "confidence" not in each for each in golden)
    places = [(each["qid"], -each["grade"]) for each in golden]
    assert places == sorted(places)
    run = [line.split() for line in (tmp_path / "trec" / "run.trec").read_text().splitlines()]
    assert {(qid, doc): int(score) for qid, _, doc, _, score, _ in run} == given
    assert {tag for *_, tag in run} == {"raggs-demo-by_grade"}
    assert json.loads((tmp_path / "ranx" / "run.json").read_text())["q00"]
    for read in (TrecImporter().read(tmp_path / "trec"), JsonlImporter().read(tmp_path / "jsonl")):
        assert read.top == 0 and not any(query.order for query in read.by_query())
    for folder in ("trec", "jsonl"):
        assert open_golden(tmp_path / folder).judgments().digest == open_golden(graded.run).judgments().digest


def test_a_ranking_of_before_is_no_part_of_it_and_comes_back_unpaid(server: LLMServer, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3, corpus=24)
    llm = {"api_base": server.url, "backoff_s": 0.01, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}}
    project.change(judge={"judge": {"type": "litellm", "model": "openai/judge"}}, llm=llm)
    call("run", "--config", project.config, "-q")
    before, asked = project.artifacts(), server.count
    assert "after the next run" in call("status", project.run, "--config", project.config, *NULL).output
    call("run", "--config", project.config, "-q", *NULL)
    assert "rank" not in project.manifest()["stages"] and project.manifest()["config"]["rank"] is None
    assert "its earlier files are ignored" in " ".join(call("status", project.run).output.split())
    (project.run / "rank.jsonl").write_text("edited\n")
    call("audit", project.run)
    call("eval", "-g", project.run, "-r", project.run)
    assert "confidence" not in call("show", project.run, "q01").output
    assert {each.order for each in open_golden(project.run).by_query()} == {()}
    assert "it has not run yet" in call("status", project.run, "--config", project.config).output
    call("run", "--config", project.config, "-q")
    assert project.artifacts() == before and server.count == asked
    call("audit", project.run)


def test_a_part_of_a_ranking_goes_where_it_is_left_out(server: LLMServer, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3, corpus=24, budget={"max_calls": 0})
    call("run", "--config", project.config, "-q", "--to", "prune")
    (project.run / "rank.partial.jsonl").write_text("")
    call("run", "--config", project.config, "-q", *NULL)
    assert not (project.run / "rank.partial.jsonl").exists()


@pytest.mark.parametrize("name", ["flips", "position_bias"])
def test_a_gate_that_is_read_off_rankings_is_refused(tmp_path: Path, name: str) -> None:
    project = make_project(tmp_path, rank=None)
    settings: dict[str, Any] = {"gate": {name: 0.2}}
    project.change(judge=settings)
    with pytest.raises(ConfigError, match=rf"judge\.gate\.{name} .*rank is null"):
        load_config(project.config)
