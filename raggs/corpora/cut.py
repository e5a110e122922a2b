"""Corpora of documents that a chunker cuts: what their settings and they themselves have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from raggs import chunkers
from raggs.adapter import OneOf
from raggs.chunkers.base import Chunker, ChunkerConfig, Document
from raggs.chunkers.paragraphs import ParagraphsChunker
from raggs.corpora.base import Corpus

ChunkerSpec = Annotated[ChunkerConfig, OneOf(chunkers.REGISTRY)]
MAX_WORDS = 200


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

    def cutter(self, max_words: int) -> Chunker:
        """Who cuts; of whole paragraphs a passage holds up to `max_words` words."""
        return self.context.chunker(self.named or ParagraphsChunker.Config(max_words=max_words))


def refuse_two_sizes(chunker: ChunkerConfig | None, max_words: int) -> None:
    """
    Raises:
        ValueError: a size is given beside a chunker, which has its own.
    """
    if chunker is not None and max_words != MAX_WORDS:
        raise ValueError("max_words is of no use beside a chunker; say it in the chunker {type: paragraphs}")
