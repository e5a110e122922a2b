"""From a share of what an answer needs to a grade; shared by the judges that count."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

Share = Annotated[float, Field(gt=0, le=1)]


def _rising(values: tuple[float, float, float]) -> tuple[float, float, float]:
    if not values[0] < values[1] < values[2]:
        raise ValueError(f"thresholds must rise, {values} do not")
    return values


Thresholds = Annotated[tuple[Share, Share, Share], AfterValidator(_rising)]


def grade_of(share: float, thresholds: tuple[float, float, float]) -> int:
    """1 for nothing at all, 2 for anything, 3 to 5 from the three thresholds up. `share` is in 0..1."""
    if share <= 0:
        return 1
    # A sum of weights may miss a threshold by its last bit.
    return 2 + sum(share >= threshold - 1e-9 for threshold in thresholds)
