"""Questions with the places of what answers them, checked against the documents.

An excerpt's own offsets count, and the text there must be the excerpt's; one without offsets is searched for, and the
first place is taken; where there are several, it is told of which question. Whatever does not fit is said with file and
line, question and words: no score hides a wrong place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.base.artifacts import Query, Reference, Span
from raggs.base.errors import DataError
from raggs.base.text import plural, shorten
from raggs.chunking.documents import Documents
from raggs.metrics.spans import ReferenceColumns, Spans
from raggs.metrics.spans.columns import SpanPlace
from raggs.metrics.spans.scores import overlapping
from raggs.parts.queries import made_notes

CORPUS = "corpus_id"
MAX_EXCERPT_CHARS, MAX_REPEATED_SHOWN = 60, 10


@dataclass(frozen=True)
class ReferencedQuestions:
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
    questions: ReferenceColumns
    notes: tuple[str, ...]


def place_questions(
    queries: Mapping[str, Query], documents: Documents, path: Path, lines: Mapping[str, int] | None = None
) -> ReferencedQuestions:
    """The questions with the places of their references.

    Args:
        queries: by id.
        documents: of the corpus.
        path, lines: where the questions are from, and the line of each by id, for messages.

    Raises:
        DataError: an excerpt does not stand where its offsets say, or nowhere; its document is not there; two
            excerpts of one question overlap; no question has a reference.
    """
    kept = [query for query in queries.values() if query.references]
    if not kept:
        raise DataError("no question has references", where=path, remedy="give each the excerpts that answer it")
    finder = _Finder(documents, path, lines or {})
    rows = [(number, finder.place(query, each)) for number, query in enumerate(kept) for each in query.references]
    spans, owner = Spans.of(place for _, place in rows), np.array([number for number, _ in rows], dtype=np.int64)
    if (pair := overlapping(spans, owner)) is not None:
        texts = [each.text for query in kept for each in query.references]
        one, other = (repr(shorten(texts[row], MAX_EXCERPT_CHARS)) for row in pair)
        again = rows[pair[0]] == rows[pair[1]]
        said, remedy = ("are the same", "leave one out") if again else ("overlap", "make one excerpt of them")
        raise finder.wrong(kept[rows[pair[0]][0]], f"its excerpts {one} and {other} {said}", remedy)
    first = {number: place[0] for number, place in reversed(rows)}
    return ReferencedQuestions(
        tuple(query.qid for query in kept),
        tuple(query.text for query in kept),
        tuple(first[number] for number in range(len(kept))),
        ReferenceColumns(len(kept), spans, owner),
        (*_notes(len(queries) - len(kept), finder.searched, finder.repeated), *made_notes(kept)),
    )


def _notes(without: int, searched: int, repeated: Sequence[str]) -> Iterator[str]:
    if without:
        yield f"{plural(without, 'question')} without references left out"
    if searched:
        yield (
            f"{plural(searched, 'excerpt')} without offsets searched for by text; {len(repeated)} found in several "
            "places, of which the first counts"
        )
    yield from repeated[:MAX_REPEATED_SHOWN]
    if len(repeated) > MAX_REPEATED_SHOWN:
        yield (
            f"and {plural(len(repeated) - MAX_REPEATED_SHOWN, 'more excerpt')} that several places hold; give "
            "them offsets"
        )


class _Finder:
    """Finds references in documents, and counts what had to be searched for."""

    def __init__(self, documents: Documents, path: Path, lines: Mapping[str, int]) -> None:
        self.searched = 0
        self.repeated: list[str] = []
        self._documents = documents
        self._path, self._lines = path, lines

    def place(self, query: Query, reference: Reference) -> SpanPlace:
        """Where a reference stands: number of the document, start, end."""
        span = reference.span
        if span is None:
            return self._search(query, reference.text)
        number = self._number(query, span.source)
        text = self._documents.texts[number]
        if text[span.start : span.end] != reference.text:
            raise self._misplaced(query, reference.text, span, text)
        return number, span.start, span.end

    def _misplaced(self, query: Query, excerpt: str, span: Span, text: str) -> DataError:
        said = (
            f"excerpt {shorten(excerpt, MAX_EXCERPT_CHARS)!r} is not what stands at "
            f"{span.source}[{span.start}:{span.end}]"
        )
        if span.end > len(text):
            said += f", which has {plural(len(text), 'character')}"
        found = text.find(excerpt)
        where = f"it stands at {found}" if found >= 0 else "it stands nowhere in that document"
        if "\r\n" in text and text.replace("\r\n", "\n")[span.start : span.end] == excerpt:
            where = "its offsets count line ends as one character, and the file has two: save it with plain ones"
        return self.wrong(query, said, where)

    def _search(self, query: Query, excerpt: str) -> SpanPlace:
        named = query.metadata.get(CORPUS)
        numbers = range(len(self._documents.texts))
        if isinstance(named, str):
            numbers = range(at := self._number(query, named), at + 1)
        counts = {number: self._documents.texts[number].count(excerpt) for number in numbers}
        number = next((number for number, count in counts.items() if count), None)
        if number is None:
            remedy = "copy it from the document word for word"
            raise self.wrong(
                query, f"excerpt {shorten(excerpt, MAX_EXCERPT_CHARS)!r} is nowhere in the documents", remedy
            )
        self.searched += 1
        start = self._documents.texts[number].find(excerpt)
        if (several := sum(counts.values())) > 1:
            taken = f"{self._documents.names[number]}[{start}:{start + len(excerpt)}]"
            said = f"excerpt {shorten(excerpt, MAX_EXCERPT_CHARS)!r} stands in {several} places; {taken} was taken"
            self.repeated.append(f"question {query.qid}: {said}")
        return number, start, start + len(excerpt)

    def _number(self, query: Query, name: str) -> int:
        number = self._documents.number(name)
        if number is None:
            message = f"its document {name!r} is not in {self._documents.folder}"
            raise self.wrong(query, message, self._documents.missing(name))
        return number

    def wrong(self, query: Query, message: str, remedy: str) -> DataError:
        """What is wrong with a question, with its line."""
        line = self._lines.get(query.qid)
        return DataError(f"question {query.qid}: {message}", where=self._path, line=line, remedy=remedy)
