"""References of a question in any of the accepted forms, and in words what is wrong with one that has none of them.

A form is a text; an object of `text` and optionally `doc_id` and `span`; or, as chunking benchmarks have it, of
`content`, `start_index` and `end_index` in the document that the row names. Whether a text stands at its place is not
known here.
"""

from __future__ import annotations

from collections.abc import Mapping

from raggs.base.artifacts import Reference, Span
from raggs.base.text import shorten

DOCUMENT = "corpus_id"  # names the document that offsets of references count in
REMEDY = 'write {"content": "...", "start_index": 0, "end_index": 9}, or the text alone'
START, END = "start_index", "end_index"
SHOWN = 60


def reference_of(entry: object, document: object) -> Reference:
    """The reference that an entry of a list of references describes.

    Args:
        document: that offsets without a name count in, as the row has it.

    Raises:
        ValueError: it describes none, in words that go on "reference 1".
    """
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {_kind(entry)}, neither a text nor an object")
    name = "content" if "content" in entry else "text"
    text = entry.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"has no text: its {name} is {'missing' if text is None else 'blank or no text'}")
    known = {"content", START, END} if name == "content" else {*Reference.model_fields}
    if strange := sorted(map(str, entry.keys() - known)):
        raise ValueError(f"({shorten(text, SHOWN)!r}): its key {strange[0]!r} means nothing here")
    try:
        span = _offsets(entry, document) if name == "content" else _span(entry.get("span"))
    except ValueError as error:
        raise ValueError(f"({shorten(text, SHOWN)!r}): {error}") from error
    doc_id = entry.get("doc_id")
    if not isinstance(doc_id, str | None):
        raise ValueError(f"({shorten(text, SHOWN)!r}): its doc_id is {_kind(doc_id)}")
    return Reference(text=text, doc_id=doc_id, span=span)


def _offsets(entry: Mapping[str, object], document: object) -> Span | None:
    if entry.get(START) is None and entry.get(END) is None:
        return None
    start, end = _place(entry, START, END)
    if not isinstance(document, str) or not document.strip():
        raise ValueError(f"{START} and {END} need {DOCUMENT}, the document that they count in")
    return Span(source=document, start=start, end=end)


def _span(span: object) -> Span | None:
    if span is None:
        return None
    if not isinstance(span, Mapping) or span.keys() != Span.model_fields.keys():
        raise ValueError("its span is no object of source, start and end")
    if not isinstance(source := span["source"], str) or not source:
        raise ValueError("the source of its span is no name of a document")
    start, end = _place(span, "start", "end")
    return Span(source=source, start=start, end=end)


def _place(entry: Mapping[str, object], first: str, last: str) -> tuple[int, int]:
    start, end = (_whole(entry, name) for name in (first, last))
    if end <= start:
        raise ValueError(f"it goes from {start} to {end}, and so holds nothing")
    return start, end


def _whole(entry: Mapping[str, object], name: str) -> int:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        said = "missing" if value is None else f"{shorten(repr(value), 30)}, which is no whole number from 0 up"
        raise ValueError(f"its {name} is {said}")
    return value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a truth value"
    return "a number" if isinstance(value, int | float) else "a text" if isinstance(value, str) else "a list"
