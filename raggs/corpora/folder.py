"""A folder of text and Markdown files, each cut into passages: whole paragraphs, or as a chunker says.

A passage's id is the file's path below the folder (white space and ``%`` percent-encoded, so that ids stay unique) and
the number of the passage in the file. Its span tells the place: ``text == file[start:end]``, in characters; with
``breadcrumb: text`` the path of its sections stands before that. Hidden files and folders (a leading dot) are left
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, Field, model_validator

from raggs import chunkers
from raggs.adapter import AdapterConfig, OneOf
from raggs.artifacts import Passage, Span
from raggs.chunkers.base import Chunker, ChunkerConfig, Document
from raggs.chunkers.cutting import trimmed
from raggs.chunkers.outline import Outline
from raggs.chunkers.paragraphs import ParagraphsChunker, heading_of
from raggs.corpora.base import Corpus, LeftOut, hash_source
from raggs.errors import DataError, NotFoundError
from raggs.hashing import hash_value
from raggs.inputs import read_whole
from raggs.registry import installed
from raggs.settings import Causes, Later, SourcePath


def _relative(pattern: str) -> str:
    path = PurePath(pattern)
    if not path.parts or path.is_absolute() or any("**" in part and part != "**" for part in path.parts):
        raise ValueError(f"{pattern!r} is not a pattern of file names, such as *.md")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]
Breadcrumb = Literal["title", "text", "none"]
MAX_WORDS = 200
BETWEEN = " > "
MARKDOWN = (".md", ".markdown")


class FolderConfig(AdapterConfig):
    type: Literal["folder"] = "folder"
    path: SourcePath = Field(description="the folder")
    patterns: tuple[Pattern, ...] = Field(("*.txt", "*.md"), min_length=1, description="which files, at any depth")
    max_words: int = Field(MAX_WORDS, ge=20, description="words a passage holds at most, where no chunker is named")
    chunker: Later[Annotated[ChunkerConfig, OneOf(chunkers.REGISTRY)] | None] = Field(
        None, description="how files are cut; null: whole paragraphs of up to `max_words` words"
    )
    breadcrumb: Later[Breadcrumb | None] = Field(
        None,
        description="where the path of a passage's sections stands (Guide > Install > Linux): in its title, before its "
        "text, or nowhere; null: in its title, and without a chunker the file's first heading instead",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.chunker is not None and self.max_words != MAX_WORDS:
            raise ValueError("max_words is of no use beside a chunker; say it in the chunker {type: paragraphs}")
        return self


class FolderCorpus(Corpus):
    """Every text and Markdown file below a folder, cut into passages."""

    Config = FolderConfig
    config: FolderConfig

    def source_hash(self) -> str:
        """Over the files that count: their paths below the folder and their bytes."""
        return hash_value([[file_id(name), hash_source(path)] for name, path in self._files()])

    def causes(self) -> Causes:
        """Its own, the chunker's, and of Markdown's reader where breadcrumbs come from it."""
        found = self.own_causes()
        if self.config.chunker is not None:
            found["chunker"] = self._chunker.causes()
        return found if self._crumbs in (None, "none") else {**found, "markdown": installed("markdown-it-py")}

    def passages(self) -> Iterator[Passage]:
        """See `Corpus.passages`; file after file by path, each with its span."""
        self.left_out.clear()
        for name, path in self._files():
            source = file_id(name)
            number = 0
            for number, passage in enumerate(self._cut(read_text(path), source, path.suffix), start=1):  # noqa: B007
                yield passage
            if not number:
                self.left_out.append(LeftOut(source, 1))

    def documents(self) -> Iterator[Document]:
        """Every file whole, in the same order: the text that spans count in.

        Raises:
            NotFoundError, DataError: as `passages`.
        """
        for name, path in self._files():
            yield Document(read_text(path), file_id(name))

    def _cut(self, text: str, source: str, suffix: str) -> Iterator[Passage]:
        """The passages of one file."""
        titles = self._titles(text, source, suffix)
        for number, chunk in enumerate(self._chunker.chunk(Document(text, source)), start=1):
            start, end = trimmed(text, (chunk.start, chunk.end))
            crumb = titles(start, end)
            above = f"{crumb}\n\n" if self._crumbs == "text" and crumb else ""
            yield Passage(
                doc_id=f"{source}#{number}",
                title=crumb if self._crumbs in (None, "title") else "",
                text=above + text[start:end],
                span=Span(source=source, start=start, end=end),
            )

    def _titles(self, text: str, source: str, suffix: str) -> Callable[[int, int], str]:
        """What a place in a file is called: by its sections, or by the file's name where it has none."""
        if self._crumbs is None or suffix.lower() not in MARKDOWN:
            title = (heading_of(text) if self._crumbs is None else None) or source
            return lambda *_: title
        outline = Outline(text)
        return lambda start, end: BETWEEN.join(outline.path(start, end)) or source

    @property
    def _crumbs(self) -> Breadcrumb | None:
        """Where breadcrumbs stand; None for the file's first heading as everybody's title."""
        return self.config.breadcrumb or (None if self.config.chunker is None else "title")

    @cached_property
    def _chunker(self) -> Chunker:
        return self.context.chunker(self.config.chunker or ParagraphsChunker.Config(max_words=self.config.max_words))

    def _files(self) -> list[tuple[str, Path]]:
        """Every file that counts, by its path below the folder, in that order.

        Raises:
            NotFoundError: the folder is not there.
            DataError: no file fits.
        """
        root = self.config.path
        if not root.is_dir():
            problem = "is a file, not a folder" if root.exists() else "no such folder"
            raise NotFoundError(problem, where=root, remedy="check corpus.path")
        found = {path for pattern in self.config.patterns for path in root.rglob(pattern) if path.is_file()}
        named = ((path.relative_to(root), path) for path in found)
        files = sorted(
            (name.as_posix(), path) for name, path in named if not any(part[0] == "." for part in name.parts)
        )
        if not files:
            wanted = " or ".join(self.config.patterns)
            remedy = "check corpus.path and corpus.patterns"
            raise DataError(f"the folder holds no file that fits {wanted}", where=root, remedy=remedy)
        return files


def file_id(name: str) -> str:
    """A path as an id without white space; different paths have different ids."""
    return "".join(char if char.isprintable() and char not in " %" else _escaped(char) for char in name)


def _escaped(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")  # a file name may hold bytes that are no text


def read_text(path: Path) -> str:
    """A file's text, character for character (line ends are not translated, so that places stay true).

    Raises:
        NotFoundError: it cannot be read.
        DataError: it is no file, binary, or not UTF-8.
    """
    remedy = "convert it to UTF-8, or leave it out by corpus.patterns"
    data = read_whole(path)
    if b"\0" in data:
        raise DataError("not a text file", where=path, line=data[: data.index(b"\0")].count(b"\n") + 1, remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError("not UTF-8", where=path, line=line, remedy=remedy) from error
