"""JSON lines of raggs: all that a golden set holds."""

from __future__ import annotations

from pathlib import Path

from raggs.base.errors import DataError
from raggs.base.jsonl import read_objects
from raggs.base.text import plural
from raggs.golden.base import RUNS
from raggs.golden.files import QUERIES
from raggs.golden.importers.base import ImportedSet, Importer
from raggs.golden.importers.pieces import SHOWN, Pieces, first_of, missing
from raggs.golden.lines import CORPUS, JUDGMENTS, ORDER, UNJUDGED, orders_of, words_of
from raggs.golden.parts import SURE


class JsonlImporter(Importer):
    """JSON lines of raggs: judgments.jsonl, and what lies beside it."""

    FORMAT = "jsonl"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        labels = first_of(path, JUDGMENTS) if path.is_dir() else path
        if labels is None:
            raise missing(path, self.FORMAT, JUDGMENTS)
        folder = labels.parent
        grades = words_of([labels, *filter(None, [first_of(folder, UNJUDGED)])], self.columns)
        order = first_of(folder, ORDER)
        sure = all(row.keys() >= SURE for _, row in read_objects(order)) if order else False
        orders = orders_of(order)
        if order and (strange := sorted(orders.keys() - grades.keys())):
            said = f"orders passages of {plural(len(strange), 'query')} without labels: {', '.join(strange[:SHOWN])}"
            raise DataError(said, where=order, remedy=f"remove these lines, or add the labels to {labels.name}")
        lists = sorted(each for each in (folder / RUNS).glob("*.trec") if each.stat().st_size)
        questions, corpus = first_of(folder, QUERIES), first_of(folder, CORPUS)
        return Pieces(labels, grades, orders, sure, questions, corpus, lists).put_together()
