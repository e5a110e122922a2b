"""A text cut into the runs of pieces that are most alike among themselves, by dynamic programming.

With S the cosines of small pieces less the mean of all pairs, and a zero diagonal, the best cut maximises the sum of S
over the blocks of all chunks, each of at most ``size // piece`` pieces: ``best[i] = max over n of best[i - n] + sum of
the block of the last n`` (Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", 2024). Only a band of S
is ever computed, so that time and memory grow with the length of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from raggs.parts.chunkers.base import Document, Place
from raggs.parts.chunkers.semantic import EmbeddingChunker, EmbeddingConfig, between
from raggs.parts.chunkers.sizes import fresh

if TYPE_CHECKING:
    from raggs.base.arrays import Floats, Vectors


class ClusterChunker(EmbeddingChunker):
    """Runs of pieces that are most alike in meaning, found by dynamic programming, up to a size."""

    PACKAGES = ("numpy",)

    class Config(EmbeddingConfig):
        type: Literal["cluster"] = "cluster"
        size: int = Field(200, ge=1, le=1_000_000, description="the most that a chunk holds, in `unit`")

        @model_validator(mode="after")
        def _pieces_fit(self) -> Self:
            if self.size < self.piece:
                raise ValueError(f"pieces of {self.piece} are longer than the size {self.size}")
            return self

    config: Config

    def places(self, document: Document) -> Iterator[Place]:
        text = document.text
        if text.strip():
            pieces = self.pieces(text)
            cuts = best_blocks(self.vectors(text, pieces, 0), self.config.size // self.config.piece)
            yield from fresh(text, between(pieces, cuts))


def best_blocks(vectors: Vectors, most: int) -> list[int]:
    """Where the runs begin, without the first, whose blocks of similarity have the largest sum.

    Args:
        vectors: of unit length or zeros, one a row.
        most: rows in a run.
    """
    import numpy as np

    count = len(vectors)
    most = min(most, count)
    reached = _reached(vectors, most)
    best, size, blocks = np.zeros(count + 1), np.ones(count + 1, dtype=np.int64), np.zeros(most)
    for row in range(count):
        blocks[1:] = blocks[:-1] + 2.0 * reached[row]
        blocks[0] = 0.0
        known = min(most, row + 1)
        sums = best[row + 1 - known : row + 1][::-1] + blocks[:known]
        size[row + 1] = 1 + int(np.argmax(sums))
        best[row + 1] = sums[size[row + 1] - 1]
    cuts = []
    at = count - int(size[count])
    while at > 0:
        cuts.append(at)
        at -= int(size[at])
    return cuts[::-1]


def _reached(vectors: Vectors, most: int) -> Floats:
    """For each row the sums of its similarities to the nearest 1, 2, ... rows before it, shape (rows, most - 1)."""
    import numpy as np

    count = len(vectors)
    total = vectors.sum(axis=0, dtype=np.float64)
    own = float(np.sum(vectors * vectors, dtype=np.float64))
    mean = (float(total @ total) - own) / max(1, count * (count - 1))
    band = np.zeros((count, most - 1))
    for back in range(1, most):
        band[back:, back - 1] = np.sum(vectors[back:] * vectors[:-back], axis=1, dtype=np.float64) - mean
    return band.cumsum(axis=1)
