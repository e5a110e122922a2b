"""What is believed of a judge before it is asked, as records hold it.

Imports: no room.
"""

from __future__ import annotations

from operator import not_

from pydantic import Field

from raggs.base.frozen import Frozen

LEAST = 0.001  # doubt: with less, no answer could shake what is believed


class JudgeProfile(Frozen):
    """What the lists of a few questions taught of the judge, as the ranking of every question takes it in."""

    questions: int = Field(ge=1, description="whose lists of several lengths it was learned from")
    sharpness: float = Field(gt=0, le=1000, description="for lists of five: 3 tells a grade apart 19 times in 20")
    doubt: float = Field(ge=LEAST, description="standard error of its logarithm")
    left: tuple[float, ...] = Field((), description="what is left of its care at each pick of a list; empty: all")
    strain: float = Field(
        0.0, ge=0, le=10, description="what a long list costs it: (5 / length)^strain of its care is left"
    )
    overhead: float = Field(0.0, ge=0, description="what a call costs beside its passages, in passages")
    sigma: float = Field(0.5, gt=0, description="how far utilities spread around the grade deserved, in grades")
    slip: float = Field(0.25, ge=0, le=0.9, description="share of the grades that are one off the deserved one")
    favour: tuple[float, ...] = Field(
        (),
        exclude_if=not_,
        description="what places from the first of a list to the last add to the log-odds of being picked; empty: "
        "nothing",
    )
    favour_doubt: float | None = Field(
        None,
        ge=LEAST,
        exclude_if=not_,
        description="standard error of each of these; null: nothing was learned of them",
    )
    echo: float = Field(
        0.0, ge=0, le=0.9, exclude_if=not_, description="correlation of its errors when it meets a pair again"
    )
