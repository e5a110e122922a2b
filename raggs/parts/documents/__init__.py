"""Document readers: base class and registry. A reader converts a file to text; the file's suffix selects the reader.

If the format has sections, the reader also returns the blocks of the text. Spans of passages are character offsets in
this text. For plain text, Markdown and rst, the text is the file's content, without a byte order mark. For HTML and
PDF, it is extracted. A reader does not modify the file, follow links or execute content.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from raggs.base.errors import DataError
from raggs.base.files import read_whole
from raggs.base.registry import Registry, installed, package_of
from raggs.base.settings import Causes
from raggs.base.types import Json

BlockKind = Literal["heading", "text", "code", "table", "list"]
ENCODING_REMEDY = "convert the file to UTF-8, or exclude it with corpus.exclude"


@dataclass(frozen=True)
class Block:
    """A top-level block of a document.

    Attributes:
        start, end: character offsets.
        kind: type of the block; "text" if it is not recognised.
        level, title: level (1 is the top) and text without markup, only for headings.
        items: offsets at which the items of a list start.
    """

    start: int
    end: int
    kind: BlockKind = "text"
    level: int = 0
    title: str = ""
    items: tuple[int, ...] = ()


@dataclass(frozen=True)
class DocumentContent:
    """Content of a file.

    Attributes:
        text: text to which spans refer.
        begin: offset of the first character that may be in a passage; text before it is front matter.
        blocks: function that returns the blocks of ``text[begin:]``, with offsets relative to `begin`; None if the
            document has no sections.
        title: title of the whole document, above all of its sections.
        name: title of passages outside of all sections; if empty, the file's path below the folder is used.
        unmarked: whether the text lacks the markup of its headings.
        pages: offset at which each page starts.
        metadata: metadata in the document.
        warning: problem in the metadata, worded to follow the file's name in a message.
        line: line of the problem.
    """

    text: str
    begin: int = 0
    blocks: Callable[[], Sequence[Block]] | None = None
    title: str = ""
    name: str = ""
    unmarked: bool = False
    pages: tuple[int, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    warning: str = ""
    line: int = 0


class DocumentReader(ABC):
    """Reads files of one format. `raggs list documents` prints the first line of the subclass's docstring."""

    VERSION: ClassVar[int] = 1  # increased when a change of the reader's code affects a text or its sections
    PACKAGES: ClassVar[tuple[str, ...]] = ()  # packages whose versions may affect the result
    EXTRACTS: ClassVar[bool] = False  # whether the text is extracted, so that the versions of PACKAGES affect it
    HEADINGS: ClassVar[bool] = True  # whether documents may have headings, at which they are split by default
    # whether the versions of PACKAGES affect the sections, and the corpus does not record them otherwise
    SECTIONS: ClassVar[bool] = False

    def missing(self) -> str | None:
        """Return the command that installs a missing package; None if nothing is missing."""
        return None

    def causes(self) -> Causes:
        """Return what affects the result apart from the file."""
        found = {name: installed(name) for name in self.PACKAGES}
        if package := package_of(type(self)):
            found[package.name] = package.version
        return {"version": self.VERSION, "packages": found}

    def marks(self, path: Path) -> Sequence[str]:
        """Return markers for changes of the reader that affect this file; they are part of the corpus hash."""
        return ()

    @abstractmethod
    def read(self, path: Path) -> DocumentContent:
        """Return the content of the file.

        Raises:
            NotFoundError: the file cannot be read.
            DataError: the content does not match the suffix, or is not UTF-8.
            PrerequisiteError: a package is missing.
        """


def read_text(path: Path) -> str:
    """Return the text of a file; line ends are not translated, so that offsets stay correct.

    Raises:
        NotFoundError: the file cannot be read.
        DataError: it is not a regular file, or its content is binary or not UTF-8.
    """
    return decode_text(read_whole(path), path)


def decode_text(data: bytes, path: Path) -> str:
    """Return the text of a file's bytes.

    Raises:
        DataError: the bytes are binary, or not UTF-8.
    """
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise DataError("not a text file", where=path, line=line, remedy=ENCODING_REMEDY)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError("not UTF-8", where=path, line=line, remedy=ENCODING_REMEDY) from error


def fill_gaps(text: str, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks in order, and a text block for each gap with text before, between or after them."""
    end = 0
    for block in blocks:
        if text[end : block.start].strip():
            yield Block(end, block.start)
        yield block
        end = block.end
    if text[end:].strip():
        yield Block(end, len(text))


REGISTRY: Registry[DocumentReader] = Registry(
    "format of documents",
    "documents",
    "raggs.parts.documents:DocumentReader",
    {
        "htm": "raggs.parts.documents.html:HtmlReader",
        "html": "raggs.parts.documents.html:HtmlReader",
        "markdown": "raggs.parts.documents.markdown:MarkdownReader",
        "md": "raggs.parts.documents.markdown:MarkdownReader",
        "pdf": "raggs.parts.documents.pdf:PdfReader",
        "rst": "raggs.parts.documents.markdown:RstReader",
        "txt": "raggs.parts.documents:TextReader",
    },
)


class TextReader(DocumentReader):
    """Plain text, unchanged and without headings."""

    HEADINGS = False

    def read(self, path: Path) -> DocumentContent:
        return DocumentContent(read_text(path))
