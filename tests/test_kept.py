"""Bytes by key in one file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from raggs.base.errors import ProviderError
from raggs.base.stores import ASKED, StoredFile


def test_what_is_put_is_found_by_whoever_looks(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "kept.sqlite"
    assert StoredFile(file, "").find(["a"]) == {} and not file.exists(), "looking writes nothing"
    StoredFile(file, "").put({"a": b"1", "b": b"2"})
    StoredFile(file, "").put({"b": b"3"})
    assert StoredFile(file, "").find(["b", "c", "a", "a"]) == {"a": b"1", "b": b"3"}


def test_many_keys_are_looked_up(tmp_path: Path) -> None:
    kept = StoredFile(tmp_path / "kept.sqlite", "")
    rows = {str(number): bytes([number % 256]) for number in range(2 * ASKED + 1)}
    kept.put(rows)
    assert kept.find(rows) == rows


def test_a_damaged_file_and_a_folder_that_cannot_be_are_told(tmp_path: Path) -> None:
    kept = StoredFile(tmp_path / "kept.sqlite", "choose another")
    kept.file.write_bytes(b"no database, but long enough to be looked at " * 10)
    with pytest.raises(ProviderError, match="delete it"):
        kept.find(["a"])
    with pytest.raises(ProviderError):
        StoredFile(kept.file / "below.sqlite", "choose another").put({"a": b""})


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
    kept = StoredFile(tmp_path / "kept.sqlite", "", said.append)
    kept.put({"a": b"1", "b": b"2"})
    with sqlite3.connect(kept.file) as database:
        database.execute(change)
    assert kept.find(["a", "b"]) == {"b": b"2"}
    assert said == [f"{kept.file}: 1 row is not what raggs stored there, so what was kept is made again"]
    kept.put({"a": b"1"})
    assert kept.find(["a", "b"]) == {"a": b"1", "b": b"2"} and len(said) == 1
