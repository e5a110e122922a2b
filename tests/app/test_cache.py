"""The caches of a workspace: what is counted is what is there, and what is cleared is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.project import make_project

from raggs.app.housekeeping import OTHER_CACHES, clear, survey
from raggs.app.run import run
from raggs.base.cache import CACHE_NOTES, Cache
from raggs.base.errors import DataError, UsageError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    project = make_project(tmp_path, queries=2, corpus=12)
    project.change(retrieve={"retrievers": [{"type": "bm25"}, {"type": "dense"}]})
    run(project.config)
    return project.run.parent


def sizes(workspace: Path) -> dict[str, int]:
    return {part.name: part.entries for part in survey(workspace)}


def test_every_cache_that_a_run_filled_is_counted_and_nothing_lies_beside_them(workspace: Path) -> None:
    found = sizes(workspace)
    assert sorted(found) == sorted(CACHE_NOTES)
    assert all(found[name] > 0 for name in ("corpora", "vectors", "bm25"))
    counted = sum(part.bytes for part in survey(workspace))
    there = sum(path.stat().st_size for path in Cache.of(workspace).folder.rglob("*") if path.is_file())
    assert counted == there


@pytest.mark.parametrize("name", ["corpora", "vectors", "bm25"])
def test_what_is_cleared_is_gone_and_the_rest_stays(workspace: Path, name: str) -> None:
    before = sizes(workspace)
    assert clear(workspace, name) == [name]
    assert sizes(workspace) == {**before, name: 0}
    assert clear(workspace, name) == []


def test_what_earlier_versions_left_is_told_and_cleared(workspace: Path) -> None:
    left = Cache.of(workspace).folder / "bm25-0123456789abcdef"
    left.mkdir()
    (left / "data.npy").write_bytes(b"12345")
    assert {part.name: part.bytes for part in survey(workspace)}[OTHER_CACHES] == 5
    assert clear(workspace, OTHER_CACHES) == [OTHER_CACHES]
    assert OTHER_CACHES not in sizes(workspace)
    assert not left.exists()


def test_all_of_them(workspace: Path) -> None:
    assert set(clear(workspace, "all")) >= {"corpora", "vectors", "bm25"}
    assert not any(sizes(workspace).values())


def test_an_unknown_name_is_told_with_the_nearest(workspace: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'vectors'"):
        clear(workspace, "vector")


@pytest.mark.parametrize("place", ["", ".cache", ".cache/vectors"])
@pytest.mark.parametrize("do", [survey, lambda workspace: clear(workspace, "all")], ids=["stats", "clear"])
def test_a_pipe_where_a_folder_belongs_is_no_empty_cache(do, place: str, tmp_path: Path) -> None:
    path = tmp_path / "runs" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a folder"):
        do(tmp_path / "runs")


@pytest.mark.parametrize("do", [survey, lambda workspace: clear(workspace, "llm")], ids=["stats", "clear"])
def test_a_pipe_in_place_of_the_database_is_refused(do, tmp_path: Path) -> None:
    (tmp_path / ".cache" / "llm").mkdir(parents=True)
    os.mkfifo(tmp_path / ".cache" / "llm" / "cache.db")
    with pytest.raises(DataError, match="is a pipe, not a file"):
        do(tmp_path)
