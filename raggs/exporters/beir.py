"""The BEIR layout: a corpus, its queries, and graded qrels, as dense-retrieval toolkits load them."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.exporters.base import Exporter
from raggs.exporters.files import (
    object_writer,
    passage_object,
    write_lines,
    write_meta,
    write_objects,
)
from raggs.golden.base import GoldenSet
from raggs.queries.writing import query_object


class BeirExporter(Exporter):
    """BEIR folder: corpus, queries, and graded test qrels.

    `corpus.jsonl` holds the whole corpus in its own order where it is at hand, else every passage of any query's pool
    once, sorted by id; `queries.jsonl` the questions in their authors' words with all that came with them, sorted by
    id; `qrels/test.tsv` each graded passage with its gain, 0 to 4.
    """

    NEEDS_ORDER: ClassVar[bool] = False
    WHOLE_CORPUS: ClassVar[bool] = True

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"
        sidecar = folder / "meta.json"
        whole = self.options.corpus
        passages = (
            write_lines(corpus, _pooled(golden)) if whole is None else write_objects(corpus, map(passage_object, whole))
        )
        rows = {
            "corpus.jsonl": passages,
            "queries.jsonl": write_objects(queries, map(query_object, golden.queries())),
            "qrels/test.tsv": write_lines(qrels, self._qrels(golden)) - 1,
        }
        files = {name: {"rows": count} for name, count in rows.items()}
        write_meta(
            sidecar, golden, self.options.scale, {"files": files, "corpus": "pool" if whole is None else "whole"}
        )
        return [corpus, queries, qrels, sidecar]

    def _qrels(self, golden: GoldenSet) -> Iterator[str]:
        yield "query-id\tcorpus-id\tscore"
        for query in golden.by_query("grades"):
            for graded in query.grades:
                if graded.grade is not None:
                    yield _row(query.qid, graded.doc_id, str(self.options.scale.written(graded.grade)))


def _pooled(golden: GoldenSet) -> Iterator[str]:
    """Each passage once, sorted by id. Texts wait in a temporary file, so that memory holds ids and offsets only."""
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill, object_writer(spill) as writer:
        for passage in (passage for query in golden.by_query("pool") for passage in query.pool):
            if passage.doc_id not in places:
                places[passage.doc_id] = spill.tell()
                writer.write(passage_object(passage))
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()


def _row(*cells: str) -> str:
    """A row of a table; an id that holds a quote is quoted, as readers of tables undo it."""
    if not any('"' in cell for cell in cells):
        return "\t".join(cells)
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="").writerow(cells)
    return text.getvalue()
