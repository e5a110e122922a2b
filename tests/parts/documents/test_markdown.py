"""Markdown files: the text is the file's, front matter stands apart, and which files say so in a corpus' hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.parts.documents.markdown import MarkdownReader


def test_the_text_is_the_files_and_what_it_says_about_itself_stands_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes("\ufeff---\r\ntitle: A\r\nx: 1\r\n---\r\n# B\r\n\r\nwords\r\n".encode())
    found = MarkdownReader().read(path)
    assert found.text == "---\r\ntitle: A\r\nx: 1\r\n---\r\n# B\r\n\r\nwords\r\n"
    assert found.text[found.begin :].startswith("# B")
    assert (found.title, found.metadata, found.warning) == ("A", {"x": 1}, "")
    assert found.blocks is not None
    assert [(block.kind, block.start) for block in found.blocks()] == [("heading", 0), ("text", 7)]


@pytest.mark.parametrize(
    ("content", "marks"),
    [("---\n", 1), ("+++\n", 1), ("\ufeff---", 1), ("# A", 0), ("", 0), ("--", 0), ("\n---\n", 0)],
)
def test_only_what_may_have_front_matter_is_told_apart(tmp_path: Path, content: str, marks: int) -> None:
    path = tmp_path / "a.md"
    path.write_text(content)
    assert len(MarkdownReader().marks(path)) == marks
