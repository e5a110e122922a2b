"""A folder of documents, each cut into passages: whole paragraphs, or as a chunker says.

A passage's id is the file's path below the folder (white space and ``%`` percent-encoded, so that ids stay unique) and
the number of the passage in the file. Its span tells the place: ``text == source[start:end]``, in characters of the
text that the file's reader gives (see `raggs.parts.documents`), which of a text file is the file's; with ``breadcrumb:
text`` the path of its sections stands before that. What a document says about itself before it begins is in no passage.

Unless a chunker is named, Markdown, HTML and rst are cut at their headings, and a passage is called by the headings
above it. Plain text and PDF have no headings: whole paragraphs are packed, and a passage is called by its file.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Literal, Self
from urllib.parse import quote, unquote

from pydantic import AfterValidator, Field, model_validator

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError, NotFoundError, RaggsError
from raggs.base.hashing import hash_value
from raggs.base.inputs import read_whole
from raggs.base.registry import installed
from raggs.base.settings import Causes, Later, SourcePath
from raggs.base.text import plural, shorten
from raggs.parts import documents
from raggs.parts.chunkers.base import Chunk, Chunker, ChunkerConfig, Document
from raggs.parts.chunkers.cutting import trimmed
from raggs.parts.chunkers.markdown import MarkdownChunker
from raggs.parts.chunkers.outline import Outline
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.chunkers.paragraphs import ParagraphsChunker, has_long_runs, heading_of
from raggs.parts.corpora.base import SHOWN, LeftOut, hash_source
from raggs.parts.corpora.cut import MAX_WORDS, ChunkerSpec, CutCorpus, refuse_two_sizes
from raggs.parts.corpora.listing import Listing, list_files, reader_of, tell
from raggs.parts.documents.base import DocumentReader, Reading
from raggs.parts.documents.plain import TextReader


def _relative(pattern: str) -> str:
    path = PurePath(pattern)
    if not path.parts or path.is_absolute() or any("**" in part and part != "**" for part in path.parts):
        raise ValueError(f"{pattern!r} is not a pattern of file names, such as *.md")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]
Breadcrumb = Literal["title", "text", "none"]
BETWEEN = " > "
ONCE = ("*.txt", "*.md")  # what all suffixes meant when these were all
MOST_TITLE = 200  # characters of a heading in a title; each passage of the section repeats them
MOST_PATH = 1000  # characters of a path of headings
OMITTED = "…"
MOST_FAULTS = 10  # unreadable files that a message names
SKIP = "set corpus.unreadable: skip"
TOKENS_PER_WORD = 4 / 3  # of cl100k, in English
HEADING = re.compile(rb"^(?:#{1,6}\s+\S|([=*#~^\"-])\1{2,})", re.MULTILINE)  # what plain text was searched for


class FolderConfig(AdapterConfig):
    type: Literal["folder"] = "folder"
    path: SourcePath = Field(description="the folder")
    patterns: tuple[Pattern, ...] | None = Field(
        None, min_length=1, description="which files, at any depth; null: all that raggs list documents names"
    )
    exclude: Later[tuple[Pattern, ...]] = Field((), description="files and folders that are left out all the same")
    max_words: int = Field(
        MAX_WORDS,
        ge=20,
        description="maximum words per passage if no chunker is named (Markdown, HTML, rst: 4 tokens for 3 words)",
    )
    chunker: Later[ChunkerSpec | None] = Field(
        None,
        description="how files are cut; null: Markdown, HTML and rst at their headings (as by the chunker markdown), "
        "other files as whole paragraphs of up to `max_words` words",
    )
    unreadable: Later[Literal["stop", "skip"]] = Field(
        "stop",
        description="files that cannot be read (not UTF-8, a damaged PDF, no permission): stop and name them all, or "
        "skip them; skipped files are counted in the run's status, report and manifest",
    )
    follow_symlinks: Later[bool] = Field(
        False, description="whether symbolic links to files and folders are read as what they point to"
    )
    breadcrumb: Later[Breadcrumb | None] = Field(
        None,
        description="where the path of a passage's headings stands (Guide > Install > Linux): in its title, before its "
        f"text, or nowhere; null: in its title. A heading counts with its first {MOST_TITLE} characters",
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
        self._cut_titles: dict[str, None] = {}  # files, in order
        self._faults: list[str] = []  # unreadable files, and why

    @property
    def place(self) -> Path:
        return self.config.path

    @property
    def named(self) -> ChunkerConfig | None:
        return self.config.chunker

    def source_hash(self) -> str:
        """Over the files that count: their paths below the folder and their bytes, None if these cannot be read."""
        listing, rows = self._listing(), list[list[str | None]]()
        for name, path in listing.files:
            try:
                rows.append([file_id(name), hash_source(path), *self._marks(path)])
            except (DataError, NotFoundError):
                rows.append([file_id(name), None])
        rows += [[file_id(folder.name), None] for folder in listing.closed]
        if self.config.unreadable == "stop" and any(None in row for row in rows):
            for _ in self._read():  # which names all files that cannot be read
                pass
        return hash_value(rows)

    def _marks(self, path: Path) -> Iterator[str]:
        """How a file is read otherwise than when it was first read, so that its passages are other ones."""
        reader = reader_of(path)
        yield from reader.marks(path)
        plain, named = isinstance(reader, TextReader), self.config.chunker
        if not (isinstance(named, ParagraphsChunker.Config) if named else plain) or reader.EXTRACTS:
            return
        data = read_whole(path)
        text = data.decode("utf-8-sig", "replace")
        if plain and named is None and self.config.breadcrumb is None and HEADING.search(data) and heading_of(text):
            yield "no headings"
        if has_long_runs(text):
            yield "long runs cut"

    def causes(self) -> Causes:
        """Its own, the chunkers', and the readers' where texts or breadcrumbs come from them."""
        found = {**self.own_causes(), **({"patterns": list(ONCE)} if self.config.patterns is None else {})}
        readers = self._readers()
        headed = any(reader.HEADINGS for reader in readers.values())
        if self.config.chunker is not None:
            found["chunker"] = self._chunker.causes()
        elif headed:
            found["chunker by headings"] = self._by_headings.causes()
        named = self.config.chunker is not None or self.config.breadcrumb is not None
        if self._crumbs != "none" and (headed or named):
            found["markdown"] = installed("markdown-it-py")
        changing = {suffix: reader.causes() for suffix, reader in readers.items() if reader.EXTRACTS or reader.SECTIONS}
        return {**found, "readers": changing} if changing else found

    def outside(self) -> list[str]:
        """Files that are left out, by reason."""
        return [tell(skipped)] if (skipped := self._listing().skipped) else []

    def notes(self) -> list[str]:
        """Files that were skipped or have no text, front matter that was not understood, and titles that were cut."""
        found = []
        if self._faults:
            found.append(f"{plural(len(self._faults), 'unreadable file')} skipped: {_listed(self._faults)}")
        if self.left_out:
            named = ", ".join(each.doc_id for each in self.left_out[:SHOWN])
            more = ", …" if len(self.left_out) > SHOWN else ""
            found.append(f"{plural(len(self.left_out), 'file')} without text left out: {named}{more}")
        if self._warnings:
            more = f"; and {len(self._warnings) - SHOWN:,} more" if len(self._warnings) > SHOWN else ""
            found.append(f"front matter not understood and left out: {'; '.join(self._warnings[:SHOWN])}{more}")
        if self._cut_titles:
            named = ", ".join([*self._cut_titles][:SHOWN]) + (", …" if len(self._cut_titles) > SHOWN else "")
            many = plural(len(self._cut_titles), "file")
            found.append(f"headings of {many} cut to {MOST_TITLE} characters in titles: {named}")
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
        """Every file that can be read.

        Raises:
            NotFoundError, DataError: the settings say so where one cannot; all that cannot are named.
        """
        self.left_out.clear()
        self.unreadable.clear()
        self._faults.clear()
        self._warnings.clear()
        self._cut_titles.clear()
        listing, first, stops = self._listing(), None, self.config.unreadable == "stop"
        for folder in listing.closed:
            self._skip(file_id(folder.name), DataError(folder.reason))
        for name, path in listing.files:
            source = file_id(name)
            try:
                reading = reader_of(path).read(path)
            except (DataError, NotFoundError) as error:
                first = first or error
                self._skip(source, error)
                continue
            if reading.warning:
                self._warnings.append(f"{source}:{reading.line}: {reading.warning}")
            if not (stops and self._faults):  # after a fault the others are only tried
                yield source, reading
        if stops and self._faults:
            raise self._unreadable(first)

    def _skip(self, source: str, error: RaggsError) -> None:
        self.unreadable.append(source)
        self._faults.append(f"{source}{'' if error.line is None else f':{error.line}'} ({error.message})")

    def _unreadable(self, first: RaggsError | None) -> RaggsError:
        """The error that names what cannot be read: of one file its own."""
        if first is not None and len(self._faults) == 1:
            first.remedy = f"{first.remedy}; or {SKIP}" if first.remedy else SKIP
            return first
        said = f"{plural(len(self._faults), 'file')} cannot be read: {_listed(self._faults)}"
        return DataError(said, where=self.place, remedy=f"repair them, leave them out by corpus.exclude, or {SKIP}")

    def _cut(self, reading: Reading, source: str) -> Iterator[Passage]:
        """The passages of one file."""
        text, titles = reading.text, self._titles(reading, source)
        chunker = self._by_headings if self.named is None and reading.blocks is not None else self._chunker
        for number, chunk in enumerate(self._timed(chunker, _document(reading, source)), start=1):
            start, end = trimmed(text, (chunk.start, chunk.end))
            crumb = titles(start, end)
            above = f"{crumb}\n\n" if self._crumbs == "text" else ""
            page = {"page": bisect_right(reading.pages, start)} if reading.pages else {}
            yield Passage(
                doc_id=f"{source}#{number}",
                title=crumb if self._crumbs == "title" else "",
                text=above + text[start:end],
                span=Span(source=source, start=start, end=end),
                metadata={**page, **reading.metadata},
            )

    def _timed(self, chunker: Chunker, document: Document) -> Iterator[Chunk]:
        """The chunks of a document, with the time that cutting takes added up."""
        chunks = chunker.chunk(document)
        while True:
            began = time.perf_counter()
            chunk = next(chunks, None)
            if self.cutting_s is not None:
                self.cutting_s += time.perf_counter() - began
            if chunk is None:
                return
            yield chunk

    def _titles(self, reading: Reading, source: str) -> Callable[[int, int], str]:
        """The title of a place in a file: the path of its headings, or the document's name if it has none."""
        if self._crumbs == "none":
            return lambda *_: ""
        root = self._title(reading.title, source)
        name = root or self._title(reading.name, source) or source
        if reading.blocks is None:
            return lambda *_: name
        headed = (replace(block, title=self._title(block.title, source)) for block in reading.blocks())
        outline, begin = Outline(headed), reading.begin

        def of(start: int, end: int) -> str:
            path = _rooted(root, outline.path(start - begin, end - begin))
            short = _short_path(path)
            if short != path:
                self._cut_titles[source] = None
            return BETWEEN.join(short) or name

        return of

    def _title(self, title: str, source: str) -> str:
        """A heading as titles have it, cut if it is too long."""
        if len(title) <= MOST_TITLE:
            return title
        self._cut_titles[source] = None
        return shorten(title, MOST_TITLE)

    @property
    def _crumbs(self) -> Breadcrumb:
        """Where breadcrumbs stand."""
        return self.config.breadcrumb or "title"

    @cached_property
    def _chunker(self) -> Chunker:
        return self.cutter(self.config.max_words)

    @cached_property
    def _by_headings(self) -> Chunker:
        """The chunker of documents with headings, if the settings name none."""
        return self.context.chunker(MarkdownChunker.Config(size=round(TOKENS_PER_WORD * self.config.max_words)))

    def _listing(self) -> Listing:
        """
        Raises:
            NotFoundError: the folder is not there.
            DataError: no file fits.
        """
        config = self.config
        return list_files(config.path, config.patterns, config.exclude, follow_symlinks=config.follow_symlinks)

    def _readers(self) -> Mapping[str, DocumentReader]:
        """The readers of the files that are there, by suffix."""
        try:
            files = self._listing().files
        except RaggsError:
            return {}  # whoever reads the folder will say so better
        named = {path.suffix.removeprefix(".").lower(): path for _, path in files}
        return {suffix: reader_of(path) for suffix, path in sorted(named.items()) if suffix in documents.REGISTRY}


def _listed(faults: Sequence[str]) -> str:
    more = f", and {len(faults) - MOST_FAULTS:,} more" if len(faults) > MOST_FAULTS else ""
    return f"{', '.join(faults[:MOST_FAULTS])}{more}"


def _document(reading: Reading, source: str) -> Document:
    return Document(reading.text, source, reading.begin, reading.blocks, marked=not reading.unmarked)


def _short_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path of at most `MOST_PATH` characters: the first heading and the last ones."""
    parts = list(path)
    while len(BETWEEN.join(parts)) > MOST_PATH and len(parts) > 2:
        del parts[1]
    return path if len(parts) == len(path) else (parts[0], OMITTED, *parts[1:])


def _rooted(title: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """A path below the document's title, which its first heading often repeats."""
    return path if not title or path[:1] == (title,) else (title, *path)


def file_id(name: str) -> str:
    """A path as an id without white space; different paths have different ids."""
    return "".join(char if char.isprintable() and char not in " %" else _escaped(char) for char in name)


def file_name(source: str) -> str:
    """The path below the folder that `file_id` made an id of; names of other documents hold no such escapes."""
    return unquote(source, errors="surrogatepass")


def _escaped(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")  # a file name may hold bytes that are no text
