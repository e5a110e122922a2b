"""The golden set as raggs sees it, whole: what `raggs import` writes, too.

JSON lines of raggs: all that a golden set holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage, RankRecord
from raggs.base.errors import DataError
from raggs.base.jsonl import read_objects
from raggs.base.text import plural
from raggs.golden.base import RUNS, GoldenQuery, GoldenSet, Graded
from raggs.golden.files import QUERIES as files_QUERIES
from raggs.golden.files import passage_facts
from raggs.golden.formats.base import Exporter, ImportedSet, Importer, write_objects
from raggs.golden.formats.lists import write_passages, write_systems
from raggs.golden.formats.pieces import SHOWN, Pieces, first_of, missing
from raggs.golden.lines import CORPUS as lines_CORPUS
from raggs.golden.lines import JUDGMENTS as lines_JUDGMENTS
from raggs.golden.lines import ORDER as lines_ORDER
from raggs.golden.lines import UNJUDGED as lines_UNJUDGED
from raggs.golden.lines import orders_of, words_of
from raggs.golden.parts import PARTS, SURE, Part
from raggs.parts.queries.writing import query_facts, query_object
from raggs.parts.readers.scales import AS_GRADED, GradeScale

GAIN = GradeScale("gain")
TOP, JUDGMENTS, UNJUDGED, ORDER = "golden.jsonl", "judgments.jsonl", "unjudged.jsonl", "order.jsonl"
QUERIES, CORPUS = "queries.jsonl", "corpus.jsonl"


class JsonlExporter(Exporter):
    """JSON lines: everything that the set holds, and the ranked top with texts.

    `golden.jsonl` is sorted by query id and rank and holds in each line the query, the passage, its grade (1 to 5) and
    gain (0 to 4). `confidence` is the probability that the passage truly stands above the next one of the full order;
    `score` is the ranker's own. Of a set of grades alone (`rank: null`) it holds every graded passage by grade, then
    fused rank, `unordered: true`. `judgments.jsonl` holds every graded passage and who graded it and why,
    `unjudged.jsonl` those without a grade, `order.jsonl` every rank, `queries.jsonl` the questions with all that came
    with them, `corpus.jsonl` the pooled passages, `runs/` what each retriever returned.
    """

    FORMAT: ClassVar[str] = "jsonl"
    SIDECAR: ClassVar[str] = "golden.jsonl.meta.json"
    LABELS: ClassVar[str] = JUDGMENTS
    HOLDS: ClassVar[frozenset[Part] | None] = frozenset(PARTS)

    @property
    def holds(self) -> frozenset[Part] | None:
        """Everything: grades stand beside gains, whatever is asked."""
        return self.HOLDS

    def numbers(self, golden: GoldenSet) -> GradeScale | None:
        """Those of the set itself."""
        return golden.form

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            DataError: the ranking names a query that is not among the questions, or a passage that is not in its pool.
            ProviderError: the folder cannot be written.
        """
        rows = {
            TOP: write_objects(folder / TOP, _objects(golden)),
            JUDGMENTS: write_objects(folder / JUDGMENTS, _judgments(golden)),
            UNJUDGED: write_objects(folder / UNJUDGED, _unjudged(golden)),
            ORDER: write_objects(folder / ORDER, _order(golden)),
            QUERIES: write_objects(folder / QUERIES, map(query_object, golden.queries())),
            CORPUS: write_passages(golden, folder / CORPUS, self.options.corpus),
        }
        lists = write_systems(golden, folder, folder / JUDGMENTS)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        return [
            *(folder / name for name in files),
            self.write_sidecar(golden, folder, files),
        ]


def _objects(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """The ranked top of each query, one query in memory at a time; of a set of grades alone all graded ones, marked."""
    if golden.by_grade:
        yield from _by_grade(golden)
        return
    for query in golden.by_query("pool", "order"):
        texts = {passage.doc_id: passage for passage in query.pool}
        for record in query.order:
            if record.rank <= golden.top and not (golden.partial and record.doc_id not in texts):
                found = _object(query, record, texts.get(record.doc_id))
                unknown = (*(() if golden.sure else SURE), *(() if golden.form == AS_GRADED else ("grade", "gain")))
                yield {name: value for name, value in found.items() if name not in unknown}


def _object(golden: GoldenQuery, record: RankRecord, passage: Passage | None) -> dict[str, object]:
    unordered = {"unordered": True} if record.unordered else {}
    said = {"score": record.score, "confidence": record.confidence, **unordered}
    return _row(golden, record.doc_id, record.rank, record.grade, said, passage)


def _by_grade(golden: GoldenSet) -> Iterator[dict[str, object]]:
    for query in golden.by_query("pool", "grades"):
        texts = {passage.doc_id: passage for passage in query.pool}
        for rank, each in enumerate(query.by_grade, start=1):
            yield _row(query, each.doc_id, rank, each.grade or 0, {"unordered": True}, texts.get(each.doc_id))


def _row(
    golden: GoldenQuery, doc_id: str, rank: int, grade: int, said: Mapping[str, object], passage: Passage | None
) -> dict[str, object]:
    if passage is None or golden.query is None:
        lost = f"passage {doc_id} of query {golden.qid} is ranked but not in the pool"
        raise DataError(lost, remedy="run raggs audit on the run")
    asked = query_facts(golden.query)
    return {
        "qid": golden.qid,
        "query": golden.query.text,
        **{name: asked[name] for name in ("language", "answer", "references") if name in asked},
        **({"query_metadata": asked["metadata"]} if "metadata" in asked else {}),
        "rank": rank,
        "doc_id": doc_id,
        "grade": grade,
        "gain": GAIN.written(grade),
        **said,
        "title": passage.title,
        "text": passage.text,
        **passage_facts(passage),
    }


def _judgments(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """Every graded passage, best fused first."""
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                known = {"gain": GAIN.written(graded.grade)} if golden.form == AS_GRADED else {}
                yield {"qid": query.qid, "doc_id": graded.doc_id, "grade": graded.grade, **known, **_word(graded)}


def _unjudged(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """Every pooled passage without a grade, best fused first."""
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is None:
                yield {"qid": query.qid, "doc_id": graded.doc_id, **_word(graded)}


def _word(graded: Graded) -> dict[str, object]:
    """Who said what of a passage, where anything is known."""
    several = len(graded.samples) > 1 or graded.votes
    found = {
        "judge": graded.judge,
        "reason": graded.reason,
        "samples": list(graded.samples) if several else None,
        "votes": {member: list(votes) for member, votes in graded.votes.items()},
        "duplicate_of": graded.duplicate_of,
        "skipped": graded.skipped,
        "error": graded.error,
    }
    return {name: value for name, value in found.items() if value}


def _order(golden: GoldenSet) -> Iterator[dict[str, object]]:
    unknown = {"v", *(() if golden.sure else SURE), *(() if golden.form == AS_GRADED else ("grade",))}
    for query in golden.by_query("order"):
        for record in query.order:
            yield record.model_dump(mode="json", exclude=unknown)


class JsonlImporter(Importer):
    """JSON lines of raggs: judgments.jsonl, and what lies beside it."""

    FORMAT = "jsonl"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        labels = first_of(path, lines_JUDGMENTS) if path.is_dir() else path
        if labels is None:
            raise missing(path, self.FORMAT, lines_JUDGMENTS)
        folder = labels.parent
        grades = words_of([labels, *filter(None, [first_of(folder, lines_UNJUDGED)])], self.columns)
        order = first_of(folder, lines_ORDER)
        sure = all(row.keys() >= SURE for _, row in read_objects(order)) if order else False
        orders = orders_of(order)
        if order and (strange := sorted(orders.keys() - grades.keys())):
            said = f"orders passages of {plural(len(strange), 'query')} without labels: {', '.join(strange[:SHOWN])}"
            raise DataError(said, where=order, remedy=f"remove these lines, or add the labels to {labels.name}")
        lists = sorted(each for each in (folder / RUNS).glob("*.trec") if each.stat().st_size)
        questions, corpus = first_of(folder, files_QUERIES), first_of(folder, lines_CORPUS)
        return Pieces(labels, grades, orders, sure, questions, corpus, lists).put_together()
