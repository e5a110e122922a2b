"""Chunking by meaning: `semantic` splits where neighbours differ, `cluster` finds coherent runs of pieces.

Semantic: splits between neighbours whose vectors are far apart (Kamradt, 2024). Without `max_size`, neighbours are
sentences, by default each embedded with one sentence before and after it. The text is split where the cosine distance
is above the given percentile of the document's distances, and the length of chunks is not limited. With `max_size`,
neighbours are small pieces, by default each embedded with three pieces on both sides, and `fit` defines what the limit
applies to. ``each`` splits any chunk that is too long at its largest distance until it fits. ``largest`` and ``mean``
search for one distance threshold per document (Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval",
2024). ``largest`` follows their report: the largest chunk must fit, so the other chunks may be very small. ``mean``
follows their code: the number of boundaries is at most the text's length divided by `max_size`, and single chunks may
exceed `max_size`.

Pieces are adjacent, so that joined pieces are slices of the text. A piece is embedded together with its neighbours: its
vector is that of the slice from `window` pieces before it to `window` pieces after it. `cluster` embeds each piece
without neighbours.

Cluster: runs of pieces with the highest internal similarity, found by dynamic programming. S is the cosine matrix of
the pieces minus the mean over all pairs, with a zero diagonal. The best boundaries maximise the sum of S over the
blocks of all chunks, each of at most ``size // piece`` pieces: ``best[i] = max over n of best[i - n] + sum of the
block of the last n`` (Smith and Troynikov, 2024). Only a band of S is computed, so that time and memory are linear in
the length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from raggs.base.adapter import OneOf
from raggs.base.settings import Causes
from raggs.parts import embedders
from raggs.parts.chunkers import Document, TextRange
from raggs.parts.chunkers.recursive import recursive
from raggs.parts.chunkers.sentence import sentences
from raggs.parts.chunkers.sizes import MeasuredConfig, MeasuringChunker, drop_repeated_ranges
from raggs.parts.embedders import Embedder, EmbedderConfig, FittingTexts, default_embedder

if TYPE_CHECKING:
    from raggs.base.arrays import Floats, Vectors

PIECE = 50


class EmbeddingConfig(MeasuredConfig):
    """Settings of chunkers that embed pieces of a text."""

    embedder: Annotated[EmbedderConfig, OneOf(embedders.REGISTRY)] = Field(
        default_factory=default_embedder, validate_default=True, description="embedder of the pieces"
    )
    piece: int = Field(PIECE, ge=1, le=100_000, description="maximum length of a piece, in `unit`")


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
        """Embedder of the pieces."""
        return self.context.embedder(self.config.embedder)

    def pieces(self, text: str) -> list[TextRange]:
        """Return the pieces of a text, split as by the chunker `recursive`."""
        return list(recursive(text, (0, len(text)), self.ruler, self.config.piece))

    def vectors(self, text: str, pieces: Sequence[TextRange], window: int) -> Vectors:
        """Return one vector per piece, with unit length or all zeros, shape (pieces, dims).

        An embedder that must be fitted is fitted on the pieces of this text, so that the boundaries of a document
        do not depend on other documents.
        """
        last = len(pieces) - 1
        edges = ((pieces[max(0, at - window)][0], pieces[min(last, at + window)][1]) for at in range(len(pieces)))
        slices = [text[start:end] for start, end in edges]
        return self.embedder.fitted(FittingTexts.of(slices)).embed(slices)


def join_pieces(pieces: Sequence[TextRange], cuts: Sequence[int]) -> list[TextRange]:
    """Join pieces into ranges; `cuts` are the ascending numbers of the pieces that start a range, without 0."""
    firsts, lasts = [0, *cuts], [*cuts, len(pieces)]
    return [(pieces[first][0], pieces[last - 1][1]) for first, last in zip(firsts, lasts, strict=True)]


class SemanticChunker(EmbeddingChunker):
    """Splits where neighbouring sentences differ most in meaning, optionally up to a maximum size."""

    PACKAGES = ("numpy",)

    class Config(EmbeddingConfig):
        type: Literal["semantic"] = "semantic"
        percentile: float = Field(
            95.0,
            gt=0,
            lt=100,
            description="percentile of distances above which the text is split; only without `max_size`",
        )
        max_size: int | None = Field(
            None, ge=1, le=1_000_000, description="maximum chunk size in `unit`; null: no limit"
        )
        fit: Literal["each", "largest", "mean"] = Field(
            "each",
            description="each: long chunks are split again; largest, mean: one threshold per document, so that the "
            "largest chunk fits, or the mean length is about `max_size`",
        )
        window: int | None = Field(
            None,
            ge=0,
            le=100,
            description="neighbours on both sides that are embedded with a piece; null: 1 for sentences, 3 for pieces",
        )

        @model_validator(mode="after")
        def _pieces_fit(self) -> Self:
            if self.max_size is not None and self.max_size < self.piece:
                raise ValueError(f"piece ({self.piece}) must not exceed max_size ({self.max_size})")
            return self

    config: Config

    def places(self, document: Document) -> Iterator[TextRange]:
        text, most = document.text, self.config.max_size
        pieces = list(sentences(text)) if most is None else self.pieces(text)
        if not text.strip():
            return
        window = self.config.window if self.config.window is not None else 1 if most is None else 3
        distances = _distances(self.vectors(text, pieces, window))
        if most is None:
            cuts = _boundaries_above(distances, _percentile(distances, self.config.percentile))
        else:
            lengths = self.ruler.lengths([text[start:end] for start, end in pieces])
            cuts = BOUNDARY_RULES[self.config.fit](distances, lengths, most)
        yield from drop_repeated_ranges(text, join_pieces(pieces, cuts))


def cuts_of_each(distances: Sequence[float], lengths: Sequence[int], most: int) -> list[int]:
    """Return the boundaries that split each range longer than `most` at its largest distance, until all ranges fit.

    Args:
        distances: distance of each piece to the next one.
        lengths: lengths of the pieces; one more item than `distances`.

    Returns:
        Numbers of the pieces that start a chunk, without 0.
    """
    import numpy as np

    known, sums = np.asarray(distances), [0, *accumulate(lengths)]
    cuts, waiting = [], [(0, len(lengths))]
    while waiting:
        first, last = waiting.pop()
        if last - first > 1 and sums[last] - sums[first] > most:
            cut = first + 1 + int(np.argmax(known[first : last - 1]))
            cuts.append(cut)
            waiting += [(first, cut), (cut, last)]
    return sorted(cuts)


def cuts_of_largest(distances: Sequence[float], lengths: Sequence[int], most: int) -> list[int]:
    """Return the boundaries above the largest threshold with which no chunk is longer than `most`.

    If chunks are too long with every threshold, all boundaries are returned.
    """
    sums = [0, *accumulate(lengths)]

    def fits(cuts: list[int]) -> bool:
        edges = [0, *cuts, len(lengths)]
        return max(sums[last] - sums[first] for first, last in pairwise(edges)) <= most

    levels = _distance_levels(distances)
    at = bisect_left(levels, True, hi=len(levels) - 1, key=lambda level: fits(_boundaries_above(distances, level)))
    return _boundaries_above(distances, levels[at])


def cuts_of_mean(distances: Sequence[float], lengths: Sequence[int], most: int) -> list[int]:
    """Return the boundaries above the smallest threshold with at most ``total length // most`` boundaries."""
    wanted = sum(lengths) // most
    levels = _distance_levels(distances)
    at = bisect_left(levels, True, key=lambda level: len(_boundaries_above(distances, level)) > wanted)
    return _boundaries_above(distances, levels[at - 1])


BOUNDARY_RULES: dict[str, Callable[[Sequence[float], Sequence[int], int], list[int]]] = {
    "each": cuts_of_each,
    "largest": cuts_of_largest,
    "mean": cuts_of_mean,
}


def _distance_levels(distances: Sequence[float]) -> list[float]:
    """Return the distance thresholds in descending order; each lower one adds boundaries, from none to all."""
    return [*sorted(set(distances), reverse=True), -1.0]


def _boundaries_above(distances: Sequence[float], level: float) -> list[int]:
    return [number for number, distance in enumerate(distances, start=1) if distance > level]


def _distances(vectors: Vectors) -> list[float]:
    """Return 1 - cosine of each vector to the next one, in float64."""
    import numpy as np

    products = np.sum(vectors[1:] * vectors[:-1], axis=1, dtype=np.float64)
    return [1.0 - float(each) for each in np.atleast_1d(products)]


def _percentile(distances: Sequence[float], percentile: float) -> float:
    import numpy as np

    return float(np.percentile(distances, percentile)) if distances else 0.0


class ClusterChunker(EmbeddingChunker):
    """Joins pieces of similar meaning into chunks up to a size, with boundaries by dynamic programming."""

    PACKAGES = ("numpy",)

    class Config(EmbeddingConfig):
        type: Literal["cluster"] = "cluster"
        size: int = Field(200, ge=1, le=1_000_000, description="maximum chunk size, in `unit`")

        @model_validator(mode="after")
        def _pieces_fit(self) -> Self:
            if self.size < self.piece:
                raise ValueError(f"piece ({self.piece}) must not exceed size ({self.size})")
            return self

    config: Config

    def places(self, document: Document) -> Iterator[TextRange]:
        text = document.text
        if text.strip():
            pieces = self.pieces(text)
            cuts = best_blocks(self.vectors(text, pieces, 0), self.config.size // self.config.piece)
            yield from drop_repeated_ranges(text, join_pieces(pieces, cuts))


def best_blocks(vectors: Vectors, most: int) -> list[int]:
    """Return the numbers of the pieces that start a chunk, without 0, so that the summed similarity is highest.

    Args:
        vectors: one row per piece, of unit length or zero.
        most: maximum number of pieces per chunk.
    """
    import numpy as np

    count = len(vectors)
    most = min(most, count)
    reached = _band_similarities(vectors, most)
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


def _band_similarities(vectors: Vectors, most: int) -> Floats:
    """Return the sums of each row's similarities to the last 1, 2, ... rows before it, shape (rows, most - 1)."""
    import numpy as np

    count = len(vectors)
    total = vectors.sum(axis=0, dtype=np.float64)
    own = float(np.sum(vectors * vectors, dtype=np.float64))
    mean = (float(total @ total) - own) / max(1, count * (count - 1))
    band = np.zeros((count, most - 1))
    for back in range(1, most):
        band[back:, back - 1] = np.sum(vectors[back:] * vectors[:-back], axis=1, dtype=np.float64) - mean
    return band.cumsum(axis=1)
