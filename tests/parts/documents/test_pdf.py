"""PDF: pages as text, what is broken or locked is named, and what is missing is said with its command."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pdf import make_pdf

from raggs.base.errors import DataError, PrerequisiteError
from raggs.parts.documents import pdf
from raggs.parts.documents.pdf import PdfReader


def test_pages_follow_each_other_and_their_places_are_known(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make_pdf("Café one.\nMore.", "", "Page three."))
    found = PdfReader().read(path)
    assert found.text == "Café one.\nMore.\n\n\n\nPage three."
    assert [found.text[start:][:4] for start in found.pages] == ["Café", "\n\nPa", "Page"]
    assert found.text[found.pages[2] :] == "Page three."


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4\nnothing", b"<html>", b"\x00" * 99])
def test_what_is_no_pdf_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a readable PDF") as caught:
        PdfReader().read(path)
    assert caught.value.where == str(path)


def test_without_its_package_the_command_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "find_spec", lambda name: None)
    assert PdfReader().missing() == 'pip install ".[pdf]" in a clone of raggs'
    with pytest.raises(PrerequisiteError, match=r"a\.pdf") as caught:
        PdfReader().read(tmp_path / "a.pdf")
    assert caught.value.remedy == 'pip install ".[pdf]" in a clone of raggs'
