"""What `raggs questions` says where there is no run, or another one is at work: its own commands."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock
from support.asking import make_config
from support.cli import invoke


def test_remedies_name_the_command_that_was_called(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    said = invoke("questions", "--config", config, "--partial")
    assert said.exit_code == 4
    assert "create a run with raggs questions --config CONFIG" in said.stderr
    folder = tmp_path / "runs" / "demo.questions"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        said = invoke("questions", "--config", config)
    assert said.exit_code != 0
    assert "--set name=NAME" in said.stderr
    assert "--run-id" not in said.stderr
    other = invoke("questions", "--config", config, "--set", "name=other")
    assert other.exit_code == 0, other.stderr
    assert (tmp_path / "runs" / "other.questions").is_dir()
    wrong = invoke("judge", "check", tmp_path / "runs" / "other.questions")
    assert wrong.exit_code == 2
    assert (
        "this is a questions run, which has no artifact queries — use a golden run; create one with raggs run"
        in wrong.stderr
    )
