"""TREC files: qrels of all graded passages, the golden top as a run, and what each retriever returned as runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.exporters.base import Exporter
from raggs.golden.exporters.files import write_lines
from raggs.golden.exporters.lists import write_lists
from raggs.golden.parts import Part
from raggs.parts.readers.scales import GradeScale


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
