"""Aliases of array types by element type, conversion of float32 to JSON, and rounding to lower precision.

Types cannot express shapes, so docstrings state the shapes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Vectors = NDArray[np.float32]  # output of embedders: one vector per row
Scores = NDArray[np.float32]  # scores of passages from indexes
SmallInts = NDArray[np.int32]
Keys = NDArray[np.uint64]  # hashes that represent ids
ByteTexts = NDArray[np.bytes_]  # texts as bytes, all with the same width
Buffer = NDArray[np.uint8]  # raw bytes of a file


def unit_rows(rows: Floats | Vectors) -> Floats | Vectors:
    """Return finite rows scaled to unit length. A row of zeros stays unchanged.

    A norm can overflow or underflow although every number is finite. Such a row is scaled by a power of two first.
    """
    kind = np.finfo(rows.dtype)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    small = norms < np.sqrt(kind.tiny) / kind.eps  # their squares lose digits
    extreme = (small | ~np.isfinite(norms))[:, 0] & rows.any(axis=1)
    if extreme.any():
        rows = rows.copy()
        _, exponents = np.frexp(np.abs(rows[extreme]).max(axis=1, keepdims=True))
        rows[extreme] = np.ldexp(rows[extreme], -exponents)
        norms[extreme] = np.linalg.norm(rows[extreme], axis=1, keepdims=True)
    unit: Floats | Vectors = rows / np.where(norms > 0, norms, 1)
    return unit


def shortest_float(value: float | np.float32) -> float:
    """Return the double with the fewest digits that reads back as the same float32: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value)))


def shortest_floats(values: Vectors) -> list[float]:
    """Return `shortest_float` of each number of one row."""
    return [float(str(value)) for value in values]


Dtype = Literal["f32", "f16", "bf16"]


def round_to_dtype(values: Vectors, dtype: Dtype) -> Vectors:
    """Return numbers of any shape rounded to `dtype`, as float32. Ties are rounded to even (IEEE 754).

    Numbers too large for f16 (above 65,504) become infinite, as in f16. NaN stays NaN.
    """
    exact: Vectors = np.asarray(values, dtype=np.float32)
    if dtype == "bf16":
        return _bf16(exact)
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return exact.astype(np.float16).astype(np.float32)
    return exact


def _bf16(values: Vectors) -> Vectors:
    """Return the upper half of each float32, rounded to nearest even: (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    carried = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    found: Vectors = carried.view(np.float32).reshape(values.shape)
    return np.where(np.isnan(values), values, found)
