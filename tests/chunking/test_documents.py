"""Documents of a folder, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.errors import DataError, NotFoundError
from raggs.chunking.documents import Documents, read_documents


def test_they_are_read_character_for_character(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes("é\r\nb".encode())
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "empty.txt").write_text(" \n")
    found = read_documents(tmp_path)
    assert (found.names, found.texts, found.lengths) == (("a.txt", "b.md"), ("a", "é\r\nb"), [1, 4])


def test_a_name_without_ending_is_one_document_or_none() -> None:
    found = Documents(Path("docs"), ("a.md", "a.txt", "sub/b.md"), ("", "", ""))
    assert [found.number(name) for name in ("a.md", "a", "sub/b", "b")] == [0, None, 2, None]


def test_a_folder_without_text_or_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" ")
    with pytest.raises(DataError, match="no document with text"):
        read_documents(tmp_path)
    with pytest.raises(NotFoundError):
        read_documents(tmp_path / "none")


def test_a_file_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\n\xff")
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8"):
        read_documents(tmp_path)


def test_what_a_folder_leaves_out_is_known(tmp_path: Path) -> None:
    for name, text in {"a.md": "words", "b.md": "---\nx: 1\n---\n", "c.docx": "x"}.items():
        (tmp_path / name).write_text(text)
    found = read_documents(tmp_path)
    assert found.names == ("a.md",)
    assert found.notes == ("skipped 1 file: 1 .docx (no reader: c.docx)", "1 file without text skipped: b.md")
