"""What chunkers share that look for changes of meaning: small pieces of a text, and their vectors.

Pieces leave no gap, so that whatever is put together is a slice of the text. A piece's vector is that of a window: the
slice from so many pieces before it to so many after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from raggs.base.adapter import OneOf
from raggs.base.settings import Causes
from raggs.parts import embedders
from raggs.parts.chunkers.base import Place
from raggs.parts.chunkers.recursive import recursive
from raggs.parts.chunkers.sizes import MeasuredConfig, MeasuringChunker
from raggs.parts.embedders.base import Embedder, EmbedderConfig

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors

PIECE = 50


class EmbeddingConfig(MeasuredConfig):
    """What the settings of a chunker hold that embeds pieces of a text."""

    embedder: Annotated[EmbedderConfig, OneOf(embedders.REGISTRY)] = Field(
        {"type": "wordllama"}, validate_default=True, description="makes the vectors of pieces"
    )
    piece: int = Field(PIECE, ge=1, le=100_000, description="the most that a piece holds, in `unit`")


class EmbeddingChunker(MeasuringChunker):
    """A chunker that embeds pieces of a text."""

    config: EmbeddingConfig

    def causes(self) -> Causes:
        return {**super().causes(), "embedder": self.embedder.causes()}

    def check(self) -> None:
        super().check()
        self.embedder.causes()

    @cached_property
    def embedder(self) -> Embedder:
        """By which pieces are compared."""
        return self.context.embedder(self.config.embedder)

    def pieces(self, text: str) -> list[Place]:
        """A text in pieces, cut as the chunker `recursive` does."""
        return list(recursive(text, (0, len(text)), self.ruler, self.config.piece))

    def vectors(self, text: str, pieces: Sequence[Place], window: int) -> Vectors:
        """A vector for each piece, of unit length or zeros, shape (pieces, dims)."""
        last = len(pieces) - 1
        edges = ((pieces[max(0, at - window)][0], pieces[min(last, at + window)][1]) for at in range(len(pieces)))
        return self.embedder.embed([text[start:end] for start, end in edges])


def between(pieces: Sequence[Place], cuts: Sequence[int]) -> list[Place]:
    """Pieces put together: `cuts` are the numbers of those that begin a place besides the first, ascending."""
    firsts, lasts = [0, *cuts], [*cuts, len(pieces)]
    return [(pieces[first][0], pieces[last - 1][1]) for first, last in zip(firsts, lasts, strict=True)]
