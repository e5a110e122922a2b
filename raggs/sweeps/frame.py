"""A sweep's report as a pandas frame, where pandas is installed; raggs itself does not need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.errors import PrerequisiteError
from raggs.sweeps.models import SweepReport
from raggs.sweeps.writers import table_rows

if TYPE_CHECKING:
    from pandas import DataFrame


def make_frame(report: SweepReport) -> DataFrame:
    """A row for each system, with the columns of sweep.csv; see `SweepReport.frame`."""
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise PrerequisiteError("a frame needs pandas", remedy="pip install pandas") from error
    head, *rows = table_rows(report)
    return DataFrame(rows, columns=head)
