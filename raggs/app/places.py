"""Questions whose excerpts get the places at which they stand, written for whoever asks them next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raggs.app.chunks import open_questions
from raggs.base.artifacts import Query, Reference, Span
from raggs.base.errors import UsageError
from raggs.chunking.documents import Documents, read_documents
from raggs.chunking.questions import place_questions
from raggs.parts.queries.base import format_of
from raggs.parts.queries.references import DOCUMENT
from raggs.parts.queries.writing import write_queries
from raggs.runs.pipeline.events import Listener, silent


@dataclass(frozen=True)
class Placed:
    """What was written.

    Attributes:
        file: that holds the questions.
        questions, excerpts: how many.
        notes: what a reader must know: excerpts that stand in several places.
    """

    file: Path
    questions: int
    excerpts: int
    notes: tuple[str, ...]


def place_excerpts(corpus: Path, questions: Path, to: Path, listen: Listener = silent) -> Placed:
    """Check each excerpt against the documents, search for those without offsets, and write all questions with places.

    Args:
        corpus: the folder of the documents.
        questions: CSV, JSONL or YAML.
        to: the file that is written, in the format of its ending; the questions stand in it in their order.

    Raises:
        UsageError: an ending says no format, or `to` is the file of the questions.
        RaggsError: a document, a question or an excerpt is not what it should be; the disk refuses.
    """
    format_of(to)  # before the work
    numbered, documents = open_questions(questions, listen), read_documents(corpus)
    if to.exists() and to.samefile(questions):
        raise UsageError(f"{to} holds the questions themselves", remedy="name another file by --to")
    ordered = dict(sorted(numbered.items(), key=lambda item: item[1][0]))
    queries = {qid: query for qid, (_, query) in ordered.items()}
    lines = {qid: line for qid, (line, _) in ordered.items()}
    asked = place_questions(
        {qid: each for qid, each in queries.items() if each.references}, documents, questions, lines
    )
    spans = asked.questions.references
    places = zip(spans.document.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True)
    written = [_with_places(query, documents, places) for query in queries.values()]
    write_queries(written, to)
    return Placed(to, len(written), len(spans), asked.notes)


def _with_places(query: Query, documents: Documents, places: Iterator[tuple[int, int, int]]) -> Query:
    """The question, its references with the next of `places`; documents are called as its author calls them."""
    return query.model_copy(
        update={"references": tuple(_at(query, each, documents, places) for each in query.references)}
    )


def _at(query: Query, reference: Reference, documents: Documents, places: Iterator[tuple[int, int, int]]) -> Reference:
    number, start, end = next(places)
    if reference.span is not None:
        return reference
    named = query.metadata.get(DOCUMENT)
    source = named if isinstance(named, str) else documents.names[number]
    return reference.model_copy(update={"span": Span(source=source, start=start, end=end)})
