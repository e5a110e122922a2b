"""`raggs judge compare` of two prompts that are paid: what each costs, and what differs."""

from __future__ import annotations

import json
from pathlib import Path

from support.llm_server import LLMServer
from support.project import Project, raggs

from raggs import prompts


def test_two_prompts_and_what_they_cost(server: LLMServer, project: Project) -> None:
    longer = project.folder / "strict.md"
    usual = (Path(prompts.__file__).parent / "grade@1.en.md").read_text()
    longer.write_text(usual.replace("You grade", "Be strict, and then be strict again. You grade", 1))
    for settings in ((), ("--run-id", "strict", "--set", f"judge.prompt={longer}", "--set", "judge.samples=2")):
        done = raggs("run", "--config", project.config, "--to", "judge", "-q", "--yes", *settings)
        assert done.returncode == 0, done.stderr
    done = raggs("judge", "compare", project.run, project.run.with_name("strict"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["settings"]) == {"prompt", "samples"}
    first, second = found["first"]["bill"], found["second"]["bill"]
    assert second["calls"] == 2 * first["calls"]
    assert second["tokens_per_grade"] > 2 * first["tokens_per_grade"]
    assert first["usd_per_1000"] == 1000 * first["usd"] / found["first"]["graded"]
    assert first["seconds_per_call"] > 0
    assert found["agreement"]["exact"]["value"] == 1.0
    shown = raggs("judge", "compare", project.run, project.run.with_name("strict"), "--details").stdout
    assert "B costs" in shown
    assert "use the cheaper" in shown
    assert "prompt (grade@1 / strict.md)" in shown


def test_each_member_of_a_panel_costs_what_its_own_model_does(server: LLMServer, project: Project) -> None:
    members = [project.settings()["judge"]["judge"], {"type": "qrels", "path": "qrels.txt"}]
    project.change(judge={"judge": {"type": "panel", "judges": members}, "samples": 2})
    done = raggs("run", "--config", project.config, "--to", "judge", "-q", "--yes")
    assert done.returncode == 0, done.stderr
    found = json.loads(raggs("judge", "compare", project.run, "--json").stdout)
    first, second = found["first"], found["second"]
    assert (first["judges"], second["judges"]) == (
        {"litellm openai/judge": first["graded"]},
        {"qrels qrels.txt": first["graded"]},
    )
    assert first["bill"]["calls"] == server.count == 2 * first["graded"]
    assert abs(first["bill"]["usd_per_1000"] - 1000 * first["bill"]["usd"] / first["graded"]) < 1e-6
    assert (second["bill"]["calls"], second["bill"]["usd_per_1000"]) == (0, 0.0), "labels cost nothing"
