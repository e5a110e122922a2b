"""The BEIR layout: a corpus, its queries, and graded qrels, as dense-retrieval toolkits load them.

The BEIR layout, of raggs and of others.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.formats.base import ImportedSet, Importer, write_lines
from raggs.golden.formats.cases import CorpusExporter
from raggs.golden.formats.pieces import TEST, first_of, labels_alone, missing, with_runs
from raggs.parts.readers.scales import GradeScale, stated_labels


class BeirExporter(CorpusExporter):
    """BEIR folder: corpus, queries, and graded qrels of a split.

    `corpus.jsonl` holds the whole corpus in its own order where it is at hand, else every passage of any query's pool
    once, sorted by id; `queries.jsonl` the questions in their authors' words with all that came with them, sorted by
    id; `qrels/test.tsv`, or the split of another name, each graded passage with its gain, 0 to 4.
    """

    FORMAT: ClassVar[str] = "beir"
    LABELS: ClassVar[str] = "qrels/{split}.tsv"

    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """See `CorpusExporter.write_labels`."""
        return write_lines(path, table_lines(golden, self.options.scale)) - 1


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


class BeirImporter(Importer):
    """BEIR folder: corpus.jsonl, queries.jsonl, and qrels/SPLIT.tsv."""

    FORMAT = "beir"

    SPLITS = True

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        tables = sorted((path / "qrels").glob("*.tsv*"))
        stated = stated_labels(path)
        alone = stated or (tables[0] if len(tables) == 1 else None)
        labels = first_of(path / "qrels", f"{self.split or TEST}.tsv") or (None if self.split else alone)
        if labels is None:
            there = ", ".join(dict.fromkeys(table.name.partition(".tsv")[0] for table in tables))
            wanted = f"qrels/{self.split or TEST}.tsv" + (f"; --split names one of {there}" if there else "")
            raise missing(path, self.FORMAT, wanted)
        questions, corpus = first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl")
        return with_runs(path, labels, questions, corpus, self.columns)
