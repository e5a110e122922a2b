"""Judgments that somebody has in memory as a golden set, with the texts of the questions where they are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from raggs.base.artifacts import Query
from raggs.base.errors import DataError
from raggs.golden.base import GoldenQuery, GoldenSet, Graded, SetPart
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Qrels, Scale
from raggs.parts.queries.fields import query_of
from raggs.parts.readers.rows import as_id, qrels_of, rows_of, shown

GIVEN = Path("queries")  # what errors call questions that are of no file


class GivenGolden(GoldenSet):
    """Grades without passages or order.

    Args:
        given: ``{qid: {doc_id: grade}}``, rows, or a table (see `raggs.parts.readers.rows`); read once.
        questions: as `queries_of` takes them.

    Raises:
        UsageError, DataError: the questions cannot be right.
    """

    top = 0
    provenance = None
    form = None
    name = source = "judgments in memory"

    def __init__(self, given: object, questions: object = None) -> None:
        self._given = given if isinstance(given, Mapping) else list(rows_of(given, "judgments"))
        self._questions = queries_of(questions)

    def queries(self) -> Iterator[Query]:
        """See `GoldenSet.queries`."""
        return iter(self._questions.values())

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """See `GoldenSet.by_query`: the queries that have labels, and of the parts their grades."""
        qrels = qrels_of(self._given)
        docs = (qrels.docs.text(row) for row in range(len(qrels.grade)))
        rows = zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True)
        for number, found in groupby(rows, key=lambda row: row[0]):
            qid = qrels.qids[number]
            grades = tuple(Graded(doc_id, grade if grade >= 0 else None) for _, doc_id, grade in found)
            yield GoldenQuery(qid, self._questions.get(qid), grades=grades)

    def judgments(self, scale: Scale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        qrels: Qrels = qrels_of(self._given, scale)
        return Judgments(self.source, qrels)


def queries_of(given: object) -> dict[str, Query]:
    """Questions by id, sorted by it.

    Args:
        given: ``{qid: text}``, or an iterable or a table of queries or rows with the columns that files have; None
            for none.

    Raises:
        UsageError: it has no rows.
        DataError: a row is no query, or an id stands twice.
    """
    found: dict[str, Query] = {}
    for place, query in enumerate(_queries(given), start=1):
        if query.qid in found:
            raise DataError(f"query id {query.qid} stands twice", where=GIVEN, line=place, remedy="keep one")
        found[query.qid] = query
    return dict(sorted(found.items()))


def _queries(given: object) -> Iterator[Query]:
    if given is None:
        return
    if isinstance(given, Mapping) and not hasattr(given, "to_dict"):
        for key, text in given.items():
            yield _query(text if isinstance(text, Query) else {"qid": key, "text": text}, 0)
        return
    for place, row in enumerate(rows_of(given, "queries"), start=1):
        yield _query(row, place)


def _query(row: object, place: int) -> Query:
    if isinstance(row, Query):
        fields = row.model_dump(include={*Query.model_fields})
        return query_of(fields, GIVEN, place)  # the same text as from a file or a mapping
    if not isinstance(row, Mapping):
        raise DataError(
            f"{shown(row)} is no query", where=GIVEN, line=place, remedy='e.g. {"qid": "q1", "text": "..."}'
        )
    plain = {str(key): value for key, value in row.items() if value is not None and value == value}
    for name in {"qid", "_id", "id", "query_id", "query-id"} & plain.keys():
        plain[name] = as_id(plain[name], "queries")
    return query_of(plain, GIVEN, place)
