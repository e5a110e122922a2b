"""Vectors of texts, kept by text: ways of cutting that share a chunk share its vector, now and in the next comparison.

One file an embedder, below the caches of embeddings; whatever it holds can be made again. A row of another
length than the embedder's is made again, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from raggs.arrays import Vectors
from raggs.embedders.base import Embedder
from raggs.hashing import hash_value
from raggs.kept import Kept

STEP = 256  # texts embedded before they are kept: what a kill costs at most
REMEDY = "choose another --out"


class KeptVectors:
    """The vectors of one embedder.

    Args:
        embedder: makes them.
        folder: of the file.
        tell: hears how many of how many texts are embedded.
    """

    def __init__(self, embedder: Embedder, folder: Path, tell: Callable[[int, int], None]) -> None:
        self._embedder = embedder
        self._kept = Kept(folder / f"texts-{hash_value(embedder.causes())[:16]}.sqlite", REMEDY)
        self._tell = tell

    def of(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text, shape (texts, dims).

        Raises:
            ProviderError: the embedder failed, or the folder cannot be written.
        """
        keys, size = [hash_value(text) for text in texts], 4 * self._embedder.dims
        known = {key: row for key, row in self._kept.find(keys).items() if len(row) == size}
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for part in self._steps(list(lacking.items())):
            self._kept.put(part)
            known |= part
        rows = np.frombuffer(b"".join(known[key] for key in keys), dtype="<f4")
        return rows.reshape(len(texts), self._embedder.dims).astype(np.float32)

    def _steps(self, lacking: Sequence[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """The vectors of texts that are not known, some at a time."""
        for start in range(0, len(lacking), STEP):
            part = lacking[start : start + STEP]
            vectors = self._embedder.embed([text for _, text in part]).astype("<f4")
            yield {key: vector.tobytes() for (key, _), vector in zip(part, vectors, strict=True)}
            self._tell(start + len(part), len(lacking))
