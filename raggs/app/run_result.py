"""A finished run as Python and notebooks see it: what was done, the golden set, and both as they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raggs.runs.runner import PipelineResult

if TYPE_CHECKING:
    from pandas import DataFrame

    from raggs.golden.base import GoldenSet

GOLDEN_COLUMNS = ("qid", "query", "doc_id", "grade", "rank")


@dataclass(frozen=True)
class RunResult(PipelineResult):
    """A finished call of `run`."""

    @classmethod
    def of(cls, result: PipelineResult) -> RunResult:
        """The same with what is made of it."""
        return cls(result.store, result.manifest, result.ran, result.seconds)

    @property
    def golden(self) -> GoldenSet:
        """The golden set.

        Raises:
            NotFoundError, DataError: as `open_golden`.
        """
        from raggs.golden.sources import open_golden

        return open_golden(self.store.folder)

    def to_pandas(self) -> DataFrame:
        """A row for each judged passage; `rank` from 1 on, None below the ranked top, as `grade` is where none is.

        Raises:
            PrerequisiteError: pandas is not installed.
            NotFoundError: the run has no grades yet.
        """
        from raggs.base.document import frame_of

        return frame_of(GOLDEN_COLUMNS, self._rows())

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for query in self.golden.by_query("grades", "order"):
            ranks = {record.doc_id: record.rank for record in query.order}
            text = query.query.text if query.query else None
            for each in query.grades:
                yield query.qid, text, each.doc_id, each.grade, ranks.get(each.doc_id)

    def _repr_html_(self) -> str:
        from raggs.app.run_layout import lay_out_run
        from raggs.base.document import fragment

        return fragment(lay_out_run(self))
