"""The golden set as raggs sees it: self-contained lines of the ranked top, all judgments, and the questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.artifacts import Passage, RankRecord
from raggs.errors import DataError
from raggs.exporters.base import Exporter
from raggs.exporters.files import passage_facts, write_meta, write_objects
from raggs.golden.base import GoldenQuery, GoldenSet
from raggs.golden.scales import GradeScale
from raggs.queries.writing import query_facts, query_object

AS_GRADED, GAIN = GradeScale("raw"), GradeScale("gain")


class JsonlExporter(Exporter):
    """JSON lines: the ranked top with texts, all grades, the questions.

    `golden.jsonl` is sorted by query id and rank and holds in each line the query, the passage, its grade (1 to 5) and
    gain (0 to 4). `confidence` is the probability that the passage truly stands above the next one of the full order;
    `score` is the ranker's own. `judgments.jsonl` holds every graded passage and who graded it, `queries.jsonl` the
    questions with all that came with them.
    """

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            DataError: the ranking names a query that is not among the questions, or a passage that is not in its pool.
            ProviderError: the folder cannot be written.
        """
        path, sidecar = folder / "golden.jsonl", folder / "golden.jsonl.meta.json"
        judgments, queries = folder / "judgments.jsonl", folder / "queries.jsonl"
        rows = {
            path.name: write_objects(path, _objects(golden)),
            judgments.name: write_objects(judgments, _judgments(golden)),
            queries.name: write_objects(queries, map(query_object, golden.queries())),
        }
        files = {name: {"rows": count} for name, count in rows.items()}
        write_meta(sidecar, golden, AS_GRADED, {"files": files, "top": golden.top})
        return [path, judgments, queries, sidecar]


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
    asked = query_facts(golden.query)
    return {
        "qid": record.qid,
        "query": golden.query.text,
        **{name: asked[name] for name in ("language", "answer", "references") if name in asked},
        **({"query_metadata": asked["metadata"]} if "metadata" in asked else {}),
        "rank": record.rank,
        "doc_id": record.doc_id,
        "grade": record.grade,
        "gain": GAIN.written(record.grade),
        "score": record.score,
        "confidence": record.confidence,
        "title": passage.title,
        "text": passage.text,
        **passage_facts(passage),
    }


def _judgments(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """Every graded passage, best fused first."""
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                gain = GAIN.written(graded.grade)
                who = {"judge": graded.judge} if graded.judge else {}
                yield {"qid": query.qid, "doc_id": graded.doc_id, "grade": graded.grade, "gain": gain, **who}
