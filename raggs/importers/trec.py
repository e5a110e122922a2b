"""TREC files: qrels, and runs beside them."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.scales import stated_labels
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.pieces import Pieces, first_of, grades_of, missing, with_runs


class TrecImporter(Importer):
    """TREC qrels, and runs that lie beside them or in runs/.

    A file of qrels, or a folder with `qrels.txt`, or with one file `*.qrels`; `*.trec` and `*.run` are runs.
    """

    FORMAT = "trec"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return Pieces(path, grades_of(path)).put_together()
        named = sorted(path.glob("*.qrels"))
        labels = stated_labels(path) or first_of(path, "qrels.txt", "qrels") or (named[0] if len(named) == 1 else None)
        if labels is None:
            raise missing(path, self.FORMAT, "qrels.txt, or one file *.qrels")
        return with_runs(path, labels)
