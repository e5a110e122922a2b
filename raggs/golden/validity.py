"""Queries and labels that are not valid on a day, and judgments without them.

Queries state their validity in their file. A label states it in its own file, or has it from the metadata of its
passage. Most sets state no validity. A file that contains none of the names of the validity fields is not parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from raggs.base.artifacts import JudgeRecord, Query, Validity
from raggs.base.errors import DataError
from raggs.base.jsonl import mentions
from raggs.golden.base import GoldenSet
from raggs.golden.files import FileGolden, words_of
from raggs.golden.judgments import Judgments
from raggs.golden.runs import RunGolden
from raggs.metrics.columns import IdColumn
from raggs.metrics.unjudged import LabelUncertainty

UNJUDGED = -1  # grade of a pooled passage without a label


@dataclass(frozen=True)
class InvalidParts:
    """Queries and labels of a golden set that are not valid on a day.

    Attributes:
        day: the day.
        queries: ids of the queries that are not valid, sorted.
        labels: (query id, passage id) of the labels of valid queries that are not valid.
        dated: whether any query or label has a limit. If none has, the day does not matter.
    """

    day: date
    queries: tuple[str, ...]
    labels: frozenset[tuple[str, str]]
    dated: bool


def invalid_parts(golden: GoldenSet, day: date) -> InvalidParts:
    """Return the queries and labels of a golden set that are not valid on `day`.

    Raises:
        NotFoundError, DataError: the set cannot be read.
    """
    queries = [query for query in _queries(golden) if _limited(query)]
    expired = {query.qid for query in queries if not query.valid_on(day)}
    limited = [record for record in _labels(golden) if record.grade is not None and _limited(record)]
    labels = {(each.qid, each.doc_id) for each in limited if each.qid not in expired and not each.valid_on(day)}
    return InvalidParts(day, tuple(sorted(expired)), frozenset(labels), bool(queries or limited))


def _limited(part: Validity) -> bool:
    return part.valid_from is not None or part.valid_until is not None


def _queries(golden: GoldenSet) -> Iterator[Query]:
    """Yield the queries of a set, or nothing if its file of queries is missing or states no validity."""
    path = golden.query_file if isinstance(golden, FileGolden) else None
    path = golden.run.file("queries") if isinstance(golden, RunGolden) else path
    if path is None or _mentions_validity(path):
        yield from golden.queries()


def _labels(golden: GoldenSet) -> Iterator[JudgeRecord]:
    """Yield the labels of a set if its file can state their validity, otherwise nothing."""
    if isinstance(golden, RunGolden):
        if _mentions_validity(golden.run.file("judge")):
            yield from golden.run.typed("judge", JudgeRecord)
    elif isinstance(golden, FileGolden) and ".jsonl" in golden.labels.suffixes and _mentions_validity(golden.labels):
        for records in words_of((golden.labels,), golden.columns).values():
            yield from records


def _mentions_validity(path: Path) -> bool:
    """Return whether a file exists and can state a validity. A compressed file is not searched, but always counts."""
    return path.is_file() and (path.suffix == ".gz" or mentions(path, Validity.model_fields))


def valid_judgments(judgments: Judgments, invalid: InvalidParts) -> Judgments:
    """Return the judgments of the valid queries. Labels that are not valid become unjudged passages.

    Raises:
        DataError: no query is valid.
    """
    qrels, gone = judgments.qrels, set(invalid.queries)
    kept = [number for number, qid in enumerate(qrels.qids) if qid not in gone]
    if not kept:
        raise DataError(
            f"no query is valid on {invalid.day}",
            where=judgments.source,
            remedy="evaluate as of another day with --as-of, or update the golden set",
        )
    rows = np.flatnonzero(np.isin(qrels.query, kept))
    number = np.searchsorted(kept, qrels.query[rows])
    qids, docs = tuple(qrels.qids[each] for each in kept), [doc.decode() for doc in qrels.docs.take(rows).tolist()]
    pairs = zip((qids[each] for each in number.tolist()), docs, strict=True)
    valid = np.array([pair not in invalid.labels for pair in pairs], dtype=np.bool_)
    belief = None if qrels.belief is None else qrels.belief.taken(rows).only(valid)
    grade = np.where(valid, qrels.grade[rows], UNJUDGED)
    fresh = replace(qrels, qids=qids, query=number, grade=grade, docs=IdColumn.of(docs), belief=belief)
    doubt = judgments.doubt
    if doubt is not None:
        # Near-duplicates belong to one query, so the row of a kept label's leader is kept, too.
        leader = None if doubt.leader is None else np.searchsorted(rows, doubt.leader[rows])
        shares = None if doubt.shares is None else doubt.shares[rows]
        samples = tuple(doubt.samples[row] for row in rows.tolist())
        doubt = LabelUncertainty(doubt.sigma[rows], samples, shares, leader)
    return replace(judgments, qrels=fresh, doubt=doubt)
