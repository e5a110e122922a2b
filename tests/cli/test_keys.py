"""A key that is missing is said before anything is done, by whoever is asked; one in a .env is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.cli import call
from support.project import Project, make_project, raggs

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


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    ("environment", "code", "words"),
    [
        ({"OPENAI_API_KEY": b"sk-\xff\xfe1234567890"}, (3, 6), "credentials"),
        ({"OTHER_API_KEY": b"\xff\xfe-a-key-1234567"}, (6,), "127.0.0.1:9"),
        ({"OPENAI_ORG_ID": b"org\nx: y"}, (5,), "environment OPENAI_ORG_ID: contains a character"),
        ({"OPENAI_BASE_URL": b"http://me:secret12@127.0.0.1:1/v1"}, (5,), "environment OPENAI_BASE_URL: it contains"),
    ],
)
def test_an_environment_that_no_request_can_carry_is_one_sentence(
    project: Project, environment: dict[str, bytes], code: tuple[int, ...], words: str
) -> None:
    own = None if "OPENAI_BASE_URL" in environment else "http://127.0.0.1:9/v1"
    project.change(llm={"api_base": own, "max_attempts": 1, "outage_after": 1})
    environment = {"OPENAI_API_KEY": KEY.encode(), **environment}
    given = {**os.environ, **{name: os.fsdecode(value) for name, value in environment.items()}}
    done = raggs("run", "--config", project.config, "--quiet", env=given)
    told = done.stderr
    assert done.returncode in code, told
    assert words in told
    assert "bug" not in told and "Traceback" not in told and "secret12" not in told
