"""The language reference that CPython includes, as a demonstration corpus that needs no download.

`pydoc_data.topics` contains help texts, such as that of ``help("yield")``. The texts differ between versions of Python,
so the hash covers the texts, not the version. Each topic is a document in reStructuredText.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Literal, Self

from pydantic import Field, model_validator

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Span
from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.settings import AddedLater, Causes
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document
from raggs.parts.chunkers.paragraphs import heading_of
from raggs.parts.chunkers.sizes import trim_range
from raggs.parts.corpora import DEFAULT_MAX_WORDS, ChunkerSpec, CutCorpus, refuse_two_sizes
from raggs.parts.documents.markdown import RstReader, rst_blocks


class PydocConfig(AdapterConfig):
    type: Literal["pydoc"] = "pydoc"
    max_words: int = Field(DEFAULT_MAX_WORDS, ge=20, description="maximum words per passage if no chunker is set")
    chunker: AddedLater[ChunkerSpec | None] = Field(
        None, description="chunker of the topics; null: whole paragraphs of up to `max_words` words"
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        refuse_two_sizes(self.chunker, self.max_words)
        return self

    def recut(self, chunker: ChunkerConfig) -> PydocConfig:
        """Return the settings of the same topics with another chunker."""
        return self.model_copy(update={"chunker": chunker, "max_words": DEFAULT_MAX_WORDS})


class PydocCorpus(CutCorpus):
    """The language reference of CPython (pydoc topics), several hundred passages."""

    Config = PydocConfig
    config: PydocConfig

    @property
    def place(self) -> str:
        return "pydoc"

    @property
    def named(self) -> ChunkerConfig | None:
        return self.config.chunker

    def causes(self) -> Causes:
        """Return the causes of the corpus; with a chunker, also of the chunker and the reader that finds sections."""
        found = self.own_causes()
        if self.named is None:
            return found
        return {**found, "chunker": self._chunker.causes(), "sections": RstReader().causes()}

    def source_hash(self) -> str:
        """Return a hash of the texts of all topics."""
        return hash_value(_topics())

    def documents(self) -> Iterator[Document]:
        """Yield every topic, sorted by name."""
        for topic, text in sorted(_topics().items()):
            yield Document(text, topic, blocks=partial(rst_blocks, text))

    def passages(self) -> Iterator[Passage]:
        """Yield the passages of all topics, sorted by topic, each with its span (see `Corpus.passages`)."""
        for document in self.documents():
            topic, text = document.source, document.text
            title = heading_of(text) or topic
            for number, chunk in enumerate(self._chunker.chunk(document), start=1):
                start, end = trim_range(text, (chunk.start, chunk.end))
                span = Span(source=topic, start=start, end=end)
                yield Passage(doc_id=f"{topic}#{number}", title=title, text=text[start:end], span=span)

    @cached_property
    def _chunker(self) -> Chunker:
        return self.cutter(self.config.max_words)


def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics  # 700 kB of text
    except ImportError as error:  # some distributions package the documentation separately
        remedy = "install the documentation package of your Python, or choose another corpus"
        raise PrerequisiteError("this Python does not include pydoc_data", remedy=remedy) from error
    return dict(topics)
