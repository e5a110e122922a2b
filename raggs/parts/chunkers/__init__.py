"""Chunkers: base class and registry. A chunker splits documents into chunks with exact offsets.

A chunk is a slice: ``document.text[chunk.start:chunk.end] == chunk.text``, in characters. This is always true, because
a chunker returns offsets and no text. Chunks are ordered by their offsets, and no chunk is only white space. The
chunkers of raggs put every word after the front matter into at least one chunk; user functions may omit words. A
chunker does not depend on files, corpora or runs, and equal documents get equal chunks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.errors import PrerequisiteError, ProviderError
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.parts.documents import Block

if TYPE_CHECKING:
    import asyncio

    from raggs.base.cache import Cache
    from raggs.llm import LLM
    from raggs.parts.embedders import Embedder, EmbedderConfig

TextRange = tuple[int, int]  # start and end (exclusive), in characters


@dataclass(frozen=True)
class Document:
    """A text to be split into chunks.

    Attributes:
        text: text to which offsets refer.
        source: name of the document, for messages.
        begin: offset of the first character that may be in a chunk; text before it is front matter.
        blocks: function that returns the blocks of ``text[begin:]``, with offsets relative to `begin`; if None, the
            text is parsed as Markdown.
        marked: whether the text itself contains the markup of its headings.
    """

    text: str
    source: str = "the document"
    begin: int = 0
    blocks: Callable[[], Sequence[Block]] | None = None
    marked: bool = True

    @property
    def body(self) -> Document:
        """The document without its front matter, as a separate document."""
        return replace(self, text=self.text[self.begin :], begin=0) if self.begin else self


@dataclass(frozen=True)
class Chunk:
    """A slice of a text: ``source[start:end] == text``, in characters."""

    text: str
    start: int
    end: int


def no_embedders(spec: EmbedderConfig) -> Embedder:
    """Raise an error. This is the embedder factory of chunkers that were created without one.

    Raises:
        PrerequisiteError: always.
    """
    raise PrerequisiteError(
        f"embedder {spec.type} is not available here",
        remedy="create the chunker with a workspace, or choose another one",
    )


@dataclass(frozen=True)
class ModelAccess:
    """Access of a chunker to language models.

    Attributes:
        llm: function that returns the client of the models.
        loop: function that returns the event loop for the calls.
        cuts: cache of chunk boundaries.
        pays: whether documents without cached boundaries may be chunked, which costs money.
    """

    llm: Callable[[], LLM]
    loop: Callable[[], asyncio.Runner]
    cuts: Cache
    pays: bool


@dataclass(frozen=True)
class ChunkerContext:
    """Resources for chunkers: a function that creates embedders, and access to language models if available."""

    embedder: Callable[[EmbedderConfig], Embedder] = no_embedders
    asking: ModelAccess | None = None


class ChunkerConfig(AdapterConfig):
    """Settings common to all chunkers."""


class Chunker(Adapter, ABC):
    """Splits documents into chunks. Created as ``cls(config, context)``; loads its resources at first use."""

    Config: ClassVar[type[ChunkerConfig]] = ChunkerConfig

    config: ChunkerConfig

    def __init__(self, config: ChunkerConfig, context: ChunkerContext | None = None) -> None:
        self.config = config
        self.context = context or ChunkerContext()

    def causes(self) -> Causes:
        """Return everything that affects the chunk boundaries."""
        return self.own_causes()

    def check(self) -> None:
        """Raise an error if a prerequisite is missing.

        Raises:
            RaggsError: a package, a file or a function is missing.
        """
        return

    def chunk(self, document: Document) -> Iterator[Chunk]:
        """Yield the chunks of a document, ordered by their offsets; a document without text has no chunks.

        Raises:
            ProviderError: the chunker returned offsets outside the document or in the wrong order.
        """
        body, begin, last = document.body, document.begin, (0, 0)
        text = body.text
        for start, end in self.places(body):
            if not 0 <= start <= end <= len(text) or (start, end) < last:
                raise ProviderError(
                    f"chunker {self.config.type} returned {start}:{end} for {document.source}, after"
                    f" {last[0]}:{last[1]}",
                    remedy="return offsets within the document, in ascending order",
                )
            last = start, end
            if (piece := text[start:end]).strip():
                yield Chunk(piece, begin + start, begin + end)

    @abstractmethod
    def places(self, document: Document) -> Iterator[TextRange]:
        """Yield the start and end of each chunk, in order. `chunk` drops chunks that contain only white space.

        Args:
            document: a document with `begin` 0.
        """


REGISTRY: Registry[Chunker] = Registry(
    "chunker",
    "chunkers",
    "raggs.parts.chunkers:Chunker",
    {
        "cluster": "raggs.parts.chunkers.semantic:ClusterChunker",
        "llm": "raggs.parts.chunkers.llm:LlmChunker",
        "markdown": "raggs.parts.chunkers.markdown:MarkdownChunker",
        "paragraphs": "raggs.parts.chunkers.paragraphs:ParagraphsChunker",
        "python": "raggs.parts.callables:PythonChunker",
        "recursive": "raggs.parts.chunkers.recursive:RecursiveChunker",
        "semantic": "raggs.parts.chunkers.semantic:SemanticChunker",
        "sentence": "raggs.parts.chunkers.sentence:SentenceChunker",
        "token": "raggs.parts.chunkers.sentence:TokenChunker",
    },
)
