"""What an export holds comes back as it was, and what does not come back is what the export said it would lose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import make_project
from support.rich import rich_golden

from raggs import load_config, open_golden
from raggs import run as run_config
from raggs.app.export import import_set
from raggs.base.errors import UsageError
from raggs.golden import formats
from raggs.golden.base import GOLDEN_CONTENTS, contents_of
from raggs.golden.formats import ExportOptions
from raggs.parts.file_shapes import GradeFormat

BOTH = sorted({*formats.EXPORTERS} & {*formats.IMPORTERS})


def test_each_format_that_is_read_is_written() -> None:
    assert sorted(formats.IMPORTERS) == BOTH
    assert all(name == formats.IMPORTERS.load(name).FORMAT for name in BOTH)


@pytest.mark.parametrize("name", BOTH)
def test_what_does_not_come_back_is_what_was_said_to_be_lost(name: str, tmp_path: Path) -> None:
    golden = rich_golden()
    contents = contents_of(golden)
    assert all(contents[part].count for part in GOLDEN_CONTENTS), "the set must have some of every part"
    exporter = formats.EXPORTERS.load(name)()
    exporter.write(golden, tmp_path / "out")
    done = import_set(tmp_path / "out", None, tmp_path / "back")
    assert done.format == name
    came = {each.part: each.came for each in done.through}
    lost = {loss.part: loss.kept for loss in exporter.losses(contents)}
    assert {each.part: each.count for each in done.through if each.part in lost} == lost, "as many as were promised"
    assert {part for part in GOLDEN_CONTENTS if came[part] == "whole"} == {*GOLDEN_CONTENTS} - lost.keys()
    assert {part for part in lost if came[part] != "lost"} <= {"texts"}, "the texts of what counts may come"
    again = import_set(tmp_path / "back", None, tmp_path / "twice")
    assert {each.part: (each.came, each.count) for each in again.through} == {
        each.part: ("whole", each.count) for each in done.through if each.count
    }
    assert open_golden(tmp_path / "back").judgments().digest == golden.judgments().digest


def test_an_export_is_read_as_what_it_is(tmp_path: Path) -> None:
    formats.EXPORTERS.load("ranx")().write(rich_golden(), tmp_path / "out")
    for place in (tmp_path / "out", tmp_path / "out" / "qrels.json"):
        with pytest.raises(UsageError, match=r"is an export to ranx, not to trec.*--format ranx"):
            import_set(place, "trec", tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("name", BOTH)
def test_grades_without_an_order_come_back(name: str, tmp_path: Path) -> None:
    golden = rich_golden()
    formats.EXPORTERS.load(name)().write(golden, tmp_path / "out")
    golden.given, golden.top = [replace(query, order=()) for query in golden.given], 0
    formats.EXPORTERS.load(name)().write(golden, tmp_path / "out")
    came = {each.part: each.came for each in import_set(tmp_path / "out", None, tmp_path / "back").through}
    assert came["grades"] == "whole" and not {"order", "below", "confidence"} & came.keys()


def test_binary_labels_come_back_as_labels_and_not_as_grades(tmp_path: Path) -> None:
    formats.EXPORTERS.load("trec")(ExportOptions(GradeFormat("binary"))).write(rich_golden(), tmp_path / "out")
    done = import_set(tmp_path / "out", "trec", tmp_path / "back")
    came = {each.part: each.came for each in done.through}
    assert (came["grades"], came["order"], came["lists"]) == ("changed", "whole", "whole")
    read, back = (open_golden(tmp_path / place).judgments().qrels for place in ("out", "back"))
    assert sorted(read.grade.tolist()) == sorted(back.grade.tolist()) == [0, 0, 0, 1, 1, 1]
    assert read.scale == back.scale


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("run"), queries=2, corpus=20, rank={"top": 3, "max_calls": 2})
    return run_config(load_config(project.config)).store.folder


@pytest.mark.parametrize("name", BOTH)
def test_a_run_is_evaluated_as_before(name: str, run: Path, tmp_path: Path) -> None:
    assert invoke("export", run, "-f", name, "-o", tmp_path / "out").exit_code == 0
    told = invoke("import", tmp_path / "out", "-o", tmp_path / "back")
    assert "unchanged:\n" in told.stderr and "  grades from 1 to 5\n" in told.stderr
    found = invoke("import", tmp_path / "out", "-o", tmp_path / "back", "--json")
    assert found.exit_code == 0, found.output
    through = {each["part"]: each for each in json.loads(found.stdout)["through"]}
    assert through["grades"]["came"] == "whole" and through["grades"]["count"] == through["grades"]["before"] > 0
    assert "changed" not in {each["came"] for each in through.values()}
    refused = invoke("import", run, "-o", tmp_path / "never")
    assert refused.exit_code == 2 and "is a run of raggs" in refused.output
    scores = []
    for golden in (run, tmp_path / "back"):
        told = invoke("eval", "-g", golden, "-r", run, "-m", "nDCG@10,P@5", "--json")
        assert told.exit_code == 0, told.output
        scores.append(json.loads(told.stdout)["per_query"])
    assert scores[0] == scores[1]
    assert json.loads((tmp_path / "back" / "golden.jsonl.meta.json").read_text())["provenance"]["run"] == "demo"
