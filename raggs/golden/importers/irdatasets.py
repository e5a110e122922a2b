"""What raggs wrote for ir_datasets."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.importers.base import ImportedSet, Importer
from raggs.golden.importers.pieces import first_of, labels_alone, missing, with_runs
from raggs.parts.readers.scales import stated_labels


class IrDatasetsImporter(Importer):
    """A folder that was written for ir_datasets: corpus.jsonl, queries.jsonl, qrels.txt."""

    FORMAT = "ir_datasets"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or first_of(path, "qrels.txt")
        if labels is None:
            raise missing(path, self.FORMAT, "qrels.txt")
        questions, corpus = first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl")
        return with_runs(path, labels, questions, corpus, self.columns)
