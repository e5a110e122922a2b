"""Logs in the formats they come in, and what no log is."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.parts.queries.logs import read_log


def entries(path: Path, data: str | bytes, column: str | None = None) -> list[tuple[int, str | None]]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(read_log(path, column))


def test_lines_of_a_text_file(tmp_path: Path) -> None:
    assert entries(tmp_path / "a.txt", "\ufeffone\n\ntwo\r\n") == [(1, "one\n"), (3, "two\r\n")]
    assert entries(tmp_path / "a.log.gz", gzip.compress(b"one\n")) == [(1, "one\n")]


def test_one_column_of_a_table(tmp_path: Path) -> None:
    table = 'who,question\nme,"a\nb"\nyou,c\nshe\n'
    assert entries(tmp_path / "a.csv", table) == [(2, "a\nb"), (4, "c"), (5, None)]
    assert entries(tmp_path / "a.csv", table, "who")[0] == (2, "me")
    assert entries(tmp_path / "a.tsv", "search\na, b\n") == [(2, "a, b")]
    assert entries(tmp_path / "a.csv.gz", gzip.compress(table.encode()))[1] == (4, "c")


def test_one_field_of_json_lines(tmp_path: Path) -> None:
    lines = '{"query": "a", "user": "me"}\n{"user": "you"}\n{"query": 3}\n'
    assert entries(tmp_path / "a.jsonl", lines) == [(1, "a"), (2, None), (3, None)]
    assert entries(tmp_path / "a.jsonl", lines, "user") == [(1, "me"), (2, "you"), (3, None)]


@pytest.mark.parametrize(
    ("name", "data", "column", "told"),
    [
        ("a.csv", "who,what\nme,a\n", None, "set --column to one of: who, what"),
        ("a.csv", "who,what\nme,a\n", "waht", "did you mean 'what'"),
        ("a.csv", 'text\n"a', None, "not valid CSV"),
        ("a.csv", b"text\n\xff\n", None, "a.csv:2: not UTF-8"),
        ("a.txt", b"ok\n\xff\n", None, "a.txt:2: not UTF-8"),
        ("a.jsonl", '{"who": "me"}\n', None, "set --column to one of: who"),
        ("a.jsonl", "[]\n", None, "a.jsonl:1: not a JSON object"),
        ("a.txt", "a\n", "text", "has one text per line, not columns"),
        ("a.pdf", "a\n", None, "unknown log format"),
        ("a.txt.gz", "a\n", None, "cannot be read"),
    ],
)
def test_what_is_no_log_is_one_sentence(
    tmp_path: Path, name: str, data: str | bytes, column: str | None, told: str
) -> None:
    with pytest.raises((DataError, UsageError, NotFoundError)) as caught:
        entries(tmp_path / name, data, column)
    assert told in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(DataError, match="is a pipe"):
        list(read_log(tmp_path / "a.txt"))
    with pytest.raises(NotFoundError):
        list(read_log(tmp_path / "b.csv"))
