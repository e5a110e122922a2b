"""Parts of findings that several kinds have."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from raggs.base.jsontypes import Number, number
from raggs.evaluation.document import Cell, Form, bounded
from raggs.evaluation.models import Part
from raggs.metrics.stats import Interval


class MeanPart(Part):
    """A mean with its 95% interval over resampled questions; bounds are null where too few resamples have a value."""

    mean: Number = None
    low: Number = Field(None, description="bound of the 95% interval (bootstrap)")
    high: Number = None

    @classmethod
    def of(cls, found: Interval) -> Self:
        """From an interval."""
        return cls(mean=number(found.mean), low=number(found.low), high=number(found.high))

    @property
    def clear(self) -> bool:
        """Whether 0 lies outside."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def cell(self, form: Form = "score", mark: str = "") -> Cell:
        """As it stands in a table."""
        return bounded(self.mean, self.low, self.high, form, mark)
