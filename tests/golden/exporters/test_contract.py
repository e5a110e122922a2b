"""What every exporter owes, whatever its format."""

import csv
import errno
import inspect
import io
import json
import os

import pytest

from raggs.base.errors import ProviderError
from raggs.golden.formats import EXPORTERS

pytestmark = pytest.mark.parametrize("name", sorted(EXPORTERS))


class Broken:
    """Queries whose reading breaks after the first one, each time."""

    def __init__(self, queries):
        self._first = next(iter(queries))

    def __iter__(self):
        yield self._first
        raise RuntimeError("the stream broke")


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_it_says_what_it_writes(name):
    assert inspect.getdoc(EXPORTERS.load(name)) and len(EXPORTERS.summary(name)) < 80


def test_the_folder_is_made_and_the_files_are_those_announced(name, golden, tmp_path):
    folder = tmp_path / "deep" / "out"
    files = EXPORTERS.load(name)().write(golden(), folder)
    assert sorted(path.relative_to(folder).as_posix() for path in files) == sorted(contents(folder))
    for path in (each for each in files if each.suffix != ".parquet" and each.stat().st_size):
        assert path.read_bytes().endswith(b"\n") and b"\r" not in path.read_bytes()


def test_equal_input_gives_equal_bytes(name, golden, tmp_path):
    for part in ("a", "b", "b"):
        EXPORTERS.load(name)().write(golden(), tmp_path / part)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_provenance_stands_beside_the_data(name, golden, tmp_path):
    files = EXPORTERS.load(name)().write(golden(), tmp_path)
    (sidecar,) = [path for path in files if path.name.endswith("meta.json")]
    meta = json.loads(sidecar.read_text())
    assert meta["provenance"] == golden().provenance.model_dump() and meta["provenance"]["judge"] == {"model": "été"}
    assert meta["name"] == "my test" and meta["grades"]["minimum"] == (1 if name == "jsonl" else 0)
    for file, facts in ((name, each) for name, each in meta["files"].items() if not name.endswith(".parquet")):
        assert facts["rows"] == rows_of(tmp_path / file)


def rows_of(path):
    text = path.read_text()
    if path.suffix == ".csv":
        return len(list(csv.reader(io.StringIO(text, newline="")))) - 1
    if path.suffix != ".json":
        return text.count("\n") - (path.suffix == ".tsv")
    found = json.loads(text)
    return len(found) if isinstance(found, list) else sum(map(len, found.values()))


def test_a_broken_stream_leaves_the_old_files(name, golden, tmp_path):
    EXPORTERS.load(name)().write(golden(), tmp_path)
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match="the stream broke"):
        EXPORTERS.load(name)().write(golden(Broken(golden().by_query())), tmp_path)
    assert contents(tmp_path) == before


def test_an_unwritable_folder_is_one_sentence(name, golden, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ProviderError, match="cannot be written") as caught:
        EXPORTERS.load(name)().write(golden(), tmp_path / "file" / "out")
    assert "file/out" in str(caught.value) and caught.value.remedy


def test_a_full_disk_is_one_sentence(name, golden, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ProviderError, match=r"No space left.*free some space"):
        EXPORTERS.load(name)().write(golden(), tmp_path)
    assert contents(tmp_path) == {}


def test_an_empty_golden_set_is_an_empty_export(name, golden, tmp_path):
    files = EXPORTERS.load(name)().write(golden(()), tmp_path)
    assert all(path.exists() for path in files)
