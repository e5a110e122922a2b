"""`raggs judge check`: on the screen, as files, as JSON, and where there is nothing to compare."""

from __future__ import annotations

import json
from pathlib import Path

from support.project import environment, make_project, raggs
from support.reviewing import speak


def test_a_judge_is_checked(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=8, rank={"max_calls": 2})
    raggs("run", "--config", project.config, "-q")
    nothing = raggs("judge", "check", project.run)
    assert nothing.returncode != 0
    assert "no blind human label" in nothing.stderr
    assert "Traceback" not in nothing.stderr
    speak(project.run, tmp_path / "reviews", lambda _, grade: grade, reads=lambda each: each.rank <= 10)
    said = raggs("judge", "check", project.run, "--out", tmp_path / "out", "--details", env=environment(COLUMNS="80"))
    assert said.returncode == 0, said.stderr
    assert "usable for comparing systems: yes (kappa at least 0.4)" in said.stdout
    assert "Agreement by rank in the pool" not in said.stdout, "one group says nothing"
    longer = ("usable", "root mean squared error", "note", "kappa  ", "/", "next: ")
    tables = [line for line in said.stdout.splitlines() if not line.startswith(longer)]
    assert max(map(len, tables)) <= 80, max(tables, key=len)
    assert (tmp_path / "out" / "check.md").is_file()
    found = json.loads(raggs("judge", "check", project.run, "--json").stdout)
    assert found["whole"]["exact"]["value"] == 1.0
    wrote = raggs("judge", "check", project.run, "--calibration", tmp_path / "map.json", "--details")
    assert "this map of grades does not help" in wrote.stdout
    assert str(tmp_path / "map.json") in wrote.stdout
    said = json.loads((tmp_path / "map.json").read_text())
    assert (said["judges"], len(said["expected"])) == (["qrels qrels.txt"], 5)
