"""Questions with the locations of their reference excerpts, checked against the documents.

If an excerpt has offsets, the text at these offsets must equal the excerpt. An excerpt without offsets is searched for,
and its first occurrence is used; if it occurs more than once, a note is added. Each mismatch is an error with file,
line, question and text, so that no score is based on a wrong location.
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
        ids, texts: ids and texts of the questions.
        documents: for each question, the index of the document that contains its first reference.
        questions: character ranges of the references.
        notes: notes for readers of the scores.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    documents: tuple[int, ...]
    questions: ReferenceColumns
    notes: tuple[str, ...]


def place_questions(
    queries: Mapping[str, Query], documents: Documents, path: Path, lines: Mapping[str, int] | None = None
) -> ReferencedQuestions:
    """Return the questions with the locations of their references.

    Args:
        queries: questions by id.
        documents: documents of the corpus.
        path, lines: file of the questions, and the line of each question by id; used in messages.

    Raises:
        DataError: no question has references, the document of an excerpt does not exist, an excerpt is not at its
            offsets or not in the documents, or two excerpts of one question overlap.
    """
    kept = [query for query in queries.values() if query.references]
    if not kept:
        raise DataError("no question has references", where=path, remedy="add reference excerpts to the questions")
    finder = _Finder(documents, path, lines or {})
    rows = [(number, finder.place(query, each)) for number, query in enumerate(kept) for each in query.references]
    spans, owner = Spans.of(place for _, place in rows), np.array([number for number, _ in rows], dtype=np.int64)
    if (pair := overlapping(spans, owner)) is not None:
        texts = [each.text for query in kept for each in query.references]
        one, other = (repr(shorten(texts[row], MAX_EXCERPT_CHARS)) for row in pair)
        again = rows[pair[0]] == rows[pair[1]]
        said, remedy = ("are the same", "remove one") if again else ("overlap", "merge them into one excerpt")
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
        yield f"{plural(without, 'question')} without references ignored"
    if searched:
        yield (
            f"{plural(searched, 'excerpt')} without offsets located by text; {len(repeated)} occur more than once, "
            "and the first occurrence is used"
        )
    yield from repeated[:MAX_REPEATED_SHOWN]
    if len(repeated) > MAX_REPEATED_SHOWN:
        yield (
            f"and {plural(len(repeated) - MAX_REPEATED_SHOWN, 'more excerpt')} that occur more than once; add offsets"
        )


class _Finder:
    """Finds references in documents, and counts the references that have no offsets."""

    def __init__(self, documents: Documents, path: Path, lines: Mapping[str, int]) -> None:
        self.searched = 0
        self.repeated: list[str] = []
        self._documents = documents
        self._path, self._lines = path, lines

    def place(self, query: Query, reference: Reference) -> SpanPlace:
        """Return the location of a reference: index of the document, start and end."""
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
            f"excerpt {shorten(excerpt, MAX_EXCERPT_CHARS)!r} is not the text at {span.source}[{span.start}:{span.end}]"
        )
        if span.end > len(text):
            said += f", which has {plural(len(text), 'character')}"
        found = text.find(excerpt)
        where = f"it is at {found}" if found >= 0 else "the document does not contain it"
        if "\r\n" in text and text.replace("\r\n", "\n")[span.start : span.end] == excerpt:
            where = "its offsets count \\r\\n as one character: save the file with \\n line ends"
        return self.wrong(query, said, where)

    def _search(self, query: Query, excerpt: str) -> SpanPlace:
        named = query.metadata.get(CORPUS)
        numbers = range(len(self._documents.texts))
        if isinstance(named, str):
            numbers = range(at := self._number(query, named), at + 1)
        counts = {number: self._documents.texts[number].count(excerpt) for number in numbers}
        number = next((number for number, count in counts.items() if count), None)
        if number is None:
            remedy = "copy it verbatim from the document"
            raise self.wrong(query, f"excerpt {shorten(excerpt, MAX_EXCERPT_CHARS)!r} is not in any document", remedy)
        self.searched += 1
        start = self._documents.texts[number].find(excerpt)
        if (several := sum(counts.values())) > 1:
            taken = f"{self._documents.names[number]}[{start}:{start + len(excerpt)}]"
            said = f"excerpt {shorten(excerpt, MAX_EXCERPT_CHARS)!r} occurs {several} times; {taken} is used"
            self.repeated.append(f"question {query.qid}: {said}")
        return number, start, start + len(excerpt)

    def _number(self, query: Query, name: str) -> int:
        number = self._documents.number(name)
        if number is None:
            message = f"its document {name!r} is not in {self._documents.folder}"
            raise self.wrong(query, message, self._documents.missing(name))
        return number

    def wrong(self, query: Query, message: str, remedy: str) -> DataError:
        """Return the error for a question, with the question's line in the file."""
        line = self._lines.get(query.qid)
        return DataError(f"question {query.qid}: {message}", where=self._path, line=line, remedy=remedy)
