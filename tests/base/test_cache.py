"""Results that are kept: found by whoever looks, made once whoever asks, believed only as they were made."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from raggs.base import cache as module
from raggs.base.artifacts import Query
from raggs.base.cache import KEYS_PER_STATEMENT, Cache, CacheTable
from raggs.base.errors import ProviderError


def test_what_is_put_is_found_by_whoever_looks(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "kept.sqlite"
    assert CacheTable(file).find(["a"]) == {} and not file.exists(), "looking writes nothing"
    CacheTable(file).put({"a": b"1", "b": b"2"})
    CacheTable(file).put({"b": b"3"})
    assert CacheTable(file).find(["b", "c", "a", "a"]) == {"a": b"1", "b": b"3"}


def test_many_keys_are_looked_up(tmp_path: Path) -> None:
    kept = CacheTable(tmp_path / "kept.sqlite")
    rows = {str(number): bytes([number % 256]) for number in range(2 * KEYS_PER_STATEMENT + 1)}
    kept.put(rows)
    assert kept.find(rows) == rows


def test_a_damaged_file_and_a_folder_that_cannot_be_are_told(tmp_path: Path) -> None:
    kept = CacheTable(tmp_path / "kept.sqlite")
    kept.file.write_bytes(b"no database, but long enough to be looked at " * 10)
    with pytest.raises(ProviderError, match="delete it"):
        kept.find(["a"])
    with pytest.raises(ProviderError):
        CacheTable(kept.file / "below.sqlite").put({"a": b""})


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rows SET value = x'32' WHERE key = 'a'",
        "UPDATE rows SET value = 'text' WHERE key = 'a'",
        "UPDATE rows SET sum = NULL WHERE key = 'a'",
        "UPDATE rows SET (value, sum) = (SELECT value, sum FROM rows WHERE key = 'b') WHERE key = 'a'",
    ],
)
def test_a_row_that_is_not_what_was_put_is_told_and_not_found(tmp_path: Path, change: str) -> None:
    said = list[str]()
    kept = CacheTable(tmp_path / "kept.sqlite", said.append)
    kept.put({"a": b"1", "b": b"2"})
    with sqlite3.connect(kept.file) as database:
        database.execute(change)
    assert kept.find(["a", "b"]) == {"b": b"2"}
    assert said == [f"{kept.file}: 1 row changed since raggs stored it, so the results are computed again"]
    kept.put({"a": b"1"})
    assert kept.find(["a", "b"]) == {"a": b"1", "b": b"2"} and len(said) == 1


# --- rows ---


def test_rows_are_made_once_and_read_as_they_were_kept(tmp_path: Path) -> None:
    cache, rows = Cache(tmp_path / "rows"), [Query(qid="q1", text="one"), Query(qid="q2", text="two")]
    assert not cache.has(["a"]) and not cache.folder.exists(), "looking writes nothing"
    assert cache.get(["a"], Query, lambda: rows) == rows
    assert cache.get(["a"], Query, list) == rows and cache.has(["a"])
    assert cache.find(["b"], Query) is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 9])
def test_a_file_of_rows_that_is_not_what_was_kept_is_told_and_made_again(tmp_path: Path, data: bytes) -> None:
    said = list[str]()
    cache = Cache(tmp_path, said.append)
    cache.keep(["a"], [Query(qid="q1", text="one")])
    cache.keep(["b"], [Query(qid="q1", text="other")])
    one, other = sorted(tmp_path.iterdir())
    one.write_bytes(data or other.read_bytes())
    found = [cache.find([name], Query) for name in "ab"]
    assert found.count(None) == 1
    assert said == [f"{one}: changed since raggs stored it, so it is ignored and computed again"]


# --- files ---


class Builder:
    def __init__(self, data: bytes = b"graph", wait: float = 0.0) -> None:
        self.calls, self.data, self.wait = 0, data, wait

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        time.sleep(self.wait)
        (folder / "index").write_bytes(self.data)


def test_files_are_made_once(tmp_path: Path) -> None:
    build, cache = Builder(), Cache(tmp_path)
    assert not cache.has_files("hnsw")
    made = cache.files("hnsw", "vectors", build, "the index")
    assert (made.path / "index").read_bytes() == b"graph"
    assert made.bytes == 5 and cache.has_files("hnsw")
    assert cache.files("hnsw", "vectors", build, "the index") == made
    assert build.calls == 1


def test_who_comes_while_it_is_made_waits_and_makes_none(tmp_path: Path) -> None:
    build, found, cache = Builder(wait=0.2), list[object](), Cache(tmp_path)
    threads = [
        threading.Thread(target=lambda: found.append(cache.files("hnsw", "vectors", build, "the index")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert build.calls == 1
    assert len({str(each) for each in found}) == 1


def test_of_other_causes_it_is_made_again_in_the_same_place(tmp_path: Path) -> None:
    said = list[str]()
    cache = Cache(tmp_path, said.append)
    cache.files("hnsw", "vectors", Builder(), "the index")
    made = cache.files("hnsw", "others", Builder(b"other"), "the index")
    assert (made.path / "index").read_bytes() == b"other"
    assert len(list(tmp_path.iterdir())) == 1 and said == [], "nothing is damaged"


def test_a_build_that_fails_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "index").write_bytes(b"half")
        raise KeyboardInterrupt

    cache = Cache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.files("hnsw", "vectors", fail, "the index")
    assert not cache.has_files("hnsw")
    assert [file.name for file in (tmp_path / "hnsw").iterdir()] == ["lock"]
    place = cache.files("hnsw", "vectors", Builder(), "the index").path
    assert {file.name for file in place.iterdir()} == {"index", "entry.json", "lock"}


@pytest.mark.parametrize("header", ["", "[]", "{}", '{"causes": 3}', "null", "\xff"])
def test_a_header_that_is_none(tmp_path: Path, header: str) -> None:
    cache = Cache(tmp_path)
    place = cache.files("hnsw", "vectors", Builder(), "the index").path
    (place / "entry.json").write_bytes(header.encode("latin-1"))
    assert list(cache.faults()) == [(place, "entry.json is missing or damaged")]
    assert cache.files("hnsw", "vectors", build := Builder(), "the index").bytes == 5 and build.calls == 1
    assert list(cache.faults()) == []


@pytest.mark.parametrize("settled", [True, False])
def test_what_was_altered_is_a_fault_and_made_again(
    tmp_path: Path, settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TICK_NS", 0 if settled else 10**12)
    said = list[str]()
    cache = Cache(tmp_path, said.append)
    for _ in range(2):
        place = cache.files("hnsw", "vectors", Builder(), "the index").path
    assert (place / "verified.json").exists() == settled
    times = (place / "index").stat()
    (place / "index").write_bytes(b"grapf")
    os.utime(place / "index", ns=(times.st_atime_ns, times.st_mtime_ns))  # a copy that keeps the time
    assert list(cache.faults()) == [(place, "index does not match its recorded checksum")] and said == []
    cache.files("hnsw", "vectors", Builder(), "the index")
    assert (place / "index").read_bytes() == b"graph"
    assert said == [f"{place}: the index is damaged (index does not match its recorded checksum), so it is built again"]


def test_a_file_that_is_missing_or_too_many_is_a_fault(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    place = cache.files("hnsw", "vectors", Builder(), "the index").path
    (place / "more").write_bytes(b"1")
    assert list(cache.faults()) == [(place, "more is not recorded")]
    (place / "more").unlink()
    (place / "index").unlink()
    assert list(cache.faults("hnsw")) == [(place, "index is missing")]
    assert cache.files("hnsw", "vectors", Builder(), "the index").bytes == 5


def test_the_header_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*given: object, **named: object) -> None:
        raise SystemError("killed")

    cache = Cache(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(SystemError):
        patch.setattr(module, "write_atomic", die)
        cache.files("hnsw", "vectors", Builder(), "the index")
    build = Builder()
    place = cache.files("hnsw", "vectors", build, "the index").path
    assert build.calls == 1 and list(json.loads((place / "entry.json").read_text())["files"]) == ["index"]


@pytest.mark.skipif(os.name == "nt", reason="a file in the way of a folder is told otherwise there")
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match="the index cannot be stored"):
        Cache(tmp_path / "file").files("hnsw", "vectors", Builder(), "the index")
