"""What a golden set consists of, counted and told apart by content: what an export leaves behind, what comes back.

Formats of the field hold some of these parts and have no room for others. A part is a set of items; its digest is the
sum of their hashes, so that the order of reading does not matter, equal content has equal digests, and a set of any
size is told in one pass. It must not know formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from raggs.base.artifacts import Passage
from raggs.base.hashing import canonical_json
from raggs.golden.base import GoldenQuery, GoldenSet, Graded
from raggs.parts.queries.writing import query_facts

Part = Literal[
    "grades",
    "unjudged",
    "judges",
    "reasons",
    "samples",
    "duplicates",
    "order",
    "below",
    "confidence",
    "lists",
    "questions",
    "facts",
    "texts",
    "places",
    "metadata",
]
PARTS: Mapping[Part, str] = {
    "grades": "grades from 1 to 5",
    "unjudged": "pooled passages without a grade, and why",
    "judges": "who gave a grade",
    "reasons": "the judge's reasons",
    "samples": "the samples and votes that a grade is made of",
    "duplicates": "which passages are near-duplicates",
    "order": "the order of the ranked top",
    "below": "the order below the top",
    "confidence": "how sure a place in the order is",
    "lists": "what the retrievers returned",
    "questions": "the texts of the questions",
    "facts": "what came with questions: answer, references, language, metadata",
    "texts": "the texts of judged passages",
    "places": "where judged passages stand in their documents",
    "metadata": "the metadata of judged passages",
}
ASKED_AND_READ: frozenset[Part] = frozenset({"questions", "facts", "texts", "places", "metadata"})
SIZE = 16  # bytes of an item's hash
SURE = {"score", "sigma", "confidence", "rank_low", "rank_high", "membership", "exposures"}  # of a ranked passage

Item = tuple[Part, object]


@dataclass(frozen=True)
class Stock:
    """What there is of one part.

    Attributes:
        count: items: labels, passages, questions or places in a list.
        digest: of their content, 32 hex digits; equal for equal items in any order.
    """

    count: int = 0
    digest: str = "0" * 2 * SIZE


def contents_of(golden: GoldenSet) -> dict[Part, Stock]:
    """All that a golden set holds, each part; reads it once, and its lists.

    Raises:
        NotFoundError, DataError: as `GoldenSet.by_query`.
    """
    counts, sums = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    for part, item in _items(golden):
        counts[part] += 1
        sums[part] += _hash(item)
    return {part: Stock(counts[part], f"{sums[part] % (1 << 8 * SIZE):0{2 * SIZE}x}") for part in PARTS}


def _hash(item: object) -> int:
    return int.from_bytes(blake2b(canonical_json(item).encode(), digest_size=SIZE).digest(), "big")


def _items(golden: GoldenSet) -> Iterator[Item]:
    seen: set[str] = set()
    asked: set[str] = set()
    for query in golden.by_query():
        asked.add(query.qid)
        yield from _of_question(query)
        for graded in query.grades:
            yield from _of_label(query.qid, graded)
        judged = {graded.doc_id for graded in query.grades if graded.grade is not None} - seen
        for passage in query.pool:
            if passage.doc_id in judged:
                yield from _of_passage(passage)
        seen |= judged
        for record in query.order:
            yield "order" if record.rank <= golden.top else "below", (query.qid, record.rank, record.doc_id)
            if golden.sure:
                yield "confidence", (query.qid, record.doc_id, record.model_dump(include=SURE))
    for question in golden.queries():  # those of which nothing is judged
        if question.qid not in asked:
            yield from _of_question(GoldenQuery(question.qid, question))
    for hit in golden.hits():
        yield "lists", (hit.retriever, hit.qid, hit.doc_id, hit.score)


def _of_question(query: GoldenQuery) -> Iterator[Item]:
    if query.query is not None:
        yield "questions", (query.qid, query.query.text)
        if facts := query_facts(query.query):
            yield "facts", (query.qid, facts)


def _of_label(qid: str, graded: Graded) -> Iterator[Item]:
    row = (qid, graded.doc_id)
    if graded.grade is None:
        yield "unjudged", (*row, graded.skipped, graded.error)
    else:
        yield "grades", (*row, graded.grade)
    if graded.judge:
        yield "judges", (*row, graded.judge)
    if graded.reason:
        yield "reasons", (*row, graded.reason)
    if len(graded.samples) > 1 or graded.votes:
        yield "samples", (*row, graded.samples, dict(graded.votes))
    if graded.duplicate_of is not None:
        yield "duplicates", (*row, graded.duplicate_of)


def _of_passage(passage: Passage) -> Iterator[Item]:
    yield "texts", (passage.doc_id, passage.title, passage.text)
    if passage.span is not None:
        yield "places", (passage.doc_id, passage.span.model_dump())
    if passage.metadata:
        yield "metadata", (passage.doc_id, passage.metadata)
