"""Imports and exports human labels: tables, JSON lines, Argilla and Label Studio.

Import: all formats become cells with the column names of reviews.jsonl. This module has no access to the run, so the
caller checks whether a query exists. If a row's grade is empty, the passage was not labelled, and the row is returned
without a label. Lines of reviews.jsonl are accepted unchanged. Texts stay unchanged, except that the protection against
spreadsheet formulas is removed.

Export: labels, and passages without labels, as files for other tools. `read_rows` can read these files again. A task
contains ids and digests, so that its grade can be matched even if ids have changed. A task contains no grade of a
model, no rank and no system. Argilla identifies users by UUIDs, so names are in the metadata of a record. Label Studio
ignores the annotator names of imported annotations.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from raggs.base.artifacts import Passage, Query
from raggs.base.errors import DataError, UsageError
from raggs.base.files import read_text
from raggs.base.jsonl import DECODER, TOO_DEEP, first_fault, read_objects
from raggs.base.tables import NO_COLUMNS, REVIEW_ROLES, ColumnNames, ObjectColumns, open_table, table_cells_of
from raggs.base.text import spreadsheet_cell
from raggs.base.types import as_list, as_object
from raggs.parts.reviews import HEX, GradeReview, Review, ReviewLine, passage_digest, question_digest

REVIEW_SUFFIXES = (".csv", ".jsonl", ".jsonl.gz", ".json")
GRADE_FIELD = "grade"  # in other tools, name of the question or control for the grade
NOTE = "note"
INK = re.compile(r"\S")
KINDS = {"grade", "order", "evidence", "withdrawal"}
DIGESTS = ("query", "passage")  # columns of text digests; in tables of other tools, these columns contain the texts
DIGEST = re.compile(rf"[0-9a-f]{{{HEX}}}")


@dataclass(frozen=True)
class ReviewFileRow:
    """A row of a file: data on one passage.

    Attributes:
        line: line in the file, from 1.
        cells: cells by column name of reviews.jsonl, with values as in the file.
        review: parsed line, if the file is a reviews.jsonl.
    """

    path: Path
    line: int
    cells: Mapping[str, object]
    review: Review | None = None

    def wrong(self, message: str, remedy: str) -> DataError:
        """Return an error about this row."""
        return DataError(message, where=self.path, line=self.line, remedy=remedy)


def read_rows(path: Path, columns: ColumnNames = NO_COLUMNS) -> Iterator[ReviewFileRow]:
    """Yield the rows of a file, in order; the suffix determines whether it is a table, JSON lines or a JSON list.

    Args:
        path: file to read.
        columns: column names from `--column`.

    Raises:
        UsageError: the suffix is unknown.
        NotFoundError, DataError: the file cannot be read or does not match its suffix; the error names the line.
    """
    name = path.name.lower()
    if name.endswith(".csv"):
        yield from _of_table(path, columns)
    elif name.endswith((".jsonl", ".jsonl.gz", ".json")):
        known = ObjectColumns(path, REVIEW_ROLES, columns, ())
        for line, found in _entries(path) if name.endswith(".json") else read_objects(path):
            yield from _of_object(found, path, line, known)
    else:
        raise UsageError(f"{path}: unknown format of labels", remedy=f"use a file in {', '.join(REVIEW_SUFFIXES)}")


def _of_table(path: Path, columns: ColumnNames) -> Iterator[ReviewFileRow]:
    """Yield the rows of a table, with the column names of reviews.jsonl."""
    digests = _digests(path)
    table = open_table(path, (*REVIEW_ROLES, *digests), (GRADE_FIELD,), {**columns, **digests}, ",")
    yield from (ReviewFileRow(path, line, cells) for line, cells in table.rows)


def _digests(path: Path) -> dict[str, str]:
    """Return the columns `query` and `passage` of a table if they contain digests rather than texts."""
    rows = table_cells_of(path, ",")
    names, first = ([cell.strip() for cell in next(rows, (0, []))[1]] for _ in range(2))
    return {name: name for name, cell in zip(names, first, strict=False) if name in DIGESTS and _is_digest(cell)}


def _is_digest(cell: object) -> bool:
    return isinstance(cell, str) and DIGEST.fullmatch(cell) is not None


def _entries(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the objects of a JSON list, each with its first line."""
    text = read_text(path)
    at, line = _next_non_blank(text, 0), 1
    if text[at : at + 1] != "[":
        raise _no_list("not a JSON list", path, line)
    counted, at = 0, _next_non_blank(text, at + 1)
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            found, at = DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise _no_list(error.msg, path, line + text.count("\n", counted, error.pos)) from error
        except (ValueError, RecursionError) as error:
            raise _no_list(TOO_DEEP if isinstance(error, RecursionError) else str(error), path, line) from error
        if not isinstance(found, dict):
            raise _no_list("not a JSON object", path, line)
        yield line, found
        at = _next_non_blank(text, at)
        if text[at : at + 1] not in {",", "]"}:
            raise _no_list("a comma or the end of the list is missing", path, line)
        at = _next_non_blank(text, at + 1) if text[at] == "," else at


def _no_list(said: str, path: Path, line: int) -> DataError:
    remedy = "use a JSON list of records or tasks"
    return DataError(f"not valid JSON ({said})", where=path, line=line, remedy=remedy)


def _next_non_blank(text: str, start: int) -> int:
    """Return the position of the next character that is not blank."""
    found = INK.search(text, start)
    return len(text) if found is None else found.start()


def _of_object(found: Mapping[str, object], path: Path, line: int, known: ObjectColumns) -> Iterator[ReviewFileRow]:
    """Yield the rows that an object contains, in any of the formats.

    Args:
        known: key names, for an object that is a single row.
    """
    if isinstance(found.get("fields"), dict):
        yield from _of_argilla(found, path, line)
    elif isinstance(data := found.get("data"), dict):
        yield from _of_label_studio(found, data, path, line)
    elif "v" in found and found.get("kind") in KINDS:
        try:
            yield ReviewFileRow(path, line, {}, ReviewLine.model_validate_json(json.dumps(found)).root)
        except ValidationError as error:
            raise DataError(first_fault(error), where=path, line=line, remedy="see reviews.jsonl") from error
    else:
        digests = {name: found[name] for name in DIGESTS if _is_digest(found.get(name))}
        others = {name: value for name, value in found.items() if name not in digests}
        yield ReviewFileRow(path, line, {**known.cells(others, line), **digests})


def _of_argilla(found: Mapping[str, object], path: Path, line: int) -> Iterator[ReviewFileRow]:
    """Yield a row for each response to the question `grade`, with the note of the same user."""
    metadata = as_object(found.get("metadata"))
    responses = as_object(found.get("responses"))
    ids = {name: metadata[name] for name in ("qid", "doc_id", "query", "passage") if name in metadata}
    notes: dict[str, list[object]] = {}
    for each in _mappings(responses.get(NOTE)):
        notes.setdefault(str(each.get("user_id") or ""), []).append(each.get("value"))
    names = [str(name) for name in as_list(metadata.get("who"))]
    known: dict[str, list[int]] = {}  # for each user, the indices of the user's labels in the metadata
    for place, name in enumerate(names):
        known.setdefault(argilla_user(name), []).append(place)
    for each in _mappings(responses.get(GRADE_FIELD)):
        user = str(each.get("user_id") or "")
        cells: dict[str, object] = {"who": user, **ids, "grade": each.get("value")}
        if told := notes.get(user):
            cells["note"] = told.pop(0)
        if places := known.get(user):
            place = places.pop(0)
            for column in ("who", "at", "seconds", "settles"):
                cells[column] = next(iter(as_list(metadata.get(column))[place : place + 1]), "")
        yield ReviewFileRow(path, line, cells)


def argilla_user(name: str) -> str:
    """Return the UUID of an annotator in Argilla records."""
    return str(uuid5(NAMESPACE_URL, name))


def _of_label_studio(
    found: Mapping[str, object], data: Mapping[str, object], path: Path, line: int
) -> Iterator[ReviewFileRow]:
    """Yield a row for each annotation of a task, except cancelled annotations."""
    ids = {name: data[name] for name in ("qid", "doc_id", "query", "passage") if name in data}
    for each in _mappings(found.get("annotations")):
        if each.get("was_cancelled"):
            continue
        by = each.get("completed_by")
        user = (by.get("email") or by.get("id")) if isinstance(by, dict) else by
        cells: dict[str, object] = {
            **ids,
            "who": each.get("who") or ("" if user is None else str(user)),
            "at": each.get("created_at"),
            "seconds": each.get("lead_time"),
            "settles": each.get("settles"),
        }
        for result in _mappings(each.get("result")):
            value = as_object(result.get("value"))
            if "rating" in value or "choices" in value:
                cells["grade"] = value.get("rating") or next(iter(as_list(value.get("choices"))), None)
            elif "text" in value:
                text = value["text"]
                cells["note"] = "\n".join(map(str, text)) if isinstance(text, list) else text
        yield ReviewFileRow(path, line, cells)


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in as_list(value) if isinstance(each, dict)]


CANNOT_TELL = "?"
COLUMNS = (
    *("qid", "question", "doc_id", "title", "text", "grade", "note", "who", "at", "seconds"),
    *("settles", "blind", "prompt", "chance", "query", "passage"),
)


@dataclass(frozen=True)
class Task:
    """A passage for a query, with its human labels; if there are no labels, it is still to be labelled."""

    query: Query
    passage: Passage
    words: tuple[GradeReview, ...] = ()

    @property
    def ids(self) -> dict[str, str]:
        """The ids and digests of query and passage."""
        return {
            "qid": self.query.qid,
            "doc_id": self.passage.doc_id,
            "query": question_digest(self.query),
            "passage": passage_digest(self.passage),
        }


def as_jsonl(tasks: Sequence[Task]) -> str:
    """Return a line of reviews.jsonl per label, and an object with an empty grade per passage without a label."""
    return "".join(
        line + "\n"
        for task in tasks
        for line in ([word.model_dump_json() for word in task.words] or [_json({**_row(task, None), "grade": None})])
    )


def as_csv(tasks: Sequence[Task]) -> str:
    """Return a row per label or unlabelled passage; cells that a spreadsheet would execute are protected."""
    text = io.StringIO()
    # with this line terminator, the writer quotes cells that contain either kind of line end
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for task in tasks:
        for row in [_row(task, word) for word in task.words] or [_row(task, None)]:
            writer.writerow([spreadsheet_cell(str(row.get(name, ""))) for name in COLUMNS])
    return text.getvalue()


def as_argilla(tasks: Sequence[Task]) -> str:
    """Return records in the format of Argilla's `records.to_json`.

    The fields are `question` and `passage`; the questions for annotators are `grade` and `note`.
    """
    return _dump_list(map(_record, tasks))


def as_label_studio(tasks: Sequence[Task]) -> str:
    """Return tasks for import into Label Studio; labels are annotations of `grade` (Choices) and `note` (TextArea)."""
    return _dump_list(map(_task, tasks))


EXPORT_FORMS: Mapping[str, Callable[[Sequence[Task]], str]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "argilla": as_argilla,
    "label-studio": as_label_studio,
}


def grade_text(grade: int | None) -> str:
    """Return a grade in the format of exports."""
    return CANNOT_TELL if grade is None else str(grade)


def _row(task: Task, word: GradeReview | None) -> dict[str, object]:
    shown = _shown_fields(task)
    if word is None:
        return shown
    said = word.model_dump(mode="json", include=set(COLUMNS), exclude={"grade"}, exclude_none=True)
    return {**shown, **said, "grade": grade_text(word.grade)}


def _shown_fields(task: Task) -> dict[str, object]:
    """Return the fields of a task: the texts that the annotator sees, and the ids and digests."""
    return {"question": task.query.text, "title": task.passage.title, "text": task.passage.text, **task.ids}


def _record(task: Task) -> dict[str, object]:
    users = [argilla_user(word.who) for word in task.words]
    metadata: dict[str, object] = dict(task.ids)
    if task.words:
        metadata["who"] = [word.who for word in task.words]
        metadata["at"] = [word.at.isoformat() for word in task.words]
        metadata["seconds"] = ["" if word.seconds is None else str(word.seconds) for word in task.words]
        metadata["settles"] = [str(word.settles).lower() for word in task.words]
    said = {
        GRADE_FIELD: [
            {"value": grade_text(word.grade), "user_id": user} for word, user in zip(task.words, users, strict=True)
        ],
        NOTE: [
            {"value": word.note, "user_id": user} for word, user in zip(task.words, users, strict=True) if word.note
        ],
    }
    return {
        "id": "-".join((task.ids["query"], task.ids["passage"])),
        "fields": {"question": task.query.text, "passage": task.passage.raw},
        "metadata": metadata,
        "suggestions": {},
        "responses": {name: answers for name, answers in said.items() if answers},
        "vectors": {},
    }


def _task(task: Task) -> dict[str, object]:
    return {"data": _shown_fields(task), "annotations": [_annotation(word) for word in task.words]}


def _annotation(word: GradeReview) -> dict[str, object]:
    grade: dict[str, object] = {"type": "choices", "value": {"choices": [grade_text(word.grade)]}}
    note: dict[str, object] = {"type": "textarea", "value": {"text": [word.note]}}
    result = [{"from_name": GRADE_FIELD, "to_name": "text", **grade}]
    if word.note:
        result.append({"from_name": NOTE, "to_name": "text", **note})
    return {
        "result": result,
        "was_cancelled": False,
        "ground_truth": word.settles,
        "created_at": word.at.isoformat(),
        "lead_time": word.seconds,
        "who": word.who,
        "settles": word.settles,
    }


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _dump_list(entries: Iterator[dict[str, object]]) -> str:
    lines = ",\n".join(map(_json, entries))
    return f"[\n{lines}\n]\n" if lines else "[]\n"
