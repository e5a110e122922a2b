"""What an export cannot hold is said beside it, counted, and nothing that it does hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import make_project

from raggs import load_config, open_golden
from raggs import run as run_config
from raggs.golden.base import GOLDEN_CONTENTS, contents_of
from raggs.golden.formats import EXPORTERS, ExportOptions
from raggs.parts.file_shapes import GradeFormat


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("losses"), queries=3, corpus=30, rank={"top": 4, "max_calls": 3})
    return run_config(load_config(project.config)).store.folder


def sidecar(folder: Path) -> dict:
    (path,) = folder.glob("*meta.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", sorted(each for each in EXPORTERS if not EXPORTERS.load(each).TRAINING))
def test_what_is_not_held_is_lost_and_what_is_read_again_is_what_was_held(name: str, run: Path, tmp_path: Path) -> None:
    golden = open_golden(run)
    contents = contents_of(golden)
    exporter = EXPORTERS.load(name)()
    assert name == exporter.FORMAT and exporter.holds is not None
    exporter.write(golden, tmp_path)
    meta = sidecar(tmp_path)
    lost = {each["part"]: each["count"] + each["kept"] for each in meta["lost"]}
    assert not [each for each in meta["lost"] if each["kept"] and each["part"] not in exporter.kept]
    assert lost == {
        part: contents[part].count for part in GOLDEN_CONTENTS if part not in exporter.holds and contents[part].count
    }
    assert meta["contents"] == {part: vars(stock) for part, stock in contents.items() if stock.count}
    assert (meta["format"], (tmp_path / meta["labels"]).is_file()) == (name, True)
    again = contents_of(open_golden(tmp_path))
    for part in {"grades", "questions", "facts"} & exporter.holds:
        if again[part].count or part == "grades":
            assert again[part] == contents[part], part


def test_yes_and_no_lose_the_grades(run: Path, tmp_path: Path) -> None:
    exporter = EXPORTERS.load("trec")(ExportOptions(GradeFormat("binary")))
    exporter.write(open_golden(run), tmp_path)
    assert "grades" in {each["part"] for each in sidecar(tmp_path)["lost"]}


def test_equal_content_in_any_order_is_told_equal_and_any_change_is_told(golden) -> None:
    from dataclasses import replace

    given = list(golden().by_query())
    before = contents_of(golden(given))
    assert contents_of(golden(given[::-1])) == before
    one = given[0]
    other = (one.grades[0].model_copy(update={"grade": 3, "reason": "because"}), *one.grades[1:])
    after = contents_of(golden([replace(one, grades=other), *given[1:]]))
    assert {part for part in GOLDEN_CONTENTS if before[part] != after[part]} == {"grades", "reasons"}
    assert (before["grades"].count, before["unjudged"].count, before["duplicates"].count) == (9, 1, 1)
    assert (before["order"].count, before["below"].count, before["texts"].count) == (8, 1, 7)


def test_the_command_says_what_is_lost(run: Path, tmp_path: Path) -> None:
    asked = ["export", str(run), "--format", "beir", "--out", str(tmp_path / "out"), "--split", "dev"]
    found = invoke(*asked)
    assert found.exit_code == 0, found.output
    assert (
        "beir does not include:\n" in found.stderr
        and "\n  32  the confidence of each position in the order\n" in found.stderr
    )
    assert (tmp_path / "out" / "qrels" / "dev.tsv").is_file()
    told = json.loads(invoke(*asked, "--json").stdout)
    assert {"part": "confidence", "what": GOLDEN_CONTENTS["confidence"], "count": 32, "kept": 0} in told["lost"]
    assert sidecar(tmp_path / "out")["lost"] == told["lost"]
    asked = ["export", str(run), "--format", "trec", "--out", str(tmp_path / "trec"), "--split", "dev"]
    assert "the format trec has no splits, so --split dev is ignored" in invoke(*asked).stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "bier"], "did you mean 'beir'?"),
        (["--format", "beir", "--split", "../up"], "is not a valid name"),
        (["--format", "trec", "--grades", "binary", "--binary-at", "1"], "--binary-at to 2..5"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_leaves_nothing(
    options: list[str], said: str, run: Path, tmp_path: Path
) -> None:
    found = invoke("export", run, "--out", tmp_path / "out", *options)
    assert found.exit_code == 2
    assert said in found.output and not (tmp_path / "out").exists()
