"""`raggs list measures`: everything about each measure, for people and for programs."""

from __future__ import annotations

import json

import pytest
from support.cli import invoke

from raggs.metrics.measures import REGISTRY


def listed(*arguments: str) -> str:
    result = invoke("list", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_tells_of_each_measure_in_three_lines() -> None:
    lines = listed("measures").splitlines()
    assert len(lines) == 3 * len(list(REGISTRY)) + 2
    for measure, row, summary, note in zip(
        map(REGISTRY.load, REGISTRY), lines[1:-1:3], lines[2:-1:3], lines[3:-1:3], strict=True
    ):
        assert row.split()[0].startswith(measure.NAME)
        assert row.split()[2] == ("higher" if measure.HIGHER else "lower")
        assert (row.split()[3] == "known") == measure.TIES
        assert all(name in row for name in measure.PARAMS)
        assert summary == f"    {(measure.__doc__ or '').partition(chr(10))[0]}"
        assert note == f"    {measure.FORMULA}  [{measure.SOURCE}]"


def test_json_has_all_of_it() -> None:
    found = json.loads(listed("measures", "--json"))["measures"]
    assert list(found) == list(REGISTRY)
    for name, measure in ((name, REGISTRY.load(name)) for name in REGISTRY):
        entry = found[name]
        assert (entry["formula"], entry["source"], entry["ties"]) == (measure.FORMULA, measure.SOURCE, measure.TIES)
        assert entry["parameters"] == {name: parameter.usual for name, parameter in measure.PARAMS.items()}
        assert entry["summary"] == (measure.__doc__ or "").partition("\n")[0]
    assert found["net_utility"]["range"] == [None, 1.0]
    assert found["harm"]["better"] == "lower"


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_measures_stand_among_everything_else(arguments: list[str]) -> None:
    text = listed(*arguments)
    assert "measures" in text
    assert "Average precision over the relevant passages." in text
