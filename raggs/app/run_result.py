"""Result of a finished run for Python and notebooks: the stages that ran, and the golden set."""

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
    """Result of `run`."""

    @classmethod
    def of(cls, result: PipelineResult) -> RunResult:
        """Return the result of a pipeline with access to the golden set."""
        return cls(result.store, result.manifest, result.ran, result.seconds)

    @property
    def golden(self) -> GoldenSet:
        """Golden set of the run.

        Raises:
            NotFoundError, DataError: as `open_golden`.
        """
        from raggs.golden.sources import open_golden

        return open_golden(self.store.folder)

    def to_pandas(self) -> DataFrame:
        """Return a frame with one row per judged passage.

        `rank` starts at 1 and is None for passages that are not in the ranking. `grade` is None if there is no grade,
        for example because a call failed.

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
