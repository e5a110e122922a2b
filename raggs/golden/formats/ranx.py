"""What ranx reads: qrels and runs as JSON, ``{qid: {doc_id: number}}``.

Files of ranx: qrels and runs as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from raggs.golden.base import RUNS, GoldenSet
from raggs.golden.formats.base import Exporter, ImportedSet, Importer
from raggs.golden.formats.lists import BY_GRADE, Row, list_name, remove_old, write_nested
from raggs.golden.formats.pieces import Pieces, first_of, grades_of, is_ours, labels_alone, missing, orders_of
from raggs.golden.parts import Part
from raggs.parts.readers.scales import stated_labels


class RanxExporter(Exporter):
    """ranx: qrels with gains, the ranked top and each retriever's list as JSON.

    `qrels.json` holds each graded passage with its gain; `run.json` the ranked top with falling scores that say nothing
    but the order; `runs/` what each retriever returned, and their fusion, with their own scores.
    """

    FORMAT: ClassVar[str] = "ranx"
    SIDECAR: ClassVar[str] = "qrels.json.meta.json"
    LABELS: ClassVar[str] = "qrels.json"
    HOLDS: ClassVar[frozenset[Part] | None] = frozenset({"grades", "order", "lists"})

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        qrels, run = folder / self.labels, folder / "run.json"
        counts = write_nested(self._qrels(golden, qrels), qrels) | write_nested(_top(golden, run), run)
        lists = write_nested(_systems(golden, folder))
        remove_old(folder, qrels, lists)
        counts |= lists
        marked = {run: {BY_GRADE: True}} if golden.by_grade else {}
        files = {
            path.relative_to(folder).as_posix(): {"rows": rows, **marked.get(path, {})} for path, rows in counts.items()
        }
        return [*counts, self.write_sidecar(golden, folder, files)]

    def _qrels(self, golden: GoldenSet, path: Path) -> Iterator[Row]:
        scale = self.options.scale
        for query in golden.by_query("grades"):
            found = {one.doc_id: scale.written(one.grade) for one in query.grades if one.grade is not None}
            if found:
                yield Row(path, query.qid, found)


def _top(golden: GoldenSet, path: Path) -> Iterator[Row]:
    for query in golden.by_query("grades" if golden.by_grade else "order"):
        found = {one.doc_id: golden.top + 1 - one.rank for one in query.order if one.rank <= golden.top}
        found |= {one.doc_id: one.grade for one in query.by_grade if one.grade is not None}
        if found:
            yield Row(path, query.qid, found)


def _systems(golden: GoldenSet, folder: Path) -> Iterator[Row]:
    for (retriever, qid), hits in groupby(golden.hits(), key=lambda hit: (hit.retriever, hit.qid)):
        path = folder / RUNS / f"{list_name(retriever)}.json"
        yield Row(path, qid, {hit.doc_id: hit.score for hit in hits})


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
