"""Documents whole, by the names that a corpus of their folder would give them, and by the names of questions.

A question may name a document without the file's ending, as the files of chunking benchmarks do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raggs.base.errors import DataError, NotFoundError
from raggs.base.text import did_you_mean
from raggs.parts.chunkers.base import Document
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus


@dataclass(frozen=True)
class Documents:
    """Texts in the order of their names.

    Attributes:
        folder: where they lie.
        names: of the files below it.
        texts: as their readers give them, in which places count.
        read: the same with what their readers know of them; empty: nothing.
        notes: what of the folder was left out, a sentence each.
    """

    folder: Path
    names: tuple[str, ...]
    texts: tuple[str, ...]
    read: tuple[Document, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> list[int]:
        """Of each, in characters."""
        return [len(text) for text in self.texts]

    @property
    def whole(self) -> Iterator[Document]:
        """Each, to be cut."""
        return iter(self.read) if self.read else map(Document, self.texts, self.names)

    def number(self, name: str) -> int | None:
        """Of the document of this name; without its ending where that is one document's alone."""
        found = self._called.get(name, ())
        return found[0] if len(found) == 1 or name in self.names else None

    def missing(self, name: str) -> str:
        """What to do about a name that no document has, or several."""
        if found := [self.names[place] for place in self._called.get(name, ())]:
            return f"it may be {' or '.join(found)}: write its ending"
        return did_you_mean(name, self._called)

    @cached_property
    def _called(self) -> Mapping[str, Sequence[int]]:
        """By a name, and by a name without its ending, the documents that are called so; whole names first."""
        found: dict[str, list[int]] = {}
        for short in (False, True):
            for place, name in enumerate(self.names):
                found.setdefault(Path(name).with_suffix("").as_posix() if short else name, []).append(place)
        return {name: list(dict.fromkeys(places)) for name, places in found.items()}


def read_documents(folder: Path) -> Documents:
    """All documents of a folder that a corpus of it would read.

    Raises:
        NotFoundError: the folder is not there, or a file cannot be read.
        DataError: it holds no document with text, or one that is not UTF-8.
    """
    if not folder.is_dir():
        said = "is no folder" if folder.exists() else "no such folder"
        raise NotFoundError(said, where=folder, remedy="name the folder of the documents by --corpus")
    corpus = FolderCorpus(FolderConfig(path=folder))
    found = tuple(each for each in corpus.documents() if each.body.text.strip())
    if not found:
        raise DataError("holds no document with text", where=folder, remedy="check --corpus")
    names, texts = tuple(each.source for each in found), tuple(each.text for each in found)
    return Documents(folder, names, texts, found, (*corpus.outside(), *corpus.notes()))
