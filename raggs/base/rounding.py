"""Numbers rounded to what fewer than 32 bits hold, as float32 numbers: pure arithmetic, for libraries too."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raggs.base.arrays import Vectors

Dtype = Literal["f32", "f16", "bf16"]


def rounded(values: Vectors, dtype: Dtype) -> Vectors:
    """Each number as `dtype` holds it, as float32, any shape; halves go to the even neighbour (IEEE 754).

    What is too large for f16 (above 65,504) becomes infinite, as it would there; NaN stays NaN.
    """
    exact: Vectors = np.asarray(values, dtype=np.float32)
    if dtype == "bf16":
        return _bf16(exact)
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return exact.astype(np.float16).astype(np.float32)
    return exact


def _bf16(values: Vectors) -> Vectors:
    """The upper half of each float32, rounded to nearest even: (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    carried = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    found: Vectors = carried.view(np.float32).reshape(values.shape)
    return np.where(np.isnan(values), values, found)
