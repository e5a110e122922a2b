"""The BEIR layout: a small corpus, its queries, and graded qrels, as dense-retrieval toolkits load them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from raggs.artifacts import MergeRecord
from raggs.exporters.base import Exporter, Golden
from raggs.exporters.files import json_line, write_lines, write_meta


class BeirExporter(Exporter):
    """BEIR folder: pooled corpus, queries, and graded test qrels.

    `corpus.jsonl` holds every passage of any query's pool once, sorted by id; `queries.jsonl` the questions in
    their authors' words, sorted by id; `qrels/test.tsv` each graded passage with its grade.
    """

    def write(self, golden: Golden, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"
        sidecar = folder / "meta.json"
        rows = {
            "corpus.jsonl": write_lines(corpus, _corpus(golden.pool)),
            "queries.jsonl": write_lines(queries, _queries(golden)),
            "qrels/test.tsv": write_lines(qrels, _qrels(golden)) - 1,
        }
        write_meta(sidecar, golden, {"files": {name: {"rows": count} for name, count in rows.items()}})
        return [corpus, queries, qrels, sidecar]


def _corpus(pool: Iterable[MergeRecord]) -> Iterator[str]:
    """Each passage once, sorted by id. Texts wait in a temporary file, so that memory holds ids and offsets only."""
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill:
        for record in pool:
            if record.doc_id not in places:
                places[record.doc_id] = spill.tell()
                spill.write(json_line(_id=record.doc_id, title=record.title, text=record.text).encode() + b"\n")
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()


def _queries(golden: Golden) -> Iterator[str]:
    for qid in sorted(golden.queries):
        yield json_line(_id=qid, text=golden.queries[qid].text)


def _qrels(golden: Golden) -> Iterator[str]:
    yield "query-id\tcorpus-id\tscore"
    for record in golden.grades:
        if record.grade is not None:
            yield f"{record.qid}\t{record.doc_id}\t{record.grade}"
