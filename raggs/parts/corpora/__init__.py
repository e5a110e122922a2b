"""Corpora: base class, registry, and the base of corpora that are split into chunks.

A corpus yields passages, and returns a hash of its source that changes whenever the passages may have changed.
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

MAX_LISTED_PASSAGES = 3  # passages or files without text that a message lists


def plain_chunker(spec: ChunkerConfig) -> Chunker:
    """Create a chunker without a workspace; the chunker cannot use embedders or models."""
    return chunkers.REGISTRY.of(spec)(spec)


@dataclass(frozen=True)
class CorpusContext:
    """Resources for corpora: a function that creates a chunker from its settings."""

    chunker: Callable[[ChunkerConfig], Chunker] = plain_chunker


class Corpus(Adapter, ABC):
    """A source of passages. Created as ``cls(config)``; if chunkers may use other parts, the caller sets `context`.

    Attributes:
        left_out: passages (or documents) without text, found by the latest read.
        replaced: ids of passages with invalid characters, which are replaced by U+FFFD.
        cutting_s: time spent by the chunker, in seconds; None if unknown.
        unreadable: ids of the files that could not be read in the latest read.
    """

    context = CorpusContext()

    def __init__(self, config: AdapterConfig) -> None:
        self.config = config
        self.left_out: list[EmptyPassage] = []
        self.cutting_s: float | None = None
        self.replaced: set[str] = set()
        self.unreadable: list[str] = []

    @classmethod
    def index_place(cls, config: AdapterConfig) -> IndexPlace | None:  # noqa: ARG003 - for subclasses
        """Return the server index that contains the corpus; None if the corpus is not on a server."""
        return None

    def causes(self) -> Causes:
        """Return what affects the passages apart from the source."""
        return self.own_causes()

    def outside(self) -> list[str]:
        """Return sentences on data of the source that the corpus does not include; no document is read.

        Raises:
            NotFoundError, DataError: see `source_hash`.
        """
        return []

    def notes(self) -> list[str]:
        """Return remarks of the latest read, one sentence each, such as passages without text."""
        if not self.left_out:
            return []
        shown = ", ".join(f"{found.doc_id} (line {found.line})" for found in self.left_out[:MAX_LISTED_PASSAGES])
        more = ", …" if len(self.left_out) > MAX_LISTED_PASSAGES else ""
        return [f"{plural(len(self.left_out), 'passage')} without text skipped: {shown}{more}"]

    @abstractmethod
    def source_hash(self) -> str:
        """Return a hash of the source; it changes whenever a passage may have changed.

        Raises:
            NotFoundError: the source is missing or unreadable.
            DataError: the source is not a file, or has no documents.
        """

    @abstractmethod
    def passages(self) -> Iterator[Passage]:
        """Yield the passages that have a text, in the source's order.

        Raises:
            NotFoundError: the source is missing or unreadable.
            DataError: a passage is malformed; the error names the place. The store detects duplicate ids.
        """


@runtime_checkable
class RemoteCorpus(Protocol):
    """A corpus whose source can return single passages by id, so that it need not be copied."""

    def remote(self) -> Passages: ...


@runtime_checkable
class DocumentCorpus(Protocol):
    """A corpus made from documents; the spans of its passages are offsets in these documents."""

    def documents(self) -> Iterator[Document]: ...


@runtime_checkable
class RechunkableConfig(Protocol):
    """Settings of a corpus made from documents; `recut` replaces its chunker."""

    def recut(self, chunker: ChunkerConfig) -> AdapterConfig: ...


class EmptyPassage(NamedTuple):
    """A passage without text, which cannot be judged."""

    doc_id: str
    line: int


def hash_source(path: Path) -> str:
    """Return the content hash of a corpus file.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the path is not a file.
    """
    try:
        return hash_file(path)
    except (OSError, ValueError) as error:
        raise unreadable(error, path, "check corpus.path") from error


ChunkerSpec = Annotated[ChunkerConfig, OneOf(chunkers.REGISTRY)]
DEFAULT_MAX_WORDS = 200


class CutCorpus(Corpus):
    """A corpus whose passages are chunks of documents."""

    @property
    @abstractmethod
    def place(self) -> Path | str:
        """Location of the documents, for messages."""

    @property
    @abstractmethod
    def named(self) -> ChunkerConfig | None:
        """Chunker that the settings name; None if the corpus splits its documents by its default rule."""

    @abstractmethod
    def documents(self) -> Iterator[Document]:
        """Yield each readable document as a whole, in the order of the passages; spans refer to these texts.

        Raises:
            NotFoundError, DataError: see `passages`.
        """

    def cuts_hash(self) -> str | None:
        """Return a hash of the cached boundaries of a paid chunker; None if the chunker is not paid.

        Raises:
            RaggsError: the documents or the boundaries cannot be read.
        """
        chunker = None if self.named is None else self.context.chunker(self.named)
        if not isinstance(chunker, PaidChunker):
            return None
        kept = (chunker.kept(document) for document in self.documents())
        return hash_value([None if cuts is None else cuts.at for cuts in kept])

    def cutter(self, max_words: int) -> Chunker:
        """Return the configured chunker, or one that packs whole paragraphs of up to `max_words` words."""
        return self.context.chunker(self.named or ParagraphsChunker.Config(max_words=max_words))


def refuse_two_sizes(chunker: ChunkerConfig | None, max_words: int) -> None:
    """Raise an error if `max_words` is set in addition to a chunker.

    Raises:
        ValueError: `max_words` is not the default, and a chunker is configured.
    """
    if chunker is not None and max_words != DEFAULT_MAX_WORDS:
        raise ValueError("max_words has no effect with a chunker; set it in the chunker {type: paragraphs}")


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
