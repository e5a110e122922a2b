"""The commands that are shown can be typed as they are: they mean the same run, with the same settings."""

from __future__ import annotations

import shlex
from pathlib import Path

from support.project import make_project
from typer.testing import CliRunner

from raggs.cli.app import app


def call(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def shown(out: str) -> list[str]:
    [line] = [line for line in out.splitlines() if line.startswith("next: ")]
    return shlex.split(line.removeprefix("next: "))


def test_the_next_command_repeats_configuration_run_and_settings(tmp_path: Path) -> None:
    project = make_project(tmp_path / "a folder", queries=2, corpus=12)
    flags = ("--run-id", "other", "--set", "rank.max_calls=3", "--set", "rank.top=4")
    out = call("run", "--config", project.config, *flags, "--to", "merge")
    assert shown(out) == ["raggs", "run", "--config", str(project.config), *flags]
    run = project.folder / "runs" / "other"
    settings = flags[2:]
    out = call("status", run, "--config", project.config, *settings)
    assert shown(out) == ["raggs", "run", "--config", str(project.config), *flags]
    call(*shown(out)[1:])
    assert shown(call("status", run, "--config", project.config, *settings))[:2] == ["raggs", "audit"]
    checked = call("validate", "--config", project.config, *settings)
    assert shown(checked) == ["raggs", "run", "--config", str(project.config), *settings]


def test_a_negative_number_of_queries_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    call("run", "--config", project.config, "--show", "-5", code=2)
