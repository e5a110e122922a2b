"""Questions written as files that their readers give back: CSV as chunking benchmarks have it, JSON lines, YAML.

Reading, writing and reading gives the same questions in the same order, and a table of `question`, `references` and
`corpus_id` in its usual form the same bytes. A cell that a spreadsheet would run gets an apostrophe in front, and the
column `guarded` names such cells, so that it goes away again. A blank cell is no value: only JSON lines and YAML keep
an answer of blanks. It must not know documents: offsets are written as the questions have them.
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
LEADING_COLUMNS = ("_id", *REQUIRED_COLUMNS, "language", "answer", "nuggets")
COLUMN = re.compile(r"\w[\w.-]*")
RESERVED_COLUMNS = frozenset({GUARDED, DOCUMENT, *(name for names in ALIASES.values() for name in names)})


def write_queries(queries: Iterable[Query], path: Path) -> None:
    """Write questions to `path`, whole or not at all, in the order given; the folder is made where it is missing.

    Its ending says how:

    ``.csv``: columns `question`, `references`, `corpus_id`, and only where a question has more also `_id` (ids that are
    not made of the question), `language`, `answer`, `nuggets`, a column for each text of the metadata, and `metadata`
    (JSON) for the rest. References that stand in one document are `content`, `start_index` and `end_index`
    (characters); `corpus_id` names that document, also where the question's metadata does not. Others keep the form of
    `Reference`.

    ``.jsonl``, ``.yaml``, ``.yml``: all fields under their names, spans as `source`, `start`, `end`.

    Raises:
        UsageError: the ending says no format.
        ProviderError: the disk refuses.
    """
    text = WRITERS[format_of(path)](list(queries))
    with disk(path, "write to another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())


def query_facts(query: Query) -> dict[str, object]:
    """What came with a question, each under its name where there is any."""
    found = query.model_dump(mode="json", exclude={"qid", "text", "v"}, exclude_none=True)
    return {name: value for name, value in found.items() if value}


def query_object(query: Query) -> dict[str, object]:
    """A question with all that came with it, as `queries: {type: jsonl}` reads it again."""
    return {"_id": query.qid, "text": query.text, **query_facts(query)}


def _jsonl(queries: Sequence[Query]) -> str:
    lines = (json.dumps(query_object(query), ensure_ascii=False, allow_nan=False) for query in queries)
    return "".join(f"{line.translate(LINE_ENDS)}\n" for line in lines)


def _yaml(queries: Sequence[Query]) -> str:
    objects = [query_object(query) for query in queries]
    return yaml.dump(objects, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100)


class _PlainDumper(yaml.SafeDumper):
    """Writes each value out: no anchors, and no end of a line but the usual one outside of an escape."""

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
    """A row of CSV without its end, in which no cell is one that a spreadsheet would run."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(map(spreadsheet_cell, cells))  # a cell with either end is quoted
    return text.getvalue().removesuffix("\r\n")


def _guarded(row: Mapping[str, str]) -> list[str]:
    """The columns whose cells get an apostrophe."""
    return [name for name, cell in row.items() if spreadsheet_cell(cell) != cell]


def _own_columns(queries: Iterable[Query]) -> list[str]:
    """Metadata that a table can hold: texts that are not blank, under names that mean nothing else."""
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
        **texts,
        "metadata": _json(rest),
    }


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False) if value else ""


def _document(query: Query) -> str:
    """What the column of documents holds: what the question's author wrote there, else where its references stand."""
    if DOCUMENT in query.metadata:
        named = query.metadata[DOCUMENT]
        return named if isinstance(named, str) and named.strip() else ""
    sources = {None if each.span is None else each.span.source for each in query.references}
    return (sources.pop() or "") if len(sources) == 1 else ""


def _reference(reference: Reference, document: str) -> dict[str, object]:
    """As benchmarks have it where it can be said so."""
    span = reference.span
    if span is None or span.source != document or reference.doc_id is not None:
        return reference.model_dump(mode="json", exclude_none=True)
    return {"content": reference.text, "start_index": span.start, "end_index": span.end}


WRITERS: Mapping[str, Callable[[Sequence[Query]], str]] = {"csv": _csv, "jsonl": _jsonl, "yaml": _yaml}
