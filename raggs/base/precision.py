"""Scores as computed by a model or index with fewer than 32 bits, with an optional last step in full precision.

A scorer in half precision produces many ties. The precision is lost in the parts of a score (vectors, logits). The last
step (dot product, sigmoid, softmax) is cheap in float32. If its result is not rounded again, two scores are rarely
equal unless their parts are. `PrecisionSettings` rounds the parts as such a scorer would, and returns float32 numbers.
"""

from __future__ import annotations

from pydantic import Field

from raggs.base.arrays import Dtype, Vectors, round_to_dtype
from raggs.base.settings import Settings

__all__ = ["Dtype", "PrecisionSettings", "round_to_dtype"]


class PrecisionSettings(Settings):
    """Precision of score computations."""

    dtype: Dtype = Field("f32", description="precision of the parts of a score (vectors, logits)")
    high_precision: bool = Field(
        True, description="keep the result of the last step (product, sigmoid, softmax) in float32"
    )

    def part(self, values: Vectors) -> Vectors:
        """Return the parts of a score, rounded."""
        return round_to_dtype(values, self.dtype)

    def last(self, values: Vectors) -> Vectors:
        """Return the float32 results of the last step, rounded again unless `high_precision` is set."""
        return values if self.high_precision else round_to_dtype(values, self.dtype)
