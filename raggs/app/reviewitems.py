"""What a run shows to people: its questions and the passages of its pools, found by their texts or by their ids."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.artifacts import MergeRecord, Passage, Query, QueryRecord
from raggs.base.text import clean_unicode, did_you_mean, one_line
from raggs.parts.reviews.models import Key, passage_digest, question_digest
from raggs.parts.reviews.reading import Row
from raggs.runs.manifests.opened import OpenedRun


class Items:
    """What a run shows: found by what it says, or by its ids."""

    def __init__(self, run: OpenedRun) -> None:
        self.queries: dict[str, Query] = {record.qid: record for record in run.typed("queries", QueryRecord)}
        self.pools: dict[str, dict[str, Passage]] = {}
        self.ids: dict[Key, tuple[str, str]] = {}
        self.questions = {qid: question_digest(query) for qid, query in self.queries.items()}
        for record in run.typed("merge", MergeRecord):
            if record.qid in self.queries:
                self.pools.setdefault(record.qid, {})[record.doc_id] = passage = record.passage
                self.ids.setdefault((self.questions[record.qid], passage_digest(passage)), (record.qid, record.doc_id))

    def tasks(self) -> Iterator[tuple[Key, Query, Passage]]:
        """Every passage of the pools, each text once."""
        for key, (qid, doc_id) in self.ids.items():
            yield key, self.queries[qid], self.pools[qid][doc_id]

    def find(self, row: Row) -> tuple[str, str, Key]:
        """The ids of a row, and what its review is filed under.

        Raises:
            DataError: it names nothing that this run has.
        """
        qid, doc_id = (word_of(row.cells.get(name)) for name in ("qid", "doc_id"))
        query, passage = (word_of(row.cells.get(name)) for name in ("query", "passage"))
        if query and passage and (query, passage) in self.ids:
            return (*self.ids[query, passage], (query, passage))
        if not qid or not doc_id:
            raise row.wrong("names no question and passage", "a row has qid and doc_id, or both digests")
        if qid not in self.queries:
            raise row.wrong(f"no query {qid} in this run", did_you_mean(qid, self.queries))
        pool = self.pools.get(qid, {})
        if doc_id not in pool:
            raise row.wrong(f"no passage {doc_id} in the pool of query {qid}", did_you_mean(doc_id, pool))
        return qid, doc_id, (query or self.questions[qid], passage or passage_digest(pool[doc_id]))


def text_of(value: object) -> str:
    """A cell as text; nothing is an empty one."""
    return "" if value is None else str(value)


def word_of(value: object) -> str:
    """A cell as a name or number: clean, on one line."""
    return one_line(clean_unicode(text_of(value)))
