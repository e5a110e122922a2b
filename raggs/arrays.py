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


def shortest_float(value: float | np.float32) -> float:
    """The double with the fewest digits that reads back as the same float32: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value)))


def shortest_floats(values: Vectors) -> list[float]:
    """`shortest_float` of each number of one row."""
    return [float(str(value)) for value in values]
