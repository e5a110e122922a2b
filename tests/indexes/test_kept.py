"""An index's file: made once whoever asks, believed only as it was made."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace

import pytest

from raggs.base.errors import ProviderError
from raggs.parts.indexes import files as module
from raggs.parts.indexes.files import IndexBuild, is_made, kept, kept_faults, place_of

WANTED = IndexBuild("hnsw", "sum-of-vectors", 10, 4, {"m": 16, "quantize": None}, "faiss-cpu 1.0")


class Builder:
    def __init__(self, data=b"graph", wait=0.0):
        self.calls, self.data, self.wait = 0, data, wait

    def __call__(self, path):
        self.calls += 1
        time.sleep(self.wait)
        path.write_bytes(self.data)


def test_it_is_made_once(tmp_path):
    build = Builder()
    path, made = kept(tmp_path, WANTED, build)
    assert path.read_bytes() == b"graph"
    assert (made.bytes, made.wanted) == (5, WANTED)
    assert kept(tmp_path, WANTED, build) == (path, made)
    assert build.calls == 1


def test_who_comes_while_it_is_made_waits_and_makes_none(tmp_path):
    build, found = Builder(wait=0.2), []
    threads = [threading.Thread(target=lambda: found.append(kept(tmp_path, WANTED, build))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert build.calls == 1
    assert len({str(each) for each in found}) == 1


@pytest.mark.parametrize(
    "change", [{"settings": {"m": 8}}, {"library": "faiss-cpu 2.0"}, {"rows": 11}, {"kind": "ivf"}, {"dims": 5}]
)
def test_each_kind_has_a_folder_of_its_own(tmp_path, change):
    kept(tmp_path, WANTED, Builder())
    other = replace(WANTED, **change)
    assert not is_made(tmp_path, other)
    kept(tmp_path, other, Builder(b"other"))
    assert place_of(tmp_path, WANTED) != place_of(tmp_path, other)
    assert is_made(tmp_path, WANTED) and is_made(tmp_path, other)


def test_of_other_vectors_it_is_made_again_in_the_same_place(tmp_path):
    kept(tmp_path, WANTED, Builder())
    path, made = kept(tmp_path, replace(WANTED, vectors="other"), Builder(b"other"))
    assert path.read_bytes() == b"other" and made.vectors == "other"
    assert len(list(tmp_path.glob("hnsw-*"))) == 1


def test_a_build_that_fails_leaves_nothing_that_is_read(tmp_path):
    def fail(path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept(tmp_path, WANTED, fail)
    assert not is_made(tmp_path, WANTED)
    assert [file.name for file in place_of(tmp_path, WANTED).iterdir()] == ["lock"]
    path, _ = kept(tmp_path, WANTED, Builder())
    assert {file.name for file in path.parent.iterdir()} == {"index", "header.json", "lock"}


@pytest.mark.parametrize("header", ["", "[]", "{}", '{"kind": 3}', "null", "\xff"])
def test_a_header_that_is_none(tmp_path, header):
    path, made = kept(tmp_path, WANTED, Builder())
    path.with_name("header.json").write_bytes(header.encode("latin-1"))
    assert list(kept_faults(tmp_path)) == [(path.parent, "index is not what was built")]
    assert kept(tmp_path, WANTED, Builder())[1].sum == made.sum
    assert list(kept_faults(tmp_path)) == []


def test_what_was_altered_is_a_fault_and_made_again(tmp_path):
    said = []
    path, _ = kept(tmp_path, WANTED, Builder(), said.append)
    path.write_bytes(b"grapf")
    assert list(kept_faults(tmp_path)) == [(path.parent, "index is not what was built")] and said == []
    kept(tmp_path, WANTED, Builder(), said.append)
    assert path.read_bytes() == b"graph"
    assert said == [f"{path}: not the index that was built, so it is built again"]
    kept(tmp_path, replace(WANTED, vectors="other"), Builder(b"other"), said.append)
    assert len(said) == 1, "the vectors are others: nothing is damaged"


def test_the_header_comes_last(tmp_path, monkeypatch):
    def die(*given, **named):
        raise SystemError("killed")

    monkeypatch.setattr(module, "write_atomic", die)
    with pytest.raises(SystemError):
        kept(tmp_path, WANTED, Builder())
    monkeypatch.undo()
    build = Builder()
    path, _ = kept(tmp_path, WANTED, build)
    assert build.calls == 1 and json.loads(path.with_name("header.json").read_text())["bytes"] == 5


@pytest.mark.skipif(os.name == "nt", reason="a file in the way of a folder is told otherwise there")
def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match="the index cannot be stored"):
        kept(tmp_path / "file", WANTED, Builder())
