"""Numbers rounded to what a model or an index of less than 32 bits would hold, and the step after it at full precision.

A scorer that works in half precision gives many equal scores. What is lost is lost in the parts (vectors, logits);
the last step (dot product, sigmoid, softmax) costs nothing at float32 and, where it is not rounded again, keeps apart
what the parts can tell apart. `rounded` gives the parts as such a scorer has them, as float32 numbers.
"""

from __future__ import annotations

from pydantic import Field

from raggs.base.arrays import Dtype, Vectors, round_to_dtype
from raggs.base.settings import Settings

__all__ = ["Dtype", "PrecisionSettings", "round_to_dtype"]


class PrecisionSettings(Settings):
    """At which precision scores are computed."""

    dtype: Dtype = Field("f32", description="what the parts of a score (vectors, logits) are rounded to")
    high_precision: bool = Field(
        True, description="whether the last step (product, sigmoid, softmax) is not rounded again"
    )

    def part(self, values: Vectors) -> Vectors:
        """The parts of a score, rounded."""
        return round_to_dtype(values, self.dtype)

    def last(self, values: Vectors) -> Vectors:
        """The scores that the last step gave in float32: as they are, or rounded again."""
        return values if self.high_precision else round_to_dtype(values, self.dtype)
