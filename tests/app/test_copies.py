"""What an audit says of the copies that the cache keeps: passages, lexical indexes, vectors."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from support.project import Project, make_project

from raggs.app.audit import audit
from raggs.app.run import run
from raggs.base.errors import RaggsError


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    other = {"type": "bm25", "name": "other", "k1": 0.9, "k": 3}
    retrievers = [{"type": "bm25", "k": 3}, other, {"type": "dense", "k": 3}]
    folder = tmp_path_factory.mktemp("made")
    project = make_project(folder, queries=2, corpus=30)
    project.change(retrieve={"retrievers": retrievers}, embed={"embedder": {"type": "wordllama", "dims": 64}})
    run(project.config)
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    return finished.copied(tmp_path / "copy")


def found(project: Project) -> list[str]:
    return [str(finding) for finding in audit(project.run).findings]


def cached(project: Project, pattern: str) -> list[Path]:
    return sorted((project.run.parent / ".cache").glob(pattern))


def outside_the_pools(project: Project) -> str:
    """A passage that no artifact of the run names, so that nothing but the store knows its text."""
    pools = (project.run / "merge.jsonl").read_text()
    return next(f"p{number:03}" for number in range(30) if f'"p{number:03}"' not in pools)


def flip(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_undisturbed_copies_are_no_finding(project: Project) -> None:
    assert found(project) == []


def test_a_text_that_was_altered_in_the_passage_store_is_found(project: Project) -> None:
    (store,) = cached(project, "corpora/*/passages.sqlite")
    doc_id = outside_the_pools(project)
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE passages SET text = 'something else' WHERE doc_id = ?", (doc_id,))
    (finding,) = found(project)
    said = "the passage store is damaged (passages.sqlite does not match its recorded checksum); delete the folder"
    assert finding.startswith(f".cache/corpora/{store.parent.name}: {said}")


def test_scores_that_were_altered_are_found_in_each_index_of_the_run(project: Project) -> None:
    places = cached(project, "bm25/*/data.csc.index.npy")
    assert len(places) == 2
    for path in places:
        flip(path)
        assert any(f".cache/bm25/{path.parent.name}: " in each and path.name in each for each in found(project))
    assert len(found(project)) == 2


def test_the_index_of_another_run_is_not_this_runs_lie(project: Project) -> None:
    (first, _) = cached(project, "bm25/bm25-*")
    shutil.copytree(first, first.with_name("bm25-of-another"))
    flip(first.with_name("bm25-of-another") / "data.csc.index.npy")
    assert found(project) == []


def test_vectors_that_were_altered_are_found(project: Project) -> None:
    (path,) = cached(project, "vectors/*/vectors.f32")
    flip(path)
    (finding,) = found(project)
    assert finding.startswith(f".cache/vectors/{path.parent.name}: ") and "vectors.f32 has been altered" in finding


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"content_hash": 1}', "nonsense"])
def test_files_of_an_index_that_are_garbage_are_findings(project: Project, content: str) -> None:
    (header,) = cached(project, "vectors/*/header.json")
    sums = cached(project, "bm25/*/entry.json")[0]
    sums.write_text(content)
    assert any(f".cache/bm25/{sums.parent.name}: " in each for each in found(project))
    header.write_text(content)
    audit(project.run)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(
    "pattern", ["bm25/*/entry.json", "bm25/*/languages.json", "vectors/*/header.json", "vectors/*/*.f32"]
)
def test_a_pipe_among_the_files_of_an_index_is_a_finding_and_no_hang(project: Project, pattern: str) -> None:
    for path in cached(project, pattern):
        path.unlink()
        os.mkfifo(path)
    assert any("is a pipe, not a file" in each for each in found(project))
    with pytest.raises(RaggsError, match=r"pipe|cut short|damaged"):
        run(project.config, only="retrieve", force=True)
