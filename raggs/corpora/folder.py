"""A folder of documents, each cut into passages: whole paragraphs, or as a chunker says.

A passage's id is the file's path below the folder (white space and ``%`` percent-encoded, so that ids stay unique) and
the number of the passage in the file. Its span tells the place: ``text == source[start:end]``, in characters of the
text that the file's reader gives (see `raggs.documents`), which of a text file is the file's; with ``breadcrumb: text``
the path of its sections stands before that. What a document says about itself before it begins is in no passage.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, Field, model_validator

from raggs import documents
from raggs.adapter import AdapterConfig
from raggs.artifacts import Passage, Span
from raggs.chunkers.base import Chunk, Chunker, ChunkerConfig, Document
from raggs.chunkers.cutting import trimmed
from raggs.chunkers.outline import Outline
from raggs.chunkers.paid import PaidChunker
from raggs.chunkers.paragraphs import heading_of
from raggs.corpora.base import SHOWN, LeftOut, hash_source
from raggs.corpora.cut import MAX_WORDS, ChunkerSpec, CutCorpus, refuse_two_sizes
from raggs.corpora.listing import Listing, list_files, reader_of, tell
from raggs.documents.base import Reading
from raggs.errors import RaggsError
from raggs.hashing import hash_value
from raggs.registry import installed
from raggs.settings import Causes, Later, SourcePath
from raggs.text import plural


def _relative(pattern: str) -> str:
    path = PurePath(pattern)
    if not path.parts or path.is_absolute() or any("**" in part and part != "**" for part in path.parts):
        raise ValueError(f"{pattern!r} is not a pattern of file names, such as *.md")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]
Breadcrumb = Literal["title", "text", "none"]
BETWEEN = " > "
ONCE = ("*.txt", "*.md")  # what all suffixes meant when these were all


class FolderConfig(AdapterConfig):
    type: Literal["folder"] = "folder"
    path: SourcePath = Field(description="the folder")
    patterns: tuple[Pattern, ...] | None = Field(
        None, min_length=1, description="which files, at any depth; null: all that raggs list documents names"
    )
    exclude: Later[tuple[Pattern, ...]] = Field((), description="files and folders that are left out all the same")
    max_words: int = Field(MAX_WORDS, ge=20, description="words a passage holds at most, where no chunker is named")
    chunker: Later[ChunkerSpec | None] = Field(
        None, description="how files are cut; null: whole paragraphs of up to `max_words` words"
    )
    breadcrumb: Later[Breadcrumb | None] = Field(
        None,
        description="where the path of a passage's sections stands (Guide > Install > Linux): in its title, before its "
        "text, or nowhere; null: in its title, and without a chunker the file's first heading instead",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        refuse_two_sizes(self.chunker, self.max_words)
        return self

    def recut(self, chunker: ChunkerConfig) -> FolderConfig:
        """The same folder, cut in another way."""
        return self.model_copy(update={"chunker": chunker, "max_words": MAX_WORDS})


class FolderCorpus(CutCorpus):
    """Text, Markdown, rst, HTML and PDF files below a folder, cut into passages."""

    Config = FolderConfig
    config: FolderConfig

    def __init__(self, config: AdapterConfig) -> None:
        super().__init__(config)
        self._warnings: list[str] = []

    @property
    def place(self) -> Path:
        return self.config.path

    @property
    def named(self) -> ChunkerConfig | None:
        return self.config.chunker

    def source_hash(self) -> str:
        """Over the files that count: their paths below the folder and their bytes."""
        return hash_value(
            [[file_id(name), hash_source(path), *reader_of(path).marks(path)] for name, path in self._listing().files]
        )

    def causes(self) -> Causes:
        """Its own, the chunker's, and the readers' where texts or breadcrumbs come from them."""
        found = {**self.own_causes(), **({"patterns": list(ONCE)} if self.config.patterns is None else {})}
        if self.config.chunker is not None:
            found["chunker"] = self._chunker.causes()
        if self._crumbs not in (None, "none"):
            found["markdown"] = installed("markdown-it-py")
        readers = self._readers()
        return {**found, "readers": readers} if readers else found

    def outside(self) -> list[str]:
        """Files that are left out, by reason."""
        return [tell(skipped)] if (skipped := self._listing().skipped) else []

    def notes(self) -> list[str]:
        """Files without text, and front matter that was not understood."""
        found = []
        if self.left_out:
            named = ", ".join(each.doc_id for each in self.left_out[:SHOWN])
            more = ", …" if len(self.left_out) > SHOWN else ""
            found.append(f"{plural(len(self.left_out), 'file')} without text left out: {named}{more}")
        if self._warnings:
            more = f"; and {len(self._warnings) - SHOWN:,} more" if len(self._warnings) > SHOWN else ""
            found.append(f"front matter not understood and left out: {'; '.join(self._warnings[:SHOWN])}{more}")
        return found

    def passages(self) -> Iterator[Passage]:
        """See `Corpus.passages`; file after file by path, each with its span."""
        self.cutting_s = None if isinstance(self._chunker, PaidChunker) else 0.0  # its cuts are looked up
        for source, reading in self._read():
            number = 0
            for number, passage in enumerate(self._cut(reading, source), start=1):  # noqa: B007
                yield passage
            if not number:
                self.left_out.append(LeftOut(source, 1))

    def documents(self) -> Iterator[Document]:
        """Every file whole; see `CutCorpus.documents`."""
        for source, reading in self._read():
            document = _document(reading, source)
            if not document.body.text.strip():
                self.left_out.append(LeftOut(source, 1))
            yield document

    def _read(self) -> Iterator[tuple[str, Reading]]:
        self.left_out.clear()
        self._warnings.clear()
        for name, path in self._listing().files:
            source, reading = file_id(name), reader_of(path).read(path)
            if reading.warning:
                self._warnings.append(f"{source}:{reading.line}: {reading.warning}")
            yield source, reading

    def _cut(self, reading: Reading, source: str) -> Iterator[Passage]:
        """The passages of one file."""
        text, titles = reading.text, self._titles(reading, source)
        for number, chunk in enumerate(self._timed(_document(reading, source)), start=1):
            start, end = trimmed(text, (chunk.start, chunk.end))
            crumb = titles(start, end)
            above = f"{crumb}\n\n" if self._crumbs == "text" and crumb else ""
            page = {"page": bisect_right(reading.pages, start)} if reading.pages else {}
            yield Passage(
                doc_id=f"{source}#{number}",
                title=crumb if self._crumbs in (None, "title") else "",
                text=above + text[start:end],
                span=Span(source=source, start=start, end=end),
                metadata={**page, **reading.metadata},
            )

    def _timed(self, document: Document) -> Iterator[Chunk]:
        """The chunks of a document, with the time that cutting takes added up."""
        chunks = self._chunker.chunk(document)
        while True:
            began = time.perf_counter()
            chunk = next(chunks, None)
            if self.cutting_s is not None:
                self.cutting_s += time.perf_counter() - began
            if chunk is None:
                return
            yield chunk

    def _titles(self, reading: Reading, source: str) -> Callable[[int, int], str]:
        """What a place in a file is called: by its sections, or by the document's name where it has none."""
        if self._crumbs == "none":
            return lambda *_: ""
        name = reading.title or reading.name or source
        if self._crumbs is None:
            heading = heading_of(reading.text[reading.begin :]) if reading.heading is None else reading.heading
            title = reading.title or heading or name
            return lambda *_: title
        if reading.blocks is None:
            return lambda *_: name
        outline, begin = Outline(reading.blocks()), reading.begin
        return lambda start, end: BETWEEN.join(_rooted(reading.title, outline.path(start - begin, end - begin))) or name

    @property
    def _crumbs(self) -> Breadcrumb | None:
        """Where breadcrumbs stand; None for the file's first heading as everybody's title."""
        return self.config.breadcrumb or (None if self.config.chunker is None else "title")

    @cached_property
    def _chunker(self) -> Chunker:
        return self.cutter(self.config.max_words)

    def _listing(self) -> Listing:
        """
        Raises:
            NotFoundError: the folder is not there.
            DataError: no file fits.
        """
        return list_files(self.config.path, self.config.patterns, self.config.exclude)

    def _readers(self) -> Causes:
        """What can change the texts of the files that are there, or their sections, by suffix."""
        try:
            files = self._listing().files
        except RaggsError:
            return {}  # whoever reads the folder will say so better
        named = {path.suffix.removeprefix(".").lower(): path for _, path in files}
        readers = {suffix: reader_of(path) for suffix, path in sorted(named.items()) if suffix in documents.REGISTRY}
        cut_by_sections = self.config.chunker is not None or self._crumbs not in (None, "none")
        return {
            suffix: reader.causes()
            for suffix, reader in readers.items()
            if reader.EXTRACTS or (reader.SECTIONS and cut_by_sections)
        }


def _document(reading: Reading, source: str) -> Document:
    return Document(reading.text, source, reading.begin, reading.blocks, marked=not reading.unmarked)


def _rooted(title: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """A path below the document's title, which its first heading often repeats."""
    return path if not title or path[:1] == (title,) else (title, *path)


def file_id(name: str) -> str:
    """A path as an id without white space; different paths have different ids."""
    return "".join(char if char.isprintable() and char not in " %" else _escaped(char) for char in name)


def _escaped(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")  # a file name may hold bytes that are no text
