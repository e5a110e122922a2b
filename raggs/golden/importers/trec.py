"""TREC files: qrels, and runs beside them."""

from __future__ import annotations

from pathlib import Path

from raggs.base.errors import DataError
from raggs.golden.importers.base import ImportedSet, Importer
from raggs.golden.importers.pieces import first_of, labels_alone, missing, with_runs
from raggs.parts.readers.scales import stated_labels


class TrecImporter(Importer):
    """TREC qrels, and runs that lie beside them or in runs/.

    A file of qrels, or a folder with `qrels.txt`, or with one file `*.qrels`; `*.trec` and `*.run` are runs.
    """

    FORMAT = "trec"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or self._only(path)
        if labels is None:
            raise missing(path, self.FORMAT, "qrels.txt, or one file *.qrels")
        return with_runs(path, labels, columns=self.columns)

    def _only(self, path: Path) -> Path | None:
        """The only file of qrels in a folder.

        Raises:
            DataError: there are several.
        """
        usual = [first_of(path, name) for name in ("qrels.txt", "qrels")]
        found = [*filter(None, usual), *sorted([*path.glob("*.qrels"), *path.glob("*.qrels.gz")])]
        if len(found) > 1:
            names = " and ".join(each.name for each in found[:3])
            raise DataError(f"holds several files of qrels: {names}", where=path, remedy=f"name one: {found[0]}")
        return found[0] if found else None
