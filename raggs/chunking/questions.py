"""Questions with the places of what answers them, checked against the documents.

An excerpt's own offsets count, and the text there must be the excerpt's; one without offsets is searched for, and the
first place is taken. Whatever does not fit is said with its question and its words: no score hides a wrong place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.artifacts import Query, Reference
from raggs.chunking.documents import Documents
from raggs.errors import DataError
from raggs.spans import Questions, Spans
from raggs.spans.columns import Place
from raggs.spans.scores import overlapping
from raggs.text import plural, shorten

CORPUS = "corpus_id"
SHOWN = 60


@dataclass(frozen=True)
class Asked:
    """Questions that have references.

    Attributes:
        ids, texts: of the questions.
        documents: number of the document of each question's first reference.
        questions: the places that answer them.
        notes: what a reader of their scores must know.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    documents: tuple[int, ...]
    questions: Questions
    notes: tuple[str, ...]


def place_questions(queries: Mapping[str, Query], documents: Documents, path: Path) -> Asked:
    """The questions with the places of their references.

    Args:
        queries: by id.
        documents: of the corpus.
        path: where the questions are from, for messages.

    Raises:
        DataError: an excerpt does not stand where its offsets say, or nowhere; its document is not there; two
            excerpts of one question overlap; no question has a reference.
    """
    kept = [query for query in queries.values() if query.references]
    if not kept:
        raise DataError("no question has references", where=path, remedy="give each the excerpts that answer it")
    finder = _Finder(documents, path)
    rows = [(number, finder.place(query, each)) for number, query in enumerate(kept) for each in query.references]
    spans, owner = Spans.of(place for _, place in rows), np.array([number for number, _ in rows], dtype=np.int64)
    if (pair := overlapping(spans, owner)) is not None:
        texts = [each.text for query in kept for each in query.references]
        one, other = (repr(shorten(texts[row], SHOWN)) for row in pair)
        raise DataError(
            f"question {kept[rows[pair[0]][0]].qid}: its excerpts {one} and {other} overlap",
            where=path,
            remedy="make one excerpt of them",
        )
    first = {number: place[0] for number, place in reversed(rows)}
    return Asked(
        tuple(query.qid for query in kept),
        tuple(query.text for query in kept),
        tuple(first[number] for number in range(len(kept))),
        Questions(len(kept), spans, owner),
        tuple(_notes(len(queries) - len(kept), finder.searched, finder.repeated)),
    )


def _notes(without: int, searched: int, repeated: int) -> Iterator[str]:
    if without:
        yield f"{plural(without, 'question')} without references left out"
    if searched:
        yield (
            f"{plural(searched, 'excerpt')} without offsets searched for by text; {repeated} found in several places, "
            "of which the first counts"
        )


class _Finder:
    """Finds references in documents, and counts what had to be searched for."""

    def __init__(self, documents: Documents, path: Path) -> None:
        self.searched = self.repeated = 0
        self._documents = documents
        self._path = path

    def place(self, query: Query, reference: Reference) -> Place:
        """Where a reference stands: number of the document, start, end."""
        span = reference.span
        if span is None:
            return self._search(query, reference.text)
        number = self._number(query, span.source)
        text = self._documents.texts[number]
        if text[span.start : span.end] != reference.text:
            self._misplaced(query, reference.text, f"{span.source}[{span.start}:{span.end}]", text)
        return number, span.start, span.end

    def _misplaced(self, query: Query, excerpt: str, place: str, text: str) -> None:
        found = text.find(excerpt)
        where = f"it stands at {found}" if found >= 0 else "it stands nowhere in that document"
        raise self._wrong(query, f"excerpt {shorten(excerpt, SHOWN)!r} is not what stands at {place}", where)

    def _search(self, query: Query, excerpt: str) -> Place:
        named = query.metadata.get(CORPUS)
        numbers = range(len(self._documents.texts))
        if isinstance(named, str):
            numbers = range(at := self._number(query, named), at + 1)
        counts = {number: self._documents.texts[number].count(excerpt) for number in numbers}
        number = next((number for number, count in counts.items() if count), None)
        if number is None:
            remedy = "copy it from the document word for word"
            raise self._wrong(query, f"excerpt {shorten(excerpt, SHOWN)!r} is nowhere in the documents", remedy)
        self.searched += 1
        self.repeated += sum(counts.values()) > 1
        start = self._documents.texts[number].find(excerpt)
        return number, start, start + len(excerpt)

    def _number(self, query: Query, name: str) -> int:
        number = self._documents.number(name)
        if number is None:
            message = f"its document {name!r} is not in {self._documents.folder}"
            raise self._wrong(query, message, self._documents.missing(name))
        return number

    def _wrong(self, query: Query, message: str, remedy: str) -> DataError:
        return DataError(f"question {query.qid}: {message}", where=self._path, remedy=remedy)
