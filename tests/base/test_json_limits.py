"""JSON from anybody: what cannot be kept or written again is a sentence with its line, at each entrance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import make_project

from raggs.base.errors import ConfigError, DataError
from raggs.base.jsonl import MAX_JSON_DEPTH, MAX_NUMBER_CHARS, decode_json
from raggs.config.load import load_config
from raggs.evaluation.gates import read_report
from raggs.evaluation.samples import open_samples
from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus
from raggs.parts.queries.formats import CsvQueries, CsvQueriesConfig, JsonlQueries, JsonlQueriesConfig
from raggs.parts.run_files import read_labels, read_run

ATTACKS = {
    "300 lists": ("[" * 300 + "]" * 300, "levels deep"),
    "300 objects": ('{"a":' * 300 + "1" + "}" * 300, "levels deep"),
    "100,000 lists": ("[" * 100_000 + "]" * 100_000, "levels deep"),
    "1e999": ("1e999", "too large for a number"),
    "-1e999": ("-1e999", "too large for a number"),
    "a long float": ("9" * 400 + ".0", "too large for a number"),
    "400 digits": ("4" * 400, "a number of 400 characters"),
    "5,000 digits": ("4" * 5000, "a number of 5,000 characters"),
    "NaN": ("NaN", "NaN is not a JSON number"),
    "Infinity": ("-Infinity", "-Infinity is not a JSON number"),
}


def corpus(path: Path, value: str) -> object:
    path.write_text(
        '{"_id": "a", "text": "x"}\n{"_id": "b", "text": "x", "metadata": {"m": %s}}\n'.replace("%s", value)
    )
    return list(JsonlCorpus(JsonlConfig(path=path)).passages())


def queries(path: Path, value: str) -> object:
    path.write_text('{"_id": "a", "text": "x"}\n{"_id": "b", "text": "x", "m": %s}\n'.replace("%s", value))
    return list(JsonlQueries(JsonlQueriesConfig(path=path)).queries())


def table(path: Path, value: str) -> object:
    path.write_text('_id,text,nuggets\nb,x,"%s"\n'.replace("%s", value.replace('"', '""')))
    return list(CsvQueries(CsvQueriesConfig(path=path)).queries())


def outputs(path: Path, value: str) -> object:
    samples = path.with_name("samples.yaml")
    samples.write_text("samples: [{id: a, expected_output: [d]}, {id: b, expected_output: [d]}]")
    path.write_text(
        '{"id": "a", "output": ["d"]}\n{"id": "b", "output": {"retrieved": ["d"], "m": %s}}\n'.replace("%s", value)
    )
    return open_samples(samples, path)


def output_as_text(path: Path, value: str) -> object:
    samples = path.with_name("samples.yaml")
    samples.write_text("samples: [{id: a, expected_output: [d]}, {id: b, expected_output: [d]}]")
    inner = json.dumps('{"retrieved": ["d"], "m": %s}'.replace("%s", value))
    path.write_text('{"id": "a", "output": ["d"]}\n{"id": "b", "output": %s}\n'.replace("%s", inner))
    return open_samples(samples, path)


LINES: dict[str, tuple[Callable[[Path, str], object], int]] = {
    "corpus": (corpus, 2),
    "queries": (queries, 2),
    "table": (table, 2),
    "outputs": (outputs, 2),
    "output as text": (output_as_text, 2),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("entrance", LINES)
def test_a_line_is_named(attack: str, entrance: str, tmp_path: Path) -> None:
    read, line = LINES[entrance]
    value, said = ATTACKS[attack]
    with pytest.raises(DataError, match=f"{said}|larger than field limit") as caught:
        read(tmp_path / "x.jsonl", value)
    assert caught.value.line == line
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("attack", ATTACKS)
def test_samples_as_json(attack: str, tmp_path: Path) -> None:
    value, _ = ATTACKS[attack]
    path = tmp_path / "samples.json"
    path.write_text('{"samples": [{"id": "a", "expected_output": {"d": %s}}]}'.replace("%s", value))
    with pytest.raises(DataError, match=r"samples\.json"):
        open_samples(path, path)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_run_as_json(attack: str, tmp_path: Path) -> None:
    value, _ = ATTACKS[attack]
    path = tmp_path / "run.json"
    path.write_text('{"q": {"d": %s}}'.replace("%s", value))
    with pytest.raises(DataError, match=r"run\.json"):
        read_run(path)
    with pytest.raises(DataError, match=r"run\.json"):
        list(read_labels(path))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_earlier_report(attack: str, tmp_path: Path) -> None:
    value, _ = ATTACKS[attack]
    path = tmp_path / "eval.json"
    path.write_text('{"v": 1, "analyses": {"x": {"y": %s}}}'.replace("%s", value))
    with pytest.raises(DataError, match=r"eval\.json"):
        read_report(path)


def test_the_limits_are_where_they_are_said_to_be() -> None:
    assert decode_json("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)
    with pytest.raises(ValueError, match="64 levels"):
        decode_json("[" * (MAX_JSON_DEPTH + 1) + "]" * (MAX_JSON_DEPTH + 1))
    assert decode_json("[" + ",".join(["[]"] * 100) + "]")
    assert decode_json("9" * MAX_NUMBER_CHARS) == int("9" * MAX_NUMBER_CHARS)


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize(
    "setting",
    ["retrieve.retrievers.0.k", "rank.max_calls", "rank.top", "prune.max_keep", "budget.max_calls", "judge.samples"],
)
@pytest.mark.parametrize("value", [2**63, -(2**63), 10**30, 10**99])
def test_a_setting_beyond_64_bits(setting: str, value: int, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3)
    with pytest.raises(ConfigError, match=f"--set {setting}: {setting}"):
        load_config(project.config, [f"{setting}={value}"], {})


@pytest.mark.parametrize("value", [2**63 - 1, 2**62, 2**32, 2**31])
def test_a_large_k_finds_all(value: int, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    sets = [f"retrieve.retrievers.{number}.k={value}" for number in (0, 1)]
    command = ["run", "--config", str(project.config), "--quiet", "--to", "merge"]
    result = invoke(*command, *(part for one in sets for part in ("--set", one)))
    assert result.exit_code in (0, 5), (result.stderr, result.exception)
    assert len((project.run / "merge.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize("k", ["9" * 20, "9" * 90, "1e30"])
def test_a_sample_whose_k_is_beyond_64_bits(k: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("samples: [{id: a, expected_output: [d], metadata: {k: %s}}]".replace("%s", k))
    (tmp_path / "o.jsonl").write_text('{"id": "a", "output": ["d"]}\n')
    with pytest.raises(DataError, match="sample a: k is"):
        open_samples(tmp_path / "s.yaml", tmp_path / "o.jsonl")
