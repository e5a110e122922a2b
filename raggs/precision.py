"""Numbers rounded to what a model or an index of less than 32 bits would hold, and the step after it at full precision.

A scorer that works in half precision gives many equal scores. What is lost is lost in the parts (vectors, logits);
the last step (dot product, sigmoid, softmax) costs nothing at float32 and, where it is not rounded again, keeps apart
what the parts can tell apart. `rounded` gives the parts as such a scorer has them, as float32 numbers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from raggs.arrays import Vectors
from raggs.settings import Settings

Dtype = Literal["f32", "f16", "bf16"]


class Scoring(Settings):
    """At which precision scores are computed."""

    dtype: Dtype = Field("f32", description="what the parts of a score (vectors, logits) are rounded to")
    high_precision: bool = Field(
        True, description="whether the last step (product, sigmoid, softmax) is not rounded again"
    )

    def part(self, values: Vectors) -> Vectors:
        """The parts of a score, rounded."""
        return rounded(values, self.dtype)

    def last(self, values: Vectors) -> Vectors:
        """The scores that the last step gave in float32: as they are, or rounded again."""
        return values if self.high_precision else rounded(values, self.dtype)


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
