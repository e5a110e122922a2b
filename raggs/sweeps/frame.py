"""A sweep's report as a pandas frame, where pandas is installed; raggs itself does not need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.evaluation.frame import frame_of
from raggs.sweeps.models import SweepReport
from raggs.sweeps.writers import table_rows

if TYPE_CHECKING:
    from pandas import DataFrame


def make_frame(report: SweepReport) -> DataFrame:
    """A row for each system, with the columns of sweep.csv; see `SweepReport.frame`."""
    head, *rows = table_rows(report)
    return frame_of([str(title) for title in head], rows)
