"""Corpora of documents that a chunker cuts: what their settings and they themselves have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from raggs.base.adapter import OneOf
from raggs.base.hashing import hash_value
from raggs.parts import chunkers
from raggs.parts.chunkers.base import Chunker, ChunkerConfig, Document
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.chunkers.paragraphs import ParagraphsChunker
from raggs.parts.corpora.base import Corpus

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
    if chunker is not None and max_words != MAX_WORDS:
        raise ValueError("max_words is of no use beside a chunker; say it in the chunker {type: paragraphs}")
