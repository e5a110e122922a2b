"""Files of ranx: qrels and runs as JSON."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.base import RUNS
from raggs.golden.importers.base import ImportedSet, Importer
from raggs.golden.importers.pieces import Pieces, first_of, grades_of, is_ours, labels_alone, missing, orders_of
from raggs.parts.readers.scales import stated_labels

TOP = "run.json"


class RanxImporter(Importer):
    """ranx qrels, and runs that lie in runs/; JSON objects {query: {passage: number}}.

    A file of qrels, or a folder with `qrels.json`.
    """

    FORMAT = "ranx"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or first_of(path, "qrels.json")
        if labels is None:
            raise missing(path, self.FORMAT, "qrels.json")
        grades = grades_of(labels, self.columns)
        orders = orders_of(labels, path / TOP, grades)
        top = [each for each in path.glob(TOP) if each.stat().st_size and not is_ours(labels, each)]
        return Pieces(labels, grades, orders, lists=[*top, *sorted((path / RUNS).glob("*.json"))]).put_together()
