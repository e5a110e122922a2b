"""Vectors of texts, kept by text: whoever shares a text shares its vector, now and the next time.

One file an embedder, below the caches of embeddings; whatever it holds can be made again. A row that is damaged, or of
another length than the embedder's, is made again. A piece of a document is read from there in a fifth of the time that
even the quickest embedder takes, but a file costs some milliseconds: what took less than that to make is not written
down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from raggs.base.arrays import Vectors
from raggs.base.errors import ProviderError
from raggs.base.hashing import hash_value
from raggs.base.stores import StoredFile
from raggs.base.text import fold_quotes
from raggs.base.types import Notify, unheard
from raggs.parts.embedders import Embedder

STEP = 256  # texts embedded at a time, so that whoever watches hears of them
HELD = 1024  # vectors made before they are written, where documents are embedded one by one
WORTH_S = 0.25  # seconds of making from which vectors are worth a file
REMEDY = "choose another workspace"


def nobody(done: int, total: int) -> None:
    """Where nobody watches."""


class KeptVectors:
    """The vectors of one embedder.

    Args:
        embedder: makes them.
        folder: of the file.
        tell: hears how many of how many texts are embedded.
        held: vectors that wait in memory until they are written together; `flush` writes them. With 1, a kill costs
            `STEP` at most.
        notify: hears of vectors that are not what was kept.

    Attributes:
        found: vectors that need not be made.
    """

    def __init__(
        self,
        embedder: Embedder,
        folder: Path,
        tell: Callable[[int, int], None] = nobody,
        *,
        held: int = 1,
        notify: Notify = unheard,
    ) -> None:
        self._embedder = embedder
        self._kept = StoredFile(folder / f"texts-{hash_value(embedder.causes())[:16]}.sqlite", REMEDY, notify)
        self._tell = tell
        self._held = held
        self._waiting: dict[str, bytes] = {}
        self._seconds = 0.0
        self.found = 0

    def of(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text, shape (texts, dims).

        Raises:
            ProviderError: the embedder failed, or the folder cannot be written.
        """
        import numpy as np

        keys, size = [hash_value(fold_quotes(text)) for text in texts], 4 * self._embedder.dims
        known = {key: self._waiting[key] for key in keys if key in self._waiting}
        known |= {key: row for key, row in self._kept.find(keys).items() if len(row) == size}
        self.found += len(known)
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for part in self._steps(list(lacking.items())):
            self._waiting |= part
            known |= part
            if len(self._waiting) >= self._held:
                self.flush()
        rows = np.frombuffer(b"".join(known[key] for key in keys), dtype="<f4")
        return rows.reshape(len(texts), self._embedder.dims).astype(np.float32)

    def flush(self, *, worth_s: float = 0.0) -> None:
        """Write what waits, if its making took `worth_s` seconds.

        Raises:
            ProviderError: the folder cannot be written.
        """
        if self._waiting and self._seconds >= worth_s:
            self._kept.put(self._waiting)
        self._waiting, self._seconds = {}, 0.0

    def _steps(self, lacking: Sequence[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """The vectors of texts that are not known, some at a time."""
        for start in range(0, len(lacking), STEP):
            part, began = lacking[start : start + STEP], time.perf_counter()
            vectors = self._embedder.embed([text for _, text in part]).astype("<f4")
            self._seconds += time.perf_counter() - began
            yield {key: vector.tobytes() for (key, _), vector in zip(part, vectors, strict=True)}
            self._tell(start + len(part), len(lacking))


class KeptEmbedder(Embedder):
    """An embedder whose vectors are kept, as chunkers are lent one: they embed pieces, document by document."""

    def __init__(self, inner: Embedder, folder: Path, notify: Notify = unheard) -> None:
        self.config = inner.config
        self._inner = inner
        self._vectors = KeptVectors(inner, folder, held=HELD, notify=notify)

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

    @property
    def found(self) -> int:
        """Vectors that need not be made."""
        return self._vectors.found

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._vectors.of(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._inner.embed_queries(texts)

    def close(self) -> None:
        """Write what waits, where that is worth it and possible: it can be made again."""
        with suppress(ProviderError):
            self._vectors.flush(worth_s=WORTH_S)
