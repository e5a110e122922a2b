"""Vectors of a corpus as indexes are given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import VectorIndex, open_vectors


def unit(rows: np.ndarray) -> np.ndarray:
    """Each row at length 1, or zeros as they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def clusters(rows: int, dims: int, seed: int = 0, groups: int = 20) -> np.ndarray:
    """Unit vectors around some centres, as those of texts are."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((groups, dims))
    return unit(centres[rng.integers(groups, size=rows)] + 0.7 * rng.standard_normal((rows, dims)))


@contextmanager
def vectors_of(folder: Path, matrix: np.ndarray, ids: Sequence[str] | None = None) -> Iterator[VectorIndex]:
    """A corpus in `folder` whose passages have the rows of `matrix`; their ids are numbers where none are given."""
    names = ids or [f"d{number:06}" for number in range(len(matrix))]
    rows = (Passage(doc_id=name, text=str(number)) for number, name in enumerate(names))
    path = folder / "passages.sqlite"
    with PassageStore.open(path) if path.exists() else PassageStore.build(path, rows) as store:
        yield open_vectors(
            Cache(folder), "test/1", matrix.shape[1], store, lambda texts: matrix[[int(t) for t in texts]]
        )


def crowds(rows: int, dims: int, seed: int = 0, groups: int = 2000) -> np.ndarray:
    """Unit vectors around many centres of very unequal weight: what graphs and lists search in different ways."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((groups, dims))
    return unit(centres[rng.zipf(1.3, rows) % groups] + 0.3 * rng.standard_normal((rows, dims)))
