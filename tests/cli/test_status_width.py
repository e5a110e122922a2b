"""What status says fits a narrow terminal; only a command is never broken, but where a shell reads on."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from support.cli import call
from support.project import make_project

COMMANDS = ("raggs ", "next: raggs ", "      raggs ", "  or: raggs ")


@pytest.mark.parametrize("width", [80, 60])
def test_status_fits_the_terminal(tmp_path: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    label = {"type": "qrels", "path": "qrels.txt"}
    cascade = {"type": "cascade", "judges": [{**label, "grade_noise": 0.3}, label], "samples": 2}
    project = make_project(
        tmp_path, judge={"judge": cascade, "stop_after": 3, "samples": 2}, rank={"budget": {"calls": 9}}
    )
    call("run", "--config", project.config, "-q")
    project.change(retrieve={"retrievers": [{"type": "bm25", "k": 9}]})
    wide = call("status", project.run, "--details", "--config", project.config).stdout
    monkeypatch.setattr(
        "raggs.cli.render.open_console", lambda: Console(force_terminal=True, width=width, color_system=None)
    )
    for flags in ((), ("--config", project.config)):
        told = call("status", project.run, "--details", *flags).stdout
        long = [line for line in told.splitlines() if len(line) > width and not line.startswith(COMMANDS)]
        assert long == []
        assert not any("&&" in line.rstrip().removesuffix("&&") for line in told.splitlines()), (
            "what is too long is parted"
        )
    assert "cascade: the good judge graded" in " ".join(told.split()), "nothing is cut"
    assert any(len(line) > 80 for line in wide.splitlines()), "where nobody looks at a width, lines stay whole"
