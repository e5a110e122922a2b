"""TREC files: qrels of all graded passages, the golden top as a run, and what each retriever returned as runs.

TREC files: qrels, and runs beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.errors import DataError
from raggs.golden.base import GoldenSet
from raggs.golden.formats.base import Exporter, ImportedSet, Importer, write_lines
from raggs.golden.formats.lists import write_lists
from raggs.golden.formats.pieces import first_of, labels_alone, missing, with_runs
from raggs.golden.parts import Part
from raggs.parts.readers.scales import GradeScale, stated_labels


class TrecExporter(Exporter):
    """TREC qrels with gains, the ranked top as a run, and each retriever's.

    `qrels.txt` holds `qid 0 docid gain` for each graded passage, near-duplicates included; passages without a
    grade are left out. `run.trec` holds `qid Q0 docid rank score tag`. Readers sort by score and break ties by
    docid, ignoring ranks, so the score is top + 1 - rank: whole, positive, and falling with every rank. It says
    nothing but the order; the ranker's own scores are in the run's artifacts and in the `jsonl` export. Of a set of
    grades alone (`rank: null`) its scores are the grades, equals are tied, and the tag ends in `-by_grade`. `runs/`
    holds what each retriever returned, and their fusion, with their own scores.
    """

    FORMAT: ClassVar[str] = "trec"
    SIDECAR: ClassVar[str] = "qrels.txt.meta.json"
    LABELS: ClassVar[str] = "qrels.txt"
    HOLDS: ClassVar[frozenset[Part] | None] = frozenset({"grades", "order", "lists"})

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        qrels, scale = folder / self.labels, self.options.scale
        judged = {self.labels: {"columns": f"qid 0 docid {scale.form}", "rows": write_qrels(golden, qrels, scale)}}
        files = {**judged, **write_lists(golden, folder, qrels)}
        sidecar = self.write_sidecar(golden, folder, files)
        return [*(folder / name for name in files), sidecar]


def write_qrels(golden: GoldenSet, path: Path, scale: GradeScale) -> int:
    """Write all grades as TREC qrels, and count them.

    Raises:
        ProviderError: the disk refuses.
    """
    return write_lines(path, _qrels(golden, scale))


def _qrels(golden: GoldenSet, scale: GradeScale) -> Iterator[str]:
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                yield f"{query.qid} 0 {graded.doc_id} {scale.written(graded.grade)}"


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
