"""Rows as a pandas frame, where pandas is installed; raggs itself does not need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from raggs.base.errors import PrerequisiteError

if TYPE_CHECKING:
    from pandas import DataFrame


def frame_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """A frame of rows with as many cells as `head` has titles.

    Raises:
        PrerequisiteError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise PrerequisiteError("a frame needs pandas", remedy="pip install pandas") from error
    return DataFrame([list(row) for row in rows], columns=list(head))
