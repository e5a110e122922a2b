"""What an array holds, said once: aliases by element type, and how float32 becomes JSON.

A shape cannot be said in a type; docstrings give it. Small integers of a fixed width (ranks, histograms) keep their
own types where they are made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Vectors = NDArray[np.float32]  # what embedders give: one vector a row
Scores = NDArray[np.float32]  # what indexes give for passages
SmallInts = NDArray[np.int32]
Keys = NDArray[np.uint64]  # hashes that stand for ids
ByteTexts = NDArray[np.bytes_]  # texts as bytes, all of one width
Buffer = NDArray[np.uint8]  # bytes as they lie in a file


def unit_rows(rows: Floats | Vectors) -> Floats | Vectors:
    """Finite rows at unit length; a row of zeros stays as it is.

    A norm can overflow or underflow although every number is finite: such a row is scaled by a power of two first.
    """
    kind = np.finfo(rows.dtype)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    small = norms < np.sqrt(kind.tiny) / kind.eps  # whose squares lose digits
    extreme = (small | ~np.isfinite(norms))[:, 0] & rows.any(axis=1)
    if extreme.any():
        rows = rows.copy()
        _, exponents = np.frexp(np.abs(rows[extreme]).max(axis=1, keepdims=True))
        rows[extreme] = np.ldexp(rows[extreme], -exponents)
        norms[extreme] = np.linalg.norm(rows[extreme], axis=1, keepdims=True)
    unit: Floats | Vectors = rows / np.where(norms > 0, norms, 1)
    return unit


def shortest_float(value: float | np.float32) -> float:
    """The double with the fewest digits that reads back as the same float32: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value)))


def shortest_floats(values: Vectors) -> list[float]:
    """`shortest_float` of each number of one row."""
    return [float(str(value)) for value in values]
