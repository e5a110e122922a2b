"""A corpus in one JSON-lines file, in the format of BEIR; may be gzipped.

Passages without title and text occur in real collections. Such passages cannot be judged. By default, they are skipped
and reported. If a passage has only a title, the title becomes its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, ValidationError

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Span, span_of
from raggs.base.errors import DataError
from raggs.base.hashing import canonical_json
from raggs.base.jsonl import first_fault, read_objects
from raggs.base.settings import SourcePath
from raggs.base.text import id_problem
from raggs.parts.corpora import Corpus, EmptyPassage, hash_source

ID_FIELDS = ("_id", "id", "doc_id")
KNOWN_FIELDS = frozenset({*ID_FIELDS, "text", "title", "metadata"})
LINE_REMEDY = 'expected {"_id": "...", "title": "...", "text": "..."}'


class JsonlConfig(AdapterConfig):
    type: Literal["jsonl"] = "jsonl"
    path: SourcePath = Field(description="JSON-lines file, one passage per line; may be gzipped")
    empty: Literal["skip", "error"] = Field("skip", description="action for passages without title and text")


class JsonlCorpus(Corpus):
    """Reads one passage per line: a JSON object with _id and text, optionally title, span and metadata."""

    Config = JsonlConfig
    config: JsonlConfig

    def source_hash(self) -> str:
        """Return a hash of the file's bytes."""
        return hash_source(self.config.path)

    def passages(self) -> Iterator[Passage]:
        """Yield the passages in the order of the lines (see `Corpus.passages`)."""
        self.left_out.clear()
        for number, row in read_objects(self.config.path):
            doc_id, title, text = self._fields(row, number)
            if not text and not title:
                if self.config.empty == "error":
                    raise self._error(f"passage {doc_id} has no text", number)
                self.left_out.append(EmptyPassage(doc_id, number))
                continue
            span, metadata = self._span(row, number, text), self._metadata(row, number)
            yield Passage(doc_id=doc_id, title=title if text else "", text=text or title, span=span, metadata=metadata)

    def _fields(self, row: dict[str, object], number: int) -> tuple[str, str, str]:
        """Return id, title and text; title and text without white space at the ends. A missing title is empty.

        Raises:
            DataError: id or text is missing, a field has the wrong type, or a character or the id is not allowed.
        """
        doc_id = next((row[name] for name in ID_FIELDS if name in row), None)
        if not isinstance(doc_id, str) or not doc_id:
            raise self._error("_id is missing or is not a string", number)
        if problem := id_problem(doc_id):
            raise self._error(f"_id {doc_id!a} {problem}", number)
        title, text = row.get("title") or "", row.get("text")
        if not isinstance(text, str):
            raise self._error(f"text of {doc_id!r} is missing or is not a string", number)
        if not isinstance(title, str):
            raise self._error(f"title of {doc_id!r} is not a string", number)
        if not _encodable(doc_id + title + text):
            raise self._error(f"passage {doc_id!r} contains a lone surrogate, which is not a valid character", number)
        return doc_id, title.strip(), text.strip()

    def _span(self, row: dict[str, object], number: int, text: str) -> Span | None:
        """Return the field `span` if it is an object of source, start and end; otherwise it counts as metadata.

        `text` has no white space at its ends. A span that covers the text with this white space is shortened
        accordingly.
        """
        try:
            span, written = span_of(row.get("span")), str(row.get("text"))
        except ValidationError as error:
            raise self._error(f"span: {first_fault(error)}", number) from error
        if span is None or not text or span.end - span.start != len(written):
            return span
        start = span.start + len(written) - len(written.lstrip())
        return Span(source=span.source, start=start, end=start + len(text))

    def _metadata(self, row: dict[str, object], number: int) -> dict[str, object]:
        """Return the object `metadata` together with all unknown fields, except a valid `span`."""
        metadata = row.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise self._error("metadata is not an object", number)
        rest = {key: value for key, value in row.items() if key not in KNOWN_FIELDS}
        if span_of(rest.get("span")) is not None:
            del rest["span"]
        found = {**metadata, **rest}
        if found and not _encodable(canonical_json(found)):
            raise self._error("metadata contains a lone surrogate, which is not a valid character", number)
        return found

    def _error(self, message: str, number: int) -> DataError:
        return DataError(message, where=self.config.path, line=number, remedy=LINE_REMEDY)


def _encodable(text: str) -> bool:
    r"""Return whether the text has no lone surrogate, which JSON can express ("\ud800") but UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
