"""The golden set as raggs sees it: one self-contained line for each passage of the ranked top."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from raggs.artifacts import MergeRecord, RankRecord
from raggs.errors import DataError
from raggs.exporters.base import Exporter, Golden
from raggs.exporters.files import json_line, write_lines, write_meta


class JsonlExporter(Exporter):
    """One JSON line for each ranked passage: query, rank, grade, confidence, text.

    `golden.jsonl` is sorted by query id and rank. `confidence` is the probability that the passage truly stands
    above the next one of the full order; `score` is the ranker's own.
    """

    def write(self, golden: Golden, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            DataError: the ranking names a query or a passage that the pool or the queries lack.
            ProviderError: the folder cannot be written.
        """
        path, sidecar = folder / "golden.jsonl", folder / "golden.jsonl.meta.json"
        rows = write_lines(path, _lines(golden))
        write_meta(sidecar, golden, {"files": {path.name: {"rows": rows}}, "top": golden.top})
        return [path, sidecar]


def _lines(golden: Golden) -> Iterator[str]:
    """Join the ranking with the pool, one query in memory at a time: both streams are sorted by query id."""
    pools = groupby(golden.pool, key=attrgetter("qid"))
    for qid, ranking in groupby(golden.ranking, key=attrgetter("qid")):
        pool = next((group for name, group in pools if name == qid), None)
        query = golden.queries.get(qid)
        if pool is None or query is None:
            missing = "queries" if query is None else "pool"
            raise DataError(f"query {qid} is ranked but not in the {missing}", remedy="run raggs audit on the run")
        passages = {record.doc_id: record for record in pool}
        for record in ranking:
            if record.rank <= golden.top:
                yield _line(query.text, record, passages.get(record.doc_id))


def _line(query: str, record: RankRecord, passage: MergeRecord | None) -> str:
    if passage is None:
        lost = f"passage {record.doc_id} of query {record.qid} is ranked but not in the pool"
        raise DataError(lost, remedy="run raggs audit on the run")
    return json_line(
        qid=record.qid,
        query=query,
        rank=record.rank,
        doc_id=record.doc_id,
        grade=record.grade,
        score=record.score,
        confidence=record.confidence,
        title=passage.title,
        text=passage.text,
    )
