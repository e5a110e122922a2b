"""PDF as text, page by page, by PDFium (pypdfium2).

Pages that consist of images, such as scans, yield no text. The parts of a word that is hyphenated at a line end are
joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.files import read_whole
from raggs.base.text import replace_surrogates
from raggs.parts.documents import DocumentContent, DocumentReader

PACKAGE = "pypdfium2"
INSTALL = 'pip install ".[pdf]" in a clone of raggs'
HYPHEN = re.compile("[\ufffe\x02]\n?")
PAGE_SEPARATOR = "\n\n"  # between two pages


class PdfReader(DocumentReader):
    """PDF files: the text of all pages."""

    PACKAGES = (PACKAGE,)
    EXTRACTS = True
    HEADINGS = False

    def missing(self) -> str | None:
        return None if find_spec(PACKAGE) else INSTALL

    def read(self, path: Path) -> DocumentContent:
        if self.missing():
            raise PrerequisiteError(f"{path}: PDF files need {PACKAGE}", remedy=INSTALL)
        pages = list(_pages(read_whole(path), path))
        starts = accumulate((len(page) + len(PAGE_SEPARATOR) for page in pages[:-1]), initial=0)
        return DocumentContent(PAGE_SEPARATOR.join(pages), pages=tuple(starts) if pages else ())


def _pages(data: bytes, path: Path) -> Iterator[str]:
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(data)
        try:
            for number in range(len(document)):
                yield _clean(document[number].get_textpage().get_text_range())
        finally:
            document.close()
    except PdfiumError as error:
        remedy = "repair the file, remove its password, or exclude it with corpus.exclude"
        raise DataError(f"not a readable PDF ({error})", where=path, remedy=remedy) from error


def _clean(text: str) -> str:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return replace_surrogates(HYPHEN.sub("", plain)).strip()
