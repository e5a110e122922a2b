"""Files of documents as texts, by their suffix: one file and one line a format (see `DocumentReader`).

What a reader of documents is: a file in, its text out, with what stands where in it.

The text that a reader gives is the source: places of passages count its characters. Of a file that is text itself (txt,
Markdown, rst) it is the file's, character for character; of HTML and PDF it is what was extracted. A reader changes
nothing in the file, follows no address, runs nothing that the file holds, and gives the same text again.

Text without any marks: what stands in the file is the document.
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
ENCODING_REMEDY = "convert it to UTF-8, or leave it out by corpus.exclude"


@dataclass(frozen=True)
class Block:
    """A block of the document's own level.

    Attributes:
        start, end: its characters.
        kind: what it is; whatever is not told apart is text.
        level, title: of a heading: 1 for the topmost, and its words without marks.
        items: where the items of a list begin.
    """

    start: int
    end: int
    kind: BlockKind = "text"
    level: int = 0
    title: str = ""
    items: tuple[int, ...] = ()


@dataclass(frozen=True)
class DocumentContent:
    """What a file says.

    Attributes:
        text: the source, in which places count.
        begin: its first character that belongs to a passage: what stands before it is about the document.
        blocks: makes the blocks of ``text[begin:]``, with places that count from `begin`; None: it has no sections.
        title: of the whole document, above all of its sections.
        name: what a passage outside of all sections is called; empty: by its file.
        unmarked: whether nothing in the text tells its headings.
        pages: where each page begins.
        metadata: what the document says about itself.
        warning: what was not understood of that, in words that follow the file's name; `line`: where.
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
    """Reads files of one format. The first line of its docstring is its line in `raggs list documents`."""

    VERSION: ClassVar[int] = 1  # raised when the reader's own code changes a text or its sections
    PACKAGES: ClassVar[tuple[str, ...]] = ()  # whose installed versions can change what comes out
    EXTRACTS: ClassVar[bool] = False  # whether the text is not the file's own, so that those versions change it
    HEADINGS: ClassVar[bool] = True  # whether documents may have headings, and are cut there unless a chunker is named
    SECTIONS: ClassVar[bool] = False  # whether they can change its sections, unless the corpus counts that itself

    def missing(self) -> str | None:
        """The command that installs what it lacks; None where it lacks nothing."""
        return None

    def causes(self) -> Causes:
        """What can change what it reads, besides the file."""
        found = {name: installed(name) for name in self.PACKAGES}
        if package := package_of(type(self)):
            found[package.name] = package.version
        return {"version": self.VERSION, "packages": found}

    def marks(self, path: Path) -> Sequence[str]:
        """What of the way this file is read has changed since it was first read as text; enters the corpus' hash."""
        return ()

    @abstractmethod
    def read(self, path: Path) -> DocumentContent:
        """The file's text.

        Raises:
            NotFoundError: it cannot be read.
            DataError: it is not what its suffix says, or not UTF-8.
            PrerequisiteError: a package is missing.
        """


def read_text(path: Path) -> str:
    """A file's text, character for character (line ends are not translated, so that places stay true).

    Raises:
        NotFoundError: it cannot be read.
        DataError: it is no file, binary, or not UTF-8.
    """
    return decode_text(read_whole(path), path)


def decode_text(data: bytes, path: Path) -> str:
    """The text of a file's bytes.

    Raises:
        DataError: binary, or not UTF-8.
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
    """Blocks in order, and what lies between them as blocks of text."""
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
    """Plain text, as it is; it has no headings."""

    HEADINGS = False

    def read(self, path: Path) -> DocumentContent:
        return DocumentContent(read_text(path))
