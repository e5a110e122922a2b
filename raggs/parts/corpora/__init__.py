"""Corpora by name: one file and one line each (see `Corpus`).

What a corpus is: passages from somewhere, and a cheap hash that tells when they changed.

Corpora of documents that a chunker cuts: what their settings and they themselves have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol, runtime_checkable

from raggs.base.adapter import Adapter, AdapterConfig, OneOf
from raggs.base.artifacts import Passage
from raggs.base.files import hash_file, unreadable
from raggs.base.hashing import hash_value
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.base.text import plural
from raggs.parts import chunkers
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.chunkers.paragraphs import ParagraphsChunker
from raggs.parts.elastic import IndexPlace
from raggs.parts.indexes.passages import Passages

MAX_LISTED_PASSAGES = 3  # of what is told by name


def plain_chunker(spec: ChunkerConfig) -> Chunker:
    """A chunker that works without any other part."""
    return chunkers.REGISTRY.of(spec)(spec)


@dataclass(frozen=True)
class CorpusContext:
    """What a corpus may use: chunkers by their settings."""

    chunker: Callable[[ChunkerConfig], Chunker] = plain_chunker


class Corpus(Adapter, ABC):
    """A source of passages. Built as ``cls(config)``; its `context` is set by whoever has other parts to give.

    `left_out` names the passages that the latest reading found empty, `replaced` those that came with characters which
    are none, in whose place U+FFFD stands; `cutting_s` are the seconds that its chunker took, None where nobody knows;
    `unreadable` names the files that could not be read and were skipped, since the settings say so.
    """

    context = CorpusContext()

    def __init__(self, config: AdapterConfig) -> None:
        self.config = config
        self.left_out: list[EmptyPassage] = []
        self.cutting_s: float | None = None
        self.replaced: set[str] = set()
        self.unreadable: list[str] = []

    @classmethod
    def index_place(cls, config: AdapterConfig) -> IndexPlace | None:  # noqa: ARG003 - most lie in none
        """The index on a server in which it lies; None where it lies elsewhere."""
        return None

    def causes(self) -> Causes:
        """What besides its source can change its passages."""
        return self.own_causes()

    def outside(self) -> list[str]:
        """What lies at the source and is no part of the corpus, a sentence each; told without reading it.

        Raises:
            NotFoundError, DataError: as `source_hash`.
        """
        return []

    def notes(self) -> list[str]:
        """What the latest reading found worth telling, a sentence each: passages without text, say."""
        if not self.left_out:
            return []
        shown = ", ".join(f"{found.doc_id} (line {found.line})" for found in self.left_out[:MAX_LISTED_PASSAGES])
        more = ", …" if len(self.left_out) > MAX_LISTED_PASSAGES else ""
        return [f"{plural(len(self.left_out), 'passage')} without text left out: {shown}{more}"]

    @abstractmethod
    def source_hash(self) -> str:
        """A hash of the bytes that the passages are made from; changes whenever a passage could.

        Raises:
            NotFoundError: the source is missing or unreadable.
        """

    @abstractmethod
    def passages(self) -> Iterator[Passage]:
        """Every passage, in the source's order.

        Raises:
            NotFoundError: the source is missing or unreadable.
            DataError: a passage is malformed; names file and line. Duplicate ids are the store's to find.
        """


@runtime_checkable
class RemoteCorpus(Protocol):
    """A corpus whose source gives single passages by id, so that it need not be copied."""

    def remote(self) -> Passages: ...


@runtime_checkable
class DocumentCorpus(Protocol):
    """A corpus whose source has documents: the texts that spans of its passages count in."""

    def documents(self) -> Iterator[Document]: ...


@runtime_checkable
class RechunkableConfig(Protocol):
    """Settings of a corpus of documents, which can be cut in another way."""

    def recut(self, chunker: ChunkerConfig) -> AdapterConfig: ...


class EmptyPassage(NamedTuple):
    """A passage without any text, which nobody could judge."""

    doc_id: str
    line: int


def hash_source(path: Path) -> str:
    """The content hash of a corpus file.

    Raises:
        NotFoundError: it is missing or unreadable.
        DataError: it is no file.
    """
    try:
        return hash_file(path)
    except (OSError, ValueError) as error:
        raise unreadable(error, path, "check corpus.path") from error


ChunkerSpec = Annotated[ChunkerConfig, OneOf(chunkers.REGISTRY)]
DEFAULT_MAX_WORDS = 200


class CutCorpus(Corpus):
    """A corpus whose passages are cut out of documents."""

    @property
    @abstractmethod
    def place(self) -> Path | str:
        """Where the documents lie, for messages."""

    @property
    @abstractmethod
    def named(self) -> ChunkerConfig | None:
        """The chunker that the settings name; None where they name none, so that whole paragraphs are packed."""

    @abstractmethod
    def documents(self) -> Iterator[Document]:
        """Every document whole, in the passages' order: the text that spans count in.

        Raises:
            NotFoundError, DataError: as `passages`.
        """

    def cuts_hash(self) -> str | None:
        """What tells the cuts of documents by a paid chunker from others by the same one; None: it is not paid.

        Raises:
            RaggsError: the documents or the cuts cannot be read.
        """
        chunker = None if self.named is None else self.context.chunker(self.named)
        if not isinstance(chunker, PaidChunker):
            return None
        kept = (chunker.kept(document) for document in self.documents())
        return hash_value([None if cuts is None else cuts.at for cuts in kept])

    def cutter(self, max_words: int) -> Chunker:
        """Who cuts; of whole paragraphs a passage holds up to `max_words` words."""
        return self.context.chunker(self.named or ParagraphsChunker.Config(max_words=max_words))


def refuse_two_sizes(chunker: ChunkerConfig | None, max_words: int) -> None:
    """
    Raises:
        ValueError: a size is given beside a chunker, which has its own.
    """
    if chunker is not None and max_words != DEFAULT_MAX_WORDS:
        raise ValueError("max_words is of no use beside a chunker; say it in the chunker {type: paragraphs}")


REGISTRY: Registry[Corpus] = Registry(
    "corpus",
    "corpora",
    "raggs.parts.corpora:Corpus",
    {
        "elasticsearch": "raggs.parts.corpora.elasticsearch:ElasticsearchCorpus",
        "folder": "raggs.parts.corpora.folder:FolderCorpus",
        "jsonl": "raggs.parts.corpora.jsonl:JsonlCorpus",
        "pydoc": "raggs.parts.corpora.pydoc:PydocCorpus",
    },
)
