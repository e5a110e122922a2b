"""Chunkers by name: each cuts documents into passages with exact places (see `Chunker`).

What a chunker is: a document in, the places at which it is cut out.

A chunk is a slice: ``document.text[chunk.start:chunk.end] == chunk.text``, in characters, by construction, since a
chunker gives places and never text. Chunks come in the order of their places, hold more than white space, and, unless
the chunker says otherwise, every word of the document stands in at least one of them. A chunker knows no file, no
corpus and no run; equal documents are cut in the same way.
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

TextRange = tuple[int, int]  # the first character, and the first after the last


@dataclass(frozen=True)
class Document:
    """A text to be cut.

    Attributes:
        text: what places count in.
        source: its name, for messages.
        begin: the first character that may stand in a chunk; before it the document speaks about itself.
        blocks: makes the blocks of ``text[begin:]``, with places that count from `begin`; None: read it as Markdown.
        marked: whether the text itself tells its headings by marks.
    """

    text: str
    source: str = "the document"
    begin: int = 0
    blocks: Callable[[], Sequence[Block]] | None = None
    marked: bool = True

    @property
    def body(self) -> Document:
        """What may be cut, as a document of its own."""
        return replace(self, text=self.text[self.begin :], begin=0) if self.begin else self


@dataclass(frozen=True)
class Chunk:
    """A slice of a text: ``source[start:end] == text``, in characters."""

    text: str
    start: int
    end: int


def no_embedders(spec: EmbedderConfig) -> Embedder:
    """What stands in where nobody gave embedders.

    Raises:
        PrerequisiteError: always.
    """
    raise PrerequisiteError(
        f"the embedder {spec.type} is not at hand here", remedy="let a workspace make the chunker, or name another one"
    )


@dataclass(frozen=True)
class ModelAccess:
    """How a chunker asks language models.

    Attributes:
        llm: the models.
        loop: in which they are asked.
        cuts: where cuts are kept.
        pays: whether a document may be cut that was not cut before, which costs money.
    """

    llm: Callable[[], LLM]
    loop: Callable[[], asyncio.Runner]
    cuts: Cache
    pays: bool


@dataclass(frozen=True)
class ChunkerContext:
    """What a chunker may use: embedders by their settings; language models, where there are any."""

    embedder: Callable[[EmbedderConfig], Embedder] = no_embedders
    asking: ModelAccess | None = None


class ChunkerConfig(AdapterConfig):
    """What every chunker's settings hold."""


class Chunker(Adapter, ABC):
    """Cuts documents. Built as ``cls(config, context)``; loads what it needs at first use."""

    Config: ClassVar[type[ChunkerConfig]] = ChunkerConfig

    config: ChunkerConfig

    def __init__(self, config: ChunkerConfig, context: ChunkerContext | None = None) -> None:
        self.config = config
        self.context = context or ChunkerContext()

    def causes(self) -> Causes:
        """All that can change where a document is cut."""
        return self.own_causes()

    def check(self) -> None:
        """Find what it lacks before anything is cut.

        Raises:
            RaggsError: a package, a file or a function is missing.
        """
        return

    def chunk(self, document: Document) -> Iterator[Chunk]:
        """The chunks of a document in the order of their places; none of a document without text.

        Raises:
            ProviderError: the chunker gave what is no place in the document, or went back.
        """
        body, begin, last = document.body, document.begin, (0, 0)
        text = body.text
        for start, end in self.places(body):
            if not 0 <= start <= end <= len(text) or (start, end) < last:
                raise ProviderError(
                    f"the chunker {self.config.type} cut {document.source} at {start}:{end} after {last[0]}:{last[1]}",
                    remedy="give places within the document, in their order",
                )
            last = start, end
            if (piece := text[start:end]).strip():
                yield Chunk(piece, begin + start, begin + end)

    @abstractmethod
    def places(self, document: Document) -> Iterator[TextRange]:
        """Where the chunks of a document stand, in order. `chunk` leaves out those of white space alone.

        Args:
            document: one that begins with its first character.
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
