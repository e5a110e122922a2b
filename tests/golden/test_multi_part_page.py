"""The files and commands of docs/how-to/multi-part-answers.md, executed in the order of the page."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest
from support.llm_server import LLMServer
from support.paying import MODEL
from support.project import make_project, raggs

from raggs.golden.sources import open_golden

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "multi-part-answers.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"`([\w./]+\.(?:jsonl|trec))`[^`]*(?:`cost`[^`]*)?:\n\n```\w+\n(.*?)```", re.DOTALL)


def written(folder: Path) -> Path:
    """Write the files of the page into a folder."""
    for name, text in BLOCK.findall(TEXT):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_the_example_has_the_values_that_the_page_states(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(written(tmp_path))
    command = next(line for line in TEXT.splitlines() if line.startswith("raggs eval"))
    found = raggs(*shlex.split(command)[1:], "--out", "out", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    report = json.loads((tmp_path / "out" / "eval.json").read_text(encoding="utf-8"))
    values = report["per_query"]["words"]
    assert values["complete@2"] == {"q1": 0.0, "q2": 1.0}
    assert values["complete@3"] == {"q1": 1.0, "q2": 1.0}
    assert values["evidence_recall@2"] == {"q1": 0.5, "q2": 1.0}
    assert "`complete@2` is 0.5 and `complete@3` is 1" in TEXT


def test_the_commands_that_find_evidence_work(tmp_path: Path, server: LLMServer) -> None:
    project = make_project(tmp_path, rank=None)
    project.change(llm={"api_base": server.url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}})
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    commands = [line for line in TEXT.splitlines() if line.startswith(("raggs questions", "raggs run --set"))]
    assert len(commands) == 3
    for command in commands:
        words = command.replace("openai/gpt-5-mini", MODEL).split()[1:]
        found = raggs(*words, *(["-q"] if words[0] == "run" else []), cwd=tmp_path)
        assert found.returncode == 0, found.stderr
    assert server.count == 8, "a proposal and a verification for each query"
    assert len(open_golden(project.run).judgments().evidence) == 4


def test_the_searches_of_the_agent_are_merged_with_their_cost(tmp_path: Path) -> None:
    command = next(line for line in written_commands() if "agent.jsonl" in line)
    found = raggs(*shlex.split(command)[1:], "--out", "out", cwd=written(tmp_path))
    assert found.returncode == 0, found.stderr
    report = json.loads((tmp_path / "out" / "eval.json").read_text(encoding="utf-8"))
    assert report["per_query"]["agent"]["complete@3"] == {"q1": 1.0, "q2": 1.0}
    tasks = {system["name"]: system.get("tasks") for system in report["systems"]}
    assert tasks == {"words": None, "agent": {"searches": 1.5, "usd": pytest.approx(0.0025)}}
    row = next(line for line in found.stdout.splitlines() if line.startswith("agent  "))
    assert row.split()[-2:] == ["1.5", "0.0025"] and len(row) <= 80
    pages = (tmp_path / "out" / "eval.md").read_text(encoding="utf-8")
    assert re.search(r"\| USD/task +\| +\| +0\.0025 ", pages)
    assert raggs("audit", tmp_path / "out" / "eval.json", cwd=tmp_path).returncode == 0


def written_commands() -> list[str]:
    return [line for line in TEXT.splitlines() if line.startswith("raggs ")]


def test_the_code_of_the_page_runs() -> None:
    plain = re.sub(r"^```.*$", "", TEXT, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(plain, {}, PAGE.name, None, 0)
    assert test.examples and not doctest.DocTestRunner().run(test).failed
