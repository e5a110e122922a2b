"""An export into the folder of another: what that one wrote and this one does not goes, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.golden import GivenGolden
from support.project import Project, make_project

from raggs import load_config
from raggs import run as run_config
from raggs.app.export import export_run
from raggs.base.artifacts import RetrieveRecord
from raggs.base.types import Notice
from raggs.golden.formats import Exporter, ExportOptions
from raggs.golden.formats.beir import BeirExporter
from raggs.golden.formats.hf import HfExporter
from raggs.golden.formats.trec import TrecExporter
from raggs.runs.manifests.open_run import open_run


@dataclass
class Listed(GivenGolden):
    """With one hit of each of these retrievers."""

    retrievers: tuple[str, ...] = ()

    def hits(self) -> Iterator[RetrieveRecord]:
        for name in self.retrievers:
            yield RetrieveRecord(qid="q1", retriever=name, rank=1, doc_id="d1", score=1.0)


def export(folder: Path, *retrievers: str) -> set[str]:
    TrecExporter().write(Listed("set", 3, (), retrievers=retrievers), folder)
    return {path.name for path in (folder / "runs").glob("*")}


def test_lists_of_retrievers_that_are_no_more_go(tmp_path: Path) -> None:
    assert export(tmp_path, "bm25", "dense", "a/b") == {"bm25.trec", "dense.trec", "a%2Fb.trec"}
    assert export(tmp_path, "dense", "new") == {"dense.trec", "new.trec"}
    assert export(tmp_path, "dense", "new") == {"dense.trec", "new.trec"}


def test_a_foreign_list_stays_also_under_a_name_of_ours(tmp_path: Path) -> None:
    export(tmp_path, "bm25", "dense", "third", "linked")
    runs, mine = tmp_path / "runs", "q1 Q0 d9 1 2.0 mine\n"
    (runs / "mine.trec").write_text(mine)
    (runs / "dense.trec").write_text(mine)
    (runs / "third.trec").write_text((runs / "third.trec").read_text() + "q2 Q0 d1 1 1.0 raggs-third\n")
    (runs / "linked.trec").rename(tmp_path / "elsewhere.trec")
    (runs / "linked.trec").symlink_to(tmp_path / "elsewhere.trec")
    assert export(tmp_path, "new") == {"mine.trec", "dense.trec", "third.trec", "linked.trec", "new.trec"}
    assert (runs / "dense.trec").read_text() == mine


@pytest.mark.parametrize("name", ["../victim.trec", "runs/../victim.trec", "victim.trec", "runs/deep/victim.trec"])
def test_a_sidecar_that_names_files_elsewhere_moves_nothing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    export(folder, "bm25")
    (folder / "runs" / "deep").mkdir()
    victim = folder / name
    victim.write_text("q1 Q0 d1 1 1.0 raggs-x\n")
    sidecar = folder / "qrels.txt.meta.json"
    meta = json.loads(sidecar.read_text())
    meta["files"][name] = {"rows": 1}
    sidecar.write_text(json.dumps(meta))
    export(folder, "dense")
    assert victim.exists()
    assert not (folder / "runs" / "bm25.trec").exists()


@pytest.mark.parametrize("content", ["", "[]", '{"files": 1}', '{"files": {"qrels.txt": 0, "runs/bm25.trec": []}}'])
def test_without_a_sidecar_that_says_so_nothing_goes(tmp_path: Path, content: str) -> None:
    export(tmp_path, "bm25")
    (tmp_path / "qrels.txt.meta.json").write_text(content)
    assert export(tmp_path, "dense") == {"bm25.trec", "dense.trec"}


@pytest.mark.parametrize("kind", [BeirExporter, HfExporter])
def test_another_split_takes_the_place_of_the_last_one(kind: type[Exporter], golden: Any, tmp_path: Path) -> None:
    def export(split: str) -> set[str]:
        kind(ExportOptions(split=split)).write(golden(), tmp_path)
        return {path.stem for path in (tmp_path / "qrels").iterdir()}

    assert export("test") == {"test"}
    assert export("dev") == {"dev"}
    (dev,) = (tmp_path / "qrels").iterdir()
    dev.write_text(dev.read_text() + "mine\n")
    assert export("test") == {"dev", "test"}, "it is no longer what raggs wrote"


def test_lists_that_stay_are_named(tmp_path: Path) -> None:
    project: Project = make_project(tmp_path, queries=2, corpus=20)
    folder = run_config(load_config(project.config), stop="judge").store.folder
    out, told = tmp_path / "out", []
    export_run(open_run(folder), "trec", out)
    (out / "runs" / "mine.trec").write_text("q00 Q0 p001 1 1.0 mine\n")
    export_run(open_run(folder), "trec", out, hear=told.append)
    said = [news.message for news in told if isinstance(news, Notice)]
    assert [each for each in said if "mine.trec" in each and "was not removed" in each], said
    assert not any("bm25.trec" in each for each in said)
