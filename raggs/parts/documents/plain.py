"""Text without any marks: what stands in the file is the document."""

from __future__ import annotations

from pathlib import Path

from raggs.parts.documents.base import DocumentReader, Reading, read_text


class TextReader(DocumentReader):
    """Plain text, as it is; it has no headings."""

    HEADINGS = False

    def read(self, path: Path) -> Reading:
        return Reading(read_text(path))
