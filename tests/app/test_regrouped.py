"""Grades that were given in groups are of no use where groups change, and the dry run says so before anybody pays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import call
from support.llm_server import KEY, LLMServer
from support.paying import paying
from support.project import Project


def dry(project: Project, *flags: str) -> tuple[int, str]:
    """The calls of the judge stage that are foreseen, and what is said of earlier grades."""
    found = json.loads(call("run", "--config", project.config, "--dry-run", "--json", *flags).stdout)
    (line,) = (each for each in found["estimates"] if each["stage"] == "judge")
    return line["calls"], line.get("anew", "")


def test_grades_that_other_groups_cost_are_counted_and_then_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        project = paying(tmp_path, server, queries=3)
        project.change(judge={"group": 5}, rank=None)
        assert dry(project)[1] == ""
        call("run", "--config", project.config, "-q")
        total = sum(b'"grade":null' not in line for line in (project.run / "judge.jsonl").read_bytes().splitlines())
        assert dry(project, "--set", "judge.samples=2")[1] == "", "what there is remains the first sample"
        why = f"{total} of {total} grades of the last run cannot be used: judge.group was 5 and is 1"
        assert dry(project, "--set", "judge.group=1") == (total, why)
        refused = call("run", "--config", project.config, "-q", "--set", "judge.group=1", code=2)
        assert "judge would run again (config.group was removed (was 5)), and replace results" in refused.stderr

        wider = ("--set", "retrieve.retrievers=[{type: bm25, k: 18}]")
        assert dry(project, *wider)[1].startswith("if a pool changes, none of its grades")
        call("run", "--config", project.config, "-q", "--to", "merge", *wider)
        foreseen, why = dry(project, *wider)
        assert why.endswith("cannot be used: the pools changed, so their passages are grouped differently")
        before = server.count
        call("run", "--config", project.config, "-q", *wider)
        assert server.count - before == foreseen
