"""The BEIR layout, of raggs and of others."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.scales import stated_labels
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.pieces import Pieces, first_of, grades_of, missing, with_runs


class BeirImporter(Importer):
    """BEIR folder: corpus.jsonl, queries.jsonl, and qrels/SPLIT.tsv."""

    FORMAT = "beir"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return Pieces(path, grades_of(path)).put_together()
        tables = sorted((path / "qrels").glob("*.tsv"))
        alone = stated_labels(path) or (tables[0] if len(tables) == 1 else None)
        labels = first_of(path / "qrels", f"{self.split}.tsv") or alone
        if labels is None:
            there = ", ".join(table.stem for table in tables)
            wanted = f"qrels/{self.split}.tsv" + (f"; --split names one of {there}" if there else "")
            raise missing(path, self.FORMAT, wanted)
        return with_runs(path, labels, first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl"))
