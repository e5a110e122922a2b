"""Files of others as golden sets: labels in any format that `readers` know, with the questions where they lie beside.

A folder in the layout of BEIR holds `qrels/test.tsv` (or one other table there) and `queries.jsonl`; of an export of
raggs the sidecar names the file of labels. What it says of the scale is believed, so that its grades are those of the
run that it is from. Passages stay where they are: a corpus of another's may be larger than any memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Query
from raggs.base.errors import DataError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.golden.base import GoldenQuery, GoldenSet, Graded, SetPart
from raggs.golden.origin import stated_fall, stated_lacks, stated_origin, stated_sources
from raggs.golden.packed import unpacked_query
from raggs.parts.readers.scales import stated_labels, stated_scale

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import Scale

LABELS = ("qrels/test.tsv", "qrels.txt", "judgments.jsonl")
QUERIES = "queries.jsonl"


class FileGolden(GoldenSet):
    """Labels from a file: grades without passages or order.

    Args:
        labels: the file.
        questions: a file of the questions, in the form that `queries: {type: jsonl}` reads.
        name: of the set; that of the file where left out.
        columns: which column of a table is which, as `--column` says.

    Attributes:
        labels: the file.
    """

    top = 0
    provenance = None

    def __init__(
        self, labels: Path, questions: Path | None = None, name: str = "", columns: ColumnNames = NO_COLUMNS
    ) -> None:
        self.name = name or labels.name
        self.columns = columns
        self.source = str(labels)
        self.lacks = stated_lacks(labels)
        self.labels = labels
        self._questions = questions

    def queries(self) -> Iterator[Query]:
        """See `GoldenSet.queries`.

        Raises:
            NotFoundError, DataError: as the reader of questions.
        """
        if self._questions is None:
            return
        from raggs.parts.queries.jsonl import JsonlQueries, JsonlQueriesConfig
        from raggs.parts.queries.load import load_queries

        reader = JsonlQueries(JsonlQueriesConfig(path=self._questions))
        yield from map(unpacked_query, load_queries(reader, self._questions).values())

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """See `GoldenSet.by_query`: the queries that have labels, and of the parts their grades."""
        from raggs.parts.readers.labels import read_labels  # late: it needs numpy

        known, stated = {query.qid: query for query in self.queries()}, stated_scale(self.labels)
        lift = stated.offset if stated else 0
        labels = sorted(read_labels(self.labels, self.columns), key=lambda label: label.qid)
        for qid, found in groupby(labels, key=lambda label: label.qid):
            grades = tuple(Graded(label.doc_id, label.grade + lift if label.grade >= 0 else None) for label in found)
            yield GoldenQuery(qid, known.get(qid), grades=grades)

    def judgments(self, scale: Scale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        import numpy as np

        from raggs.golden.judgments import Judgments
        from raggs.metrics.columns import Scale
        from raggs.parts.readers.labels import read_judgments

        stated = stated_scale(self.labels)
        if stated and scale and (scale.low, scale.high) != (MIN_GRADE, MAX_GRADE):
            stated = None  # the numbers as they stand are asked for
        qrels = read_judgments(self.labels, stated.scale if stated else scale, self.columns)
        if stated and stated.offset:
            grade = np.where(qrels.grade < 0, qrels.grade, qrels.grade + stated.offset)
            qrels = replace(qrels, grade=grade, scale=Scale.of(MIN_GRADE, MAX_GRADE))
        labels = self.labels
        return Judgments(
            self.source,
            qrels,
            origin=stated_origin(labels),
            warnings=tuple(stated_fall(labels)),
            sources=stated_sources(labels),
        )


def labels_in(folder: Path) -> tuple[Path, Path | None] | None:
    """The labels that lie in a folder in a known layout, and the questions beside them.

    Raises:
        DataError: there are several files of labels, and no sidecar says which one is meant.
    """
    stated = stated_labels(folder)
    known = [stated] if stated else [folder / name for name in LABELS if (folder / name).is_file()]
    if len(known) > 1:
        names = " and ".join(path.relative_to(folder).as_posix() for path in known)
        raise DataError(f"holds several files of labels: {names}", where=folder, remedy=f"name one, e.g. {known[0]}")
    if not known:
        tables = sorted((folder / "qrels").glob("*.tsv"))
        known = tables[: len(tables) == 1]
    questions = folder / QUERIES
    asked = questions.is_file() and questions.stat().st_size
    return (known[0], questions if asked else None) if known else None
