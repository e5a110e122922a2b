"""A folder of text and Markdown files, each cut into passages of whole paragraphs.

A passage's id is the file's path below the folder (white space and ``%`` percent-encoded, so that ids stay unique) and
the number of the passage in the file. Its span tells the place: ``text == file[start:end]``, in characters. Hidden
files and folders (a leading dot) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AfterValidator, Field

from raggs.adapter import AdapterConfig
from raggs.artifacts import Passage, Span
from raggs.chunkers.paragraphs import heading_of, pack_paragraphs
from raggs.corpora.base import Corpus, LeftOut, hash_source
from raggs.errors import DataError, NotFoundError
from raggs.hashing import hash_value
from raggs.inputs import read_whole
from raggs.settings import SourcePath


def _relative(pattern: str) -> str:
    path = PurePath(pattern)
    if not path.parts or path.is_absolute() or any("**" in part and part != "**" for part in path.parts):
        raise ValueError(f"{pattern!r} is not a pattern of file names, such as *.md")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]


class FolderConfig(AdapterConfig):
    type: Literal["folder"] = "folder"
    path: SourcePath = Field(description="the folder")
    patterns: tuple[Pattern, ...] = Field(("*.txt", "*.md"), min_length=1, description="which files, at any depth")
    max_words: int = Field(200, ge=20, description="words a passage holds at most")


class FolderCorpus(Corpus):
    """Every text and Markdown file below a folder, cut into passages."""

    Config = FolderConfig
    config: FolderConfig

    def source_hash(self) -> str:
        """Over the files that count: their paths below the folder and their bytes."""
        return hash_value([[file_id(name), hash_source(path)] for name, path in self._files()])

    def passages(self) -> Iterator[Passage]:
        """See `Corpus.passages`; file after file by path, each with its span."""
        self.left_out.clear()
        for name, path in self._files():
            text, source = read_text(path), file_id(name)
            chunks = pack_paragraphs(text, self.config.max_words)
            if not chunks:
                self.left_out.append(LeftOut(source, 1))
                continue
            title = heading_of(text) or source
            for number, chunk in enumerate(chunks, start=1):
                span = Span(source=source, start=chunk.start, end=chunk.end)
                yield Passage(doc_id=f"{source}#{number}", title=title, text=chunk.text, span=span)

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
