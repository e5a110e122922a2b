"""TREC files: qrels of all graded passages and a run of the golden top, as trec_eval and its kin read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from raggs.exporters.base import Exporter
from raggs.exporters.files import write_lines, write_meta
from raggs.golden.base import GoldenSet


class TrecExporter(Exporter):
    """TREC qrels with grades, and the ranked top as a run.

    `qrels.txt` holds `qid 0 docid grade` for each graded passage, near-duplicates included; passages without a
    grade are left out. `run.trec` holds `qid Q0 docid rank score tag`. Readers sort by score and break ties by
    docid, ignoring ranks, so the score is top + 1 - rank: whole, positive, and falling with every rank. It says
    nothing but the order; the ranker's own scores are in the run's artifacts and in the `jsonl` export.
    """

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        qrels, run = folder / "qrels.txt", folder / "run.trec"
        sidecar = folder / "qrels.txt.meta.json"
        judged = write_lines(qrels, _qrels(golden))
        ranked = write_lines(run, _run(golden))
        facts = {
            "files": {
                qrels.name: {"columns": "qid 0 docid grade", "rows": judged},
                run.name: {"columns": "qid Q0 docid rank score tag", "rows": ranked, "score": "top + 1 - rank"},
            },
            "top": golden.top,
        }
        write_meta(sidecar, golden, facts)
        return [qrels, sidecar, run]


def _qrels(golden: GoldenSet) -> Iterator[str]:
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                yield f"{query.qid} 0 {graded.doc_id} {graded.grade}"


def _run(golden: GoldenSet) -> Iterator[str]:
    tag = "raggs-" + re.sub(r"\s+", "-", golden.name.strip())
    for record in (record for query in golden.by_query("order") for record in query.order):
        if record.rank <= golden.top:
            yield f"{record.qid} Q0 {record.doc_id} {record.rank} {golden.top + 1 - record.rank} {tag}"
