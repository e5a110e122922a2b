"""Cache of text vectors: equal texts share one vector, within a run and across runs.

The embeddings cache contains one file per embedder, whose content can be computed again. A row that is damaged or
has other dimensions is computed again. Reading a vector takes a fifth of the time in which the fastest embedder
computes it. Writing a file takes some milliseconds, so `close` writes the remaining vectors only if computing them took
at least `WORTH_S` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from raggs.base.arrays import Vectors
from raggs.base.cache import Cache
from raggs.base.errors import ProviderError
from raggs.base.hashing import hash_value
from raggs.base.text import fold_quotes
from raggs.parts.embedders import Embedder

TEXTS_PER_REPORT = 256  # texts embedded between two progress reports
# vectors collected in memory before they are written, if documents are embedded one by one
MAX_UNWRITTEN_VECTORS = 1024
WORTH_S = 0.25  # minimum time, in seconds, that embedding took if `close` writes its vectors


def ignore_counts(done: int, total: int) -> None:
    """Ignore a progress report."""


class KeptEmbedder(Embedder):
    """An embedder with a cache of passage vectors by text.

    Args:
        inner: embedder of uncached texts.
        cache: cache of the vectors.
        tell: called with the number of embedded texts and their total.
        held: number of vectors collected in memory before they are written together; for the rest, see `close`. If it
            is 1, a killed process loses at most `TEXTS_PER_REPORT` vectors.

    Attributes:
        found: number of vectors found in the cache, or among those that are not yet written.
    """

    def __init__(
        self, inner: Embedder, cache: Cache, tell: Callable[[int, int], None] = ignore_counts, *, held: int = 1
    ) -> None:
        self.config = inner.config
        self._inner = inner
        self._kept = cache.table(f"texts-{hash_value(inner.causes())[:16]}")
        self._tell = tell
        self._held = held
        self._waiting: dict[str, bytes] = {}
        self._seconds = 0.0
        self.found = 0

    @property
    def models(self) -> tuple[str, ...]:
        return self._inner.models

    @property
    def identity(self) -> str:
        return self._inner.identity

    def causes(self) -> dict[str, object]:
        return self._inner.causes()

    @property
    def dims(self) -> int:
        return self._inner.dims

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, shape (texts, dims).

        Raises:
            ProviderError: the embedder failed, or the cache cannot be written.
        """
        import numpy as np

        keys, size = [hash_value(fold_quotes(text)) for text in texts], 4 * self.dims
        known = {key: self._waiting[key] for key in keys if key in self._waiting}
        known |= {key: row for key, row in self._kept.find(keys).items() if len(row) == size}
        self.found += len(known)
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for part in self._steps(list(lacking.items())):
            self._waiting |= part
            known |= part
            if len(self._waiting) >= self._held:
                self._flush()
        rows = np.frombuffer(b"".join(known[key] for key in keys), dtype="<f4")
        return rows.reshape(len(texts), self.dims).astype(np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._inner.embed_queries(texts)

    def close(self) -> None:
        """Write collected vectors if they took long enough to compute; write errors are ignored."""
        if self._seconds >= WORTH_S:
            with suppress(ProviderError):
                self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._kept.put(self._waiting)
        self._waiting, self._seconds = {}, 0.0

    def _steps(self, lacking: Sequence[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """Yield the vectors of uncached texts, in parts."""
        for start in range(0, len(lacking), TEXTS_PER_REPORT):
            part, began = lacking[start : start + TEXTS_PER_REPORT], time.perf_counter()
            vectors = self._inner.embed([text for _, text in part]).astype("<f4")
            self._seconds += time.perf_counter() - began
            yield {key: vector.tobytes() for (key, _), vector in zip(part, vectors, strict=True)}
            self._tell(start + len(part), len(lacking))
