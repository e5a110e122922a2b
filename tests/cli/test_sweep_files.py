"""A configuration that was given to the wrong command, and the schema of sweep.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import invoke
from support.sweeping import make_sweep


@pytest.mark.parametrize("command", [["run"], ["validate"], ["config", "show"]])
def test_a_sweep_given_to_a_run_says_so(tmp_path: Path, command: list[str]) -> None:
    config = make_sweep(tmp_path).config
    result = invoke(*command, "--config", config)
    assert result.exit_code != 0
    assert "the configuration of a sweep" in result.output.replace("\n", " ")
    assert "raggs sweep --config" in result.output.replace("\n", " ")


def test_a_run_given_to_a_sweep_says_so(tmp_path: Path) -> None:
    (tmp_path / "raggs.yaml").write_text("name: mine\njudge: {judge: {type: qrels, path: qrels.txt}}\n")
    result = invoke("sweep", "--config", tmp_path / "raggs.yaml")
    assert result.exit_code != 0
    assert "the configuration of a run" in result.output.replace("\n", " ")


def test_the_schema_of_a_sweep_fits_what_is_written(tmp_path: Path) -> None:
    result = invoke("schema", "sweep")
    assert result.exit_code == 0, result.output
    schema = json.loads(result.stdout)
    assert schema == json.loads(invoke("schema", "sweep.json").stdout)
    project = make_sweep(tmp_path, axes={"mode": ["lexical"], "k": [10]})
    project.sweep()
    report = json.loads((project.out / "sweep.json").read_text())
    assert set(schema["required"]) <= set(report) <= set(schema["properties"])
