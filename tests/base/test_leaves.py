"""The leaves: errors, hashes, seeds, atomic files, JSON lines, settings."""

from __future__ import annotations

import errno
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base import errors
from raggs.base.artifacts import JournalRecord, Query
from raggs.base.errors import DataError, NotFoundError, ProviderError, RaggsError
from raggs.base.files import atomic_writer, disk, hash_file, remove_leftovers, write_atomic
from raggs.base.hashing import canonical_json, derive_seed, generator, hash_bytes, hash_value
from raggs.base.jsonl import dump_line, read_objects, read_records, read_torn, write_records, write_routed
from raggs.base.settings import AddedLater, Effort, InputPath, Settings, causes_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def entry(slot: int) -> JournalRecord:
    return JournalRecord(qid="q1", state="s", engine="online/1", round=0, slot=slot, shown=("a", "b"), order=("b", "a"))


# --- errors ---


def test_every_error_is_drawn_in_the_tree_with_its_exit_code() -> None:
    drawn = errors.__doc__ or ""
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, RaggsError) and kind is not RaggsError:
            line = next(line for line in drawn.splitlines() if f" {name} " in line)
            assert f" {kind.exit_code} " in line


def test_an_error_names_place_and_remedy() -> None:
    error = DataError("a grade of 7", where="qrels.txt", line=12, remedy="grades are 1 to 5")
    assert str(error) == "qrels.txt:12: a grade of 7 — grades are 1 to 5"


# --- hashing and seeds ---


@given(json_values)
def test_equal_values_have_equal_hashes_whatever_the_order_of_their_keys(value: object) -> None:
    again = json.loads(json.dumps(value))
    assert hash_value(again) == hash_value(value)
    assert json.loads(canonical_json(value)) == again


def test_file_and_bytes_hash_alike(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "f").write_bytes(data)
    assert hash_file(tmp_path / "f") == hash_bytes(data)


def test_seeds_depend_on_names_and_on_nothing_else() -> None:
    assert derive_seed(1, "rank", "q1") == derive_seed(1, "rank", "q1")
    assert (
        len({derive_seed(seed, *names) for seed in (1, 2) for names in (("a", "b"), ("ab",), ("a",), ("b", "a"))}) == 8
    )
    script = "from raggs.base.hashing import generator; print(generator(3, 'x').integers(1 << 60))"
    there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(there) == generator(3, "x").integers(1 << 60)


# --- atomic files ---


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_atomic(target, b"old")
    with pytest.raises(RuntimeError), atomic_writer(target) as file:
        file.write(b"new")
        raise RuntimeError
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_files_have_the_permissions_of_any_other_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_killed_write_leaves_the_old_file_and_a_leftover_that_can_be_removed(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_atomic(target, b"old")
    script = (
        "import os, sys; from pathlib import Path; from raggs.base.files import atomic_writer\n"
        "with atomic_writer(Path(sys.argv[1])) as file:\n"
        "    file.write(b'new'); file.flush(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert done.returncode == -9
    assert target.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    remove_leftovers(tmp_path / "none")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(errno.EACCES, "choose another"), (errno.EROFS, "choose another"), (errno.ENOSPC, "free some space")],
)
def test_what_a_disk_refuses_is_one_sentence_and_one_exit_code(tmp_path: Path, code: int, remedy: str) -> None:
    with pytest.raises(ProviderError) as caught, disk(tmp_path / "a", "choose another"):
        raise OSError(code, os.strerror(code))
    assert str(caught.value).startswith(f"{tmp_path / 'a'}: cannot be written ({os.strerror(code)}) — {remedy}")
    assert caught.value.exit_code == 6


# --- JSON lines ---


def test_records_round_trip_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = write_records(path, [entry(0), entry(1)])
    assert list(read_records(path, JournalRecord)) == [entry(0), entry(1)]
    assert (written.rows, written.size, written.sha256) == (2, path.stat().st_size, hash_file(path))
    assert len(written.line_sums) == 8


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'{"_id": "a"}\n{oops}\n', 2, "not valid JSON"),
        (b'{"_id": "a"}\n\n[1]\n', 3, "not a JSON object"),
        (b'{"_id": "a"}\n{"_id": "\xff"}\n', 2, "not UTF-8"),
        (b'{"x": NaN}\n', 1, "NaN"),
        (b'\n{"x": -Infinity}\n', 2, "-Infinity"),
        (b'\xef\xbb\xbf{"_id": "a"}\n \nnull\n', 3, "not a JSON object"),
        (b'{"_id": "a"}\n' + b"[" * 100_000 + b"\n", 2, "not valid JSON"),
        (b'{"_id": "a"}\n{"_id": "b"} {}\n', 2, r"not valid JSON \(Extra data: line 1 column 14"),
        (b'{"_id": "a"}\n{"_id": "b"', 2, "not valid JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: bytes, line: int, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        list(read_objects(path))
    assert caught.value.line == line
    assert caught.value.where == str(path)


def test_objects_come_with_the_numbers_of_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"_id": "a"}\r\n\n  \n{"_id": "b", "n": [1, null]}')
    assert list(read_objects(path)) == [(1, {"_id": "a"}), (4, {"_id": "b", "n": [1, None]})]


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        list(read_objects(tmp_path / "none.jsonl"))


def test_a_torn_last_line_is_dropped_and_any_other_fault_is_told(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    assert list(read_torn(path, JournalRecord, "delete it")) == []
    whole = dump_line(entry(0)) + dump_line(entry(1))
    for cut in range(len(whole) // 2, len(whole)):
        path.write_bytes(whole[:cut])
        assert list(read_torn(path, JournalRecord, "delete it")) == [entry(0)]
    path.write_bytes(b"{}\n" + whole)
    with pytest.raises(DataError) as caught:
        list(read_torn(path, JournalRecord, "delete it"))
    assert caught.value.line == 1


# --- settings ---


class Inner(Settings):
    type: Literal["x"] = "x"
    path: InputPath
    workers: Effort[int] = 4


class Outer(Settings):
    parts: tuple[Inner, ...]
    k: int = 3
    new: AddedLater[Inner | None] = None


def test_a_setting_that_came_later_does_not_count_at_its_default(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    inner = Inner(path=tmp_path / "a")
    before = causes_of(Outer(parts=(inner,)))
    assert set(before) == {"parts", "k"}
    assert causes_of(Outer(parts=(inner,), new=None)) == before
    assert causes_of(Outer(parts=(inner,), new=inner)) == {**before, "new": causes_of(inner)}


def test_effort_and_paths_do_not_count_but_content_does(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("one")
    first = causes_of(Outer(parts=(Inner(path=tmp_path / "a"),)))
    assert causes_of(Outer(parts=(Inner(path=tmp_path / "b", workers=9),))) == first
    (tmp_path / "b").write_text("two")
    assert causes_of(Outer(parts=(Inner(path=tmp_path / "b"),))) != first


def test_identifiers_have_no_white_space() -> None:
    with pytest.raises(ValueError, match="pattern"):
        Query(qid="a b", text="x")


def test_each_record_goes_to_the_file_of_its_class(tmp_path: Path) -> None:
    query = Query(qid="q1", text="why?")
    places: dict[type, Path] = {JournalRecord: tmp_path / "journal.jsonl", Query: tmp_path / "queries.jsonl"}
    journal, queries = write_routed(places, [entry(0), query, entry(1)])
    assert list(read_records(places[JournalRecord], JournalRecord)) == [entry(0), entry(1)]
    assert list(read_records(places[Query], Query)) == [query]
    assert (journal.rows, queries.rows) == (2, 1)
    assert queries.sha256 == hash_file(places[Query])


def test_nothing_appears_when_one_of_several_files_fails(tmp_path: Path) -> None:
    def broken() -> Iterator[Query]:
        yield Query(qid="q1", text="why?")
        raise DataError("no more")

    with pytest.raises(DataError):
        write_routed({Query: tmp_path / "queries.jsonl", JournalRecord: tmp_path / "journal.jsonl"}, broken())
    assert list(tmp_path.iterdir()) == []
