"""The BEIR layout: a small corpus, its queries, and graded qrels, as dense-retrieval toolkits load them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from raggs.exporters.base import Exporter
from raggs.exporters.files import object_writer, write_lines, write_meta, write_objects
from raggs.golden.base import GoldenSet


class BeirExporter(Exporter):
    """BEIR folder: pooled corpus, queries, and graded test qrels.

    `corpus.jsonl` holds every passage of any query's pool once, sorted by id; `queries.jsonl` the questions in
    their authors' words, sorted by id; `qrels/test.tsv` each graded passage with its grade.
    """

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"
        sidecar = folder / "meta.json"
        rows = {
            "corpus.jsonl": write_lines(corpus, _corpus(golden)),
            "queries.jsonl": write_objects(
                queries, ({"_id": query.qid, "text": query.text} for query in golden.queries())
            ),
            "qrels/test.tsv": write_lines(qrels, _qrels(golden)) - 1,
        }
        write_meta(sidecar, golden, {"files": {name: {"rows": count} for name, count in rows.items()}})
        return [corpus, queries, qrels, sidecar]


def _corpus(golden: GoldenSet) -> Iterator[str]:
    """Each passage once, sorted by id. Texts wait in a temporary file, so that memory holds ids and offsets only."""
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill, object_writer(spill) as writer:
        for passage in (passage for query in golden.by_query("pool") for passage in query.pool):
            if passage.doc_id not in places:
                places[passage.doc_id] = spill.tell()
                writer.write({"_id": passage.doc_id, "title": passage.title, "text": passage.text})
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()


def _qrels(golden: GoldenSet) -> Iterator[str]:
    yield "query-id\tcorpus-id\tscore"
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                yield f"{query.qid}\t{graded.doc_id}\t{graded.grade}"
