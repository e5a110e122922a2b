"""What raggs wrote for ir_datasets."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.scales import stated_labels
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.pieces import Pieces, first_of, grades_of, missing, with_runs


class IrDatasetsImporter(Importer):
    """A folder that was written for ir_datasets: corpus.jsonl, queries.jsonl, qrels.txt."""

    FORMAT = "ir_datasets"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return Pieces(path, grades_of(path)).put_together()
        labels = stated_labels(path) or first_of(path, "qrels.txt")
        if labels is None:
            raise missing(path, self.FORMAT, "qrels.txt")
        return with_runs(path, labels, first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl"))
