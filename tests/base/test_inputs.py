"""Files of users: what is no file, has no end, or has too much in it, is a sentence and never a wait."""

from __future__ import annotations

import csv
import gzip
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from raggs.base.errors import DataError, NotFoundError, RaggsError
from raggs.base.files import hash_file, read_lines, read_whole, regular_file, table_rows
from raggs.base.files import read_text as read_questions
from raggs.base.jsonl import raw_lines, read_objects
from raggs.config.load import load_config
from raggs.evaluation.gates import read_report
from raggs.evaluation.samples import open_samples
from raggs.llm.client import stored_key
from raggs.parts.corpora import hash_source
from raggs.parts.documents import read_text


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def sock(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


READERS: dict[str, Callable[[Path], object]] = {
    "lines": lambda path: list(read_lines(path)),
    "whole": read_whole,
    "raw lines": lambda path: list(raw_lines(path)),
    "objects": lambda path: list(read_objects(path)),
    "hash": hash_file,
    "corpus hash": hash_source,
    "file of a folder": read_text,
    "questions": read_questions,
    "config": load_config,
    "report": read_report,
    "samples": lambda path: open_samples(path, path),
    "regular": regular_file,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("make", "name"), [(fifo, "a pipe"), (sock, "a socket"), (device, "a device")])
def test_what_is_no_file_is_refused(
    reader: str, make: Callable[[Path], Path], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"is {name}, not a file"):
        READERS[reader](make(Path("x.yaml")))


@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("regular", "hash")])
def test_a_path_with_a_nul_is_a_sentence(reader: str) -> None:
    with pytest.raises(RaggsError, match="null"):
        READERS[reader](Path("a\0b"))


def test_a_key_that_is_a_pipe(tmp_path: Path) -> None:
    fifo(tmp_path / "fence.key")
    with pytest.raises(DataError, match=r"fence\.key: is a pipe"):
        stored_key(tmp_path)


def test_a_file_may_lie_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert list(read_lines(tmp_path / "b")) == [b"x\n"]
    assert regular_file(tmp_path / "none") == tmp_path / "none"


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_whole(tmp_path / "a", 5) == b"12345"
    with pytest.raises(DataError, match="more than 4 bytes"):
        read_whole(tmp_path / "a", 4)


def test_a_line_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12\n123456\n12\n")
    assert len(list(read_lines(tmp_path / "a", 7))) == 3
    with pytest.raises(DataError, match="a:2: a line of more than 6 bytes"):
        list(read_lines(tmp_path / "a", 6))


def test_an_archive_made_to_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.base.files.MIN_UNPACK_LIMIT_BYTES", 1 << 16)
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        for _ in range(1000):
            file.write((b" " * 999 + b"\n") * 10)
    with pytest.raises(DataError, match="unpacks to more than 200 times"):
        list(read_lines(tmp_path / "a.gz"))
    with gzip.open(tmp_path / "line.gz", "wb") as file:
        file.write(b"0" * 50_000)
    with pytest.raises(DataError, match=r"line.gz:1: a line of more than 1,000 bytes"):
        list(read_lines(tmp_path / "line.gz", 1000))


@pytest.mark.parametrize("end", [b"", gzip.compress(b"the end", mtime=0)], ids=["alone", "before another"])
def test_an_archive_of_blank_lines_is_refused_long_before_its_end(
    end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raggs.base.files.FREE_LINES", 1000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\n" * 1_000_000) + end)
    size, read = (tmp_path / "a.gz").stat().st_size, 0
    with pytest.raises(DataError, match="unpacks to more than 8 lines per byte"):
        for _ in read_lines(tmp_path / "a.gz"):
            read += 1
    assert read == max(1000, 8 * size)


def test_a_line_is_not_read_beyond_what_an_archive_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.base.files.MIN_UNPACK_LIMIT_BYTES", 1 << 16)
    (tmp_path / "a.gz").write_bytes(b"".join([gzip.compress(b"0" * 1_000_000)] * 30))
    monkeypatch.setattr("raggs.base.files.RATIO", 1)
    with pytest.raises(DataError, match="unpacks to more than 1 times its size"):
        list(read_lines(tmp_path / "a.gz"))


def test_a_broken_archive_and_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x\n" * 1000)[:-12])
    with pytest.raises(NotFoundError, match=r"cannot be read .*not a complete gzip archive"):
        list(read_lines(tmp_path / "a.gz"))
    with pytest.raises(NotFoundError, match="no such file"):
        list(read_lines(tmp_path / "none"))


def test_too_few_handles_are_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "open", full)
    for read in (READERS["lines"], read_whole, hash_source):
        with pytest.raises(RaggsError, match="too many files are open — raise the limit") as caught:
            read(tmp_path)
        assert caught.value.exit_code == 6


def test_a_long_cell_in_one_table_leaves_the_limit_of_others_alone(tmp_path: Path) -> None:
    usual, long = csv.field_size_limit(), "x" * 200_000
    assert list(table_rows(f"a,b\n\n1,{long}\n", tmp_path / "t.csv")) == [(1, ["a", "b"]), (3, ["1", long])]
    assert csv.field_size_limit() == usual
    with pytest.raises(DataError, match="not valid CSV") as caught:
        list(table_rows('a\n"b', tmp_path / "t.csv"))
    assert caught.value.line == 2
    assert csv.field_size_limit() == usual
