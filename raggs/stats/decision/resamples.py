"""Means over resampled queries, the same draw for all systems: what would other questions of the same kind have shown?

The nonparametric bootstrap over queries (Efron and Tibshirani, 1993, chapter 6; section 4.1 of Dallaire, 2025). Systems
are compared on shared draws, so that what makes a question hard for all of them cancels out. A system's means depend on
its own values and the seed alone, never on which systems stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats
from raggs.base.seeds import generator

DRAWS = 1_000
CELLS = 1_000_000  # of the matrix of counts at a time: 8 MB


def checked_values(values: npt.ArrayLike, systems: int) -> Floats:
    """Values of shape (systems, queries), NaN where a measure is undefined.

    Raises:
        ValueError: another shape, or a value that is infinite.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != systems:
        raise ValueError(f"values of {systems} systems by query are needed, got the shape {matrix.shape}")
    if np.isinf(matrix).any():
        raise ValueError("a value is infinite; use NaN where a measure is undefined")
    return matrix


def resampled_means(values: Floats, *, draws: int, seed: int) -> Iterator[Floats]:
    """Means over resampled queries, chunk by chunk of shape (draws in the chunk, systems), `draws` in all.

    Args:
        values: shape (systems, queries); NaN is left out, and a draw without a valid value is NaN.
        draws: at least 1.
        seed: of the run.

    Raises:
        ValueError: no draw.
    """
    if draws < 1:
        raise ValueError(f"at least one draw is needed, got {draws}")
    patterns, of_row = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    filled, weights = np.nan_to_num(values), patterns.astype(np.float64)
    for counts in _counts(values.shape[1], draws, seed):
        # einsum, not BLAS: that rounds by the number of rows and of threads.
        totals = np.einsum("dq,sq->ds", counts, filled)
        drawn = np.einsum("dq,pq->dp", counts, weights)[:, of_row.ravel()]
        yield np.divide(totals, drawn, out=np.full_like(totals, np.nan), where=drawn > 0)


def _counts(queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each query is drawn, a chunk of the draws at a time: shape (draws in the chunk, queries)."""
    rng, step = generator(seed, "decision", queries), max(1, CELLS // max(queries, 1))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = rng.integers(queries, size=(rows, queries)) if queries else np.zeros((rows, 0), dtype=np.int64)
        places = drawn + queries * np.arange(rows)[:, None]
        yield np.bincount(places.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)
