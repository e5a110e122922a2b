"""The commands that are shown can be typed as they are: they mean the same run, with the same settings."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest
from support.cli import call, invoke
from support.project import make_project

from raggs import run
from raggs.runs.events import StageStarted


def shown(out: str) -> list[str]:
    [line] = [line for line in out.splitlines() if line.startswith("next: ")]
    return shlex.split(line.removeprefix("next: "))


def test_the_next_command_repeats_configuration_run_and_settings(tmp_path: Path) -> None:
    project = make_project(tmp_path / "a folder", queries=2, corpus=12)
    flags = ("--run-id", "other", "--set", "rank.max_calls=3", "--set", "rank.top=4")
    out = call("run", "--config", project.config, *flags, "--to", "merge").stdout
    assert shown(out) == ["raggs", "run", "--config", str(project.config), *flags]
    run = project.folder / "runs" / "other"
    settings = flags[2:]
    out = call("status", run, "--config", project.config, *settings).stdout
    assert shown(out) == ["raggs", "run", "--config", str(project.config), *flags]
    call(*shown(out)[1:])
    assert shown(call("status", run, "--config", project.config, *settings).stdout)[:2] == ["raggs", "eval"]
    checked = call("validate", "--config", project.config, *settings).stdout
    assert shown(checked) == ["raggs", "run", "--config", str(project.config), *settings]


def test_a_run_below_the_working_directory_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "mine", queries=2, corpus=12)
    away = shown(call("run", "--config", project.config).stdout)
    monkeypatch.chdir(tmp_path)
    near = shown(call("run", "--config", project.config).stdout)
    assert away == ["raggs", "eval", "-g", str(project.run), "-r", str(project.run)]
    assert near == ["raggs", "eval", "-g", "mine/runs/demo", "-r", "mine/runs/demo"]
    call(*near[1:])


def test_a_negative_number_of_queries_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    call("run", "--config", project.config, "--show", "-5", code=2)


def test_the_configuration_may_be_an_argument_or_lie_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    call("run", project.config, "--quiet", "--to", "merge")
    monkeypatch.chdir(tmp_path)
    assert shown(call("run", "--to", "merge").stdout) == ["raggs", "run", "--config", "raggs.yaml"]
    call("run", "raggs.yaml", "--config", "raggs.yaml", code=2)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = invoke("run")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2,
        "raggs: no configuration — name one: raggs run --config raggs.yaml; raggs init DIR creates one",
    )


def test_a_notebook_has_an_event_loop_already(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    heard: list[object] = []

    async def cell() -> int:
        return len(run(project.config, listen=heard.append).ran)

    assert asyncio.run(cell()) == 6
    assert heard
    assert asyncio.run(cell()) == 0


def test_an_interrupt_in_a_notebook_stops_the_work(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)

    def interrupt(event: object) -> None:
        if isinstance(event, StageStarted) and event.stage == "judge":
            raise KeyboardInterrupt

    async def cell() -> None:
        run(project.config, listen=interrupt)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert set(project.manifest()["stages"]) == {"embed", "retrieve", "merge"}
