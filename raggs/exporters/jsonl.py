"""The golden set as raggs sees it: one self-contained line for each passage of the ranked top."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.artifacts import Passage, RankRecord
from raggs.errors import DataError
from raggs.exporters.base import Exporter
from raggs.exporters.files import write_meta, write_objects
from raggs.golden.base import GoldenQuery, GoldenSet


class JsonlExporter(Exporter):
    """One JSON line for each ranked passage: query, rank, grade, confidence, text.

    `golden.jsonl` is sorted by query id and rank. `confidence` is the probability that the passage truly stands
    above the next one of the full order; `score` is the ranker's own.
    """

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            DataError: the ranking names a query that is not among the questions, or a passage that is not in its pool.
            ProviderError: the folder cannot be written.
        """
        path, sidecar = folder / "golden.jsonl", folder / "golden.jsonl.meta.json"
        rows = write_objects(path, _objects(golden))
        write_meta(sidecar, golden, {"files": {path.name: {"rows": rows}}, "top": golden.top})
        return [path, sidecar]


def _objects(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """The ranked top of each query, one query in memory at a time."""
    for query in golden.by_query("pool", "order"):
        texts = {passage.doc_id: passage for passage in query.pool}
        for record in query.order:
            if record.rank <= golden.top:
                yield _object(query, record, texts.get(record.doc_id))


def _object(golden: GoldenQuery, record: RankRecord, passage: Passage | None) -> dict[str, object]:
    if passage is None or golden.query is None:
        lost = f"passage {record.doc_id} of query {record.qid} is ranked but not in the pool"
        raise DataError(lost, remedy="run raggs audit on the run")
    return {
        "qid": record.qid,
        "query": golden.query.text,
        "rank": record.rank,
        "doc_id": record.doc_id,
        "grade": record.grade,
        "score": record.score,
        "confidence": record.confidence,
        "title": passage.title,
        "text": passage.text,
    }
