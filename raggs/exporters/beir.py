"""The BEIR layout: a corpus, its queries, and graded qrels, as dense-retrieval toolkits load them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.exporters.base import Exporter
from raggs.exporters.files import write_lines, write_objects
from raggs.exporters.folders import remove_other_split
from raggs.exporters.lists import write_lists
from raggs.exporters.passages import write_passages
from raggs.golden.base import GoldenSet
from raggs.golden.parts import ASKED_AND_READ, Part
from raggs.golden.scales import GradeScale
from raggs.queries.writing import query_object


class BeirExporter(Exporter):
    """BEIR folder: corpus, queries, and graded qrels of a split.

    `corpus.jsonl` holds the whole corpus in its own order where it is at hand, else every passage of any query's pool
    once, sorted by id; `queries.jsonl` the questions in their authors' words with all that came with them, sorted by
    id; `qrels/test.tsv`, or the split of another name, each graded passage with its gain, 0 to 4.
    """

    FORMAT: ClassVar[str] = "beir"
    LABELS: ClassVar[str] = "qrels/{split}.tsv"
    HOLDS: ClassVar[frozenset[Part] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        corpus, queries, whole = folder / "corpus.jsonl", folder / "queries.jsonl", self.options.corpus
        rows = {
            corpus.name: write_passages(golden, corpus, whole),
            queries.name: write_objects(queries, map(query_object, golden.queries())),
            self.labels: write_lines(folder / self.labels, table_lines(golden, self.options.scale)) - 1,
        }
        remove_other_split(folder, type(self), self.labels)
        lists = write_lists(golden, folder, folder / self.labels)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        held = "pool" if whole is None else "all"
        return [*(folder / name for name in files), self.write_sidecar(golden, folder, files, corpus=held)]


def table_lines(golden: GoldenSet, scale: GradeScale) -> Iterator[str]:
    """The labels as a table under its header."""
    yield "query-id\tcorpus-id\tscore"
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                yield _row(query.qid, graded.doc_id, str(scale.written(graded.grade)))


def _row(*cells: str) -> str:
    """A row of a table; an id that holds a quote is quoted, as readers of tables undo it."""
    if not any('"' in cell for cell in cells):
        return "\t".join(cells)
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="").writerow(cells)
    return text.getvalue()
