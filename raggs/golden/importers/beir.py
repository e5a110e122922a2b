"""The BEIR layout, of raggs and of others."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.importers.base import ImportedSet, Importer
from raggs.golden.importers.pieces import TEST, first_of, labels_alone, missing, with_runs
from raggs.parts.readers.scales import stated_labels


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
