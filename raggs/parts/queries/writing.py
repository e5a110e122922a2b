"""Writes queries as files that the query readers can read: CSV (as in chunking benchmarks), JSON lines, YAML.

Reading a written file yields the same queries in the same order. A chunking benchmark's table of `question`,
`references` and `corpus_id` is reproduced byte for byte. A cell that a spreadsheet would execute gets a leading
apostrophe. The column `guarded` names such cells, so that the reader can remove the apostrophe. Blank CSV cells are
read as missing values, so only JSON lines and YAML preserve an answer that consists of blanks. Offsets are written
unchanged, without access to the documents.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from raggs.base.artifacts import Query, Reference
from raggs.base.files import disk, write_atomic
from raggs.base.text import spreadsheet_cell
from raggs.parts.queries import format_of
from raggs.parts.queries.fields import ALIASES, DOCUMENT, made_id
from raggs.parts.queries.formats import GUARDED

LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
REQUIRED_COLUMNS = ("question", "references", DOCUMENT)
DATES = ("valid_from", "valid_until")
LISTS = ("depends_on", "evidence", "history")
LEADING_COLUMNS = ("_id", *REQUIRED_COLUMNS, "language", "answer", "nuggets", *DATES, *LISTS)
COLUMN = re.compile(r"\w[\w.-]*")
RESERVED_COLUMNS = frozenset({GUARDED, DOCUMENT, *(name for names in ALIASES.values() for name in names)})


def write_queries(queries: Iterable[Query], path: Path) -> None:
    """Write queries to `path` atomically, in the order given; missing folders are created.

    The suffix selects the format:

    ``.csv``: columns `question`, `references` and `corpus_id`. Further columns are added only if needed: `_id` (if an
    id is not derived from the text), `language`, `answer`, `nuggets`, `valid_from`, `valid_until`, `depends_on`,
    `evidence`, `history`, one column per metadata key with texts as values, `metadata` (JSON) for other metadata, and
    `guarded`. `corpus_id` is taken from the metadata, otherwise it is the document that all references of the query
    share. A reference with offsets in this document and without a `doc_id` is written as `content`, `start_index` and
    `end_index` (characters). All others are written in the form of `Reference`.

    ``.jsonl``, ``.yaml``, ``.yml``: all non-empty fields by name, spans as `source`, `start`, `end`.

    Raises:
        UsageError: the suffix is unknown.
        ProviderError: the file cannot be written.
    """
    text = WRITERS[format_of(path)](list(queries))
    with disk(path, "write to another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())


def query_facts(query: Query) -> dict[str, object]:
    """Return the non-empty fields of a query, except id and text."""
    found = query.model_dump(mode="json", exclude={"qid", "text", "v"}, exclude_none=True)
    return {name: value for name, value in found.items() if value}


def query_object(query: Query) -> dict[str, object]:
    """Return a query with its non-empty fields, in the format of `queries: {type: jsonl}`."""
    return {"_id": query.qid, "text": query.text, **query_facts(query)}


def _jsonl(queries: Sequence[Query]) -> str:
    lines = (json.dumps(query_object(query), ensure_ascii=False, allow_nan=False) for query in queries)
    return "".join(f"{line.translate(LINE_ENDS)}\n" for line in lines)


def _yaml(queries: Sequence[Query]) -> str:
    objects = [query_object(query) for query in queries]
    return yaml.dump(objects, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100)


class _PlainDumper(yaml.SafeDumper):
    """YAML dumper without anchors, in which unusual line ends are escaped."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if any(ord(char) in LINE_ENDS for char in data) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_PlainDumper.add_representer(str, _PlainDumper.represent_str)


def _csv(queries: Sequence[Query]) -> str:
    own = _own_columns(queries)
    rows = [_row(query, own) for query in queries]
    filled = {name for row in rows for name, cell in row.items() if cell}
    if all(query.qid == made_id(query.text) for query in queries):
        filled.discard("_id")
    names = [name for name in (*LEADING_COLUMNS, *own, "metadata") if name in REQUIRED_COLUMNS or name in filled]
    if any(map(_guarded, rows)):
        rows = [{**row, GUARDED: " ".join(_guarded(row))} for row in rows]
        names.append(GUARDED)
    return "".join(
        f"{spreadsheet_line(cells)}\n" for cells in (names, *([row.get(name, "") for name in names] for row in rows))
    )


def spreadsheet_line(cells: Iterable[str]) -> str:
    """Return a CSV row without its line end; cells that a spreadsheet would execute are protected."""
    text = io.StringIO()
    # with this line terminator, the writer quotes cells that contain either kind of line end
    csv.writer(text, lineterminator="\r\n").writerow(map(spreadsheet_cell, cells))
    return text.getvalue().removesuffix("\r\n")


def _guarded(row: Mapping[str, str]) -> list[str]:
    """Return the columns whose cells get an apostrophe."""
    return [name for name, cell in row.items() if spreadsheet_cell(cell) != cell]


def _own_columns(queries: Iterable[Query]) -> list[str]:
    """Return the metadata keys that can be columns: their values are non-blank strings, their names have no other
    meaning.
    """
    fits: dict[str, bool] = {}
    for name, value in (pair for query in queries for pair in query.metadata.items()):
        fits[name] = fits.get(name, True) and isinstance(value, str) and bool(value.strip())
    return [name for name, fine in fits.items() if fine and COLUMN.fullmatch(name) and name not in RESERVED_COLUMNS]


def _row(query: Query, own: Sequence[str]) -> dict[str, str]:
    document = _document(query)
    texts = {name: str(value) for name, value in query.metadata.items() if name in own}
    rest = {name: value for name, value in query.metadata.items() if name not in own}
    if rest.get(DOCUMENT) == document:
        del rest[DOCUMENT]
    return {
        "_id": query.qid,
        "question": query.text,
        "references": _json([_reference(each, document) for each in query.references]),
        DOCUMENT: document,
        "language": query.language or "",
        "answer": query.answer or "",
        "nuggets": _json([nugget.model_dump(mode="json") for nugget in query.nuggets]),
        **{name: str(getattr(query, name) or "") for name in DATES},
        "depends_on": _json(list(query.depends_on)),
        "evidence": _json(query.evidence),
        "history": _json([turn.model_dump(mode="json") for turn in query.history]),
        **texts,
        "metadata": _json(rest),
    }


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False) if value else ""


def _document(query: Query) -> str:
    """Return the value of the document column: from the metadata, otherwise the one document of all references.

    The value is empty if the metadata value is not a text, or the references do not share one document.
    """
    if DOCUMENT in query.metadata:
        named = query.metadata[DOCUMENT]
        return named if isinstance(named, str) and named.strip() else ""
    sources = {None if each.span is None else each.span.source for each in query.references}
    return (sources.pop() or "") if len(sources) == 1 else ""


def _reference(reference: Reference, document: str) -> dict[str, object]:
    """Return a reference as `content`, `start_index` and `end_index` if possible, otherwise in the form of
    `Reference`."""
    span = reference.span
    if span is None or span.source != document or reference.doc_id is not None:
        return reference.model_dump(mode="json", exclude_none=True)
    return {"content": reference.text, "start_index": span.start, "end_index": span.end}


WRITERS: Mapping[str, Callable[[Sequence[Query]], str]] = {"csv": _csv, "jsonl": _jsonl, "yaml": _yaml}
