"""A key that is missing is said before anything is done, by whoever is asked; one in a .env is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import call
from support.project import Project, make_project

LACK = "openai/judge needs OPENAI_API_KEY, which is not set"
KEY = "sk-test-0123456789abcdefghijklmnop"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "")  # put back by monkeypatch, whatever a .env sets
    monkeypatch.delenv("OPENAI_API_KEY")
    made = make_project(tmp_path, queries=2, corpus=12)
    prices = {"openai/judge": {"input": 1.0, "output": 2.0}}
    made.change(judge={"judge": {"type": "litellm", "model": "openai/judge"}}, llm={"prices": prices})
    return made


def test_run_says_so_before_the_first_stage(project: Project) -> None:
    errors = call("run", "--config", project.config, code=3).stderr
    assert LACK in errors
    assert not (project.run / "embed.jsonl").exists()


def test_what_the_judge_needs_is_not_asked_for_without_it(project: Project) -> None:
    project.change(llm={"prices": {}})
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    call("run", "--config", project.config, "--dry-run")


def test_the_doctor_and_validate_fail(project: Project) -> None:
    done = call("doctor", "--config", project.config, code=3)
    assert f"FAIL key                    {LACK}" in done.stdout
    assert LACK in done.stderr
    assert "ok   inputs" in done.stdout
    assert LACK in call("validate", "--config", project.config, code=3).stderr


def test_a_key_beside_the_configuration_is_set(project: Project) -> None:
    (project.folder / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    out = call("doctor", "--config", project.config).stdout
    assert "ok   OPENAI_API_KEY         set" in out
    assert "ok   key                    OPENAI_API_KEY is set" in out
    assert "is valid" in call("validate", "--config", project.config).stdout


def test_a_model_with_a_key_variable_of_its_own(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.change(llm={"models": {"openai/judge": {"api_key_env": "JUDGE_API_KEY"}}})
    assert "needs JUDGE_API_KEY, which is not set" in call("run", "--config", project.config, code=3).stderr


def test_clouds_that_know_other_ways_are_only_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    model = "bedrock/some.model"
    project.change(
        judge={"judge": {"type": "litellm", "model": model}}, llm={"prices": {model: {"input": 1.0, "output": 1.0}}}
    )
    assert (
        f"AWS_ACCESS_KEY_ID is not set; {model} may find credentials elsewhere"
        in call("doctor", "--config", project.config).stdout
    )
    call("validate", "--config", project.config)
