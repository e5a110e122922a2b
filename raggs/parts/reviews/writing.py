"""Reviews, and passages that nobody has read yet, as files for elsewhere; `reading` gives back what was said.

A task carries ids and digests, so that its grade finds its way back whatever the ids are by then; it shows no machine's
grade, rank or system. Argilla knows its users by UUIDs, so that names stand in the metadata of a record; Label Studio
ignores the names of an annotation that it did not give itself.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from raggs.base.artifacts import Passage, Query
from raggs.base.text import spreadsheet_cell
from raggs.parts.reviews.models import GradeReview, passage_digest, question_digest
from raggs.parts.reviews.reading import ASK, NOTE, argilla_user

CANNOT_TELL = "?"
COLUMNS = (
    *("qid", "question", "doc_id", "title", "text", "grade", "note", "who", "at", "seconds"),
    *("settles", "blind", "prompt", "chance", "query", "passage"),
)


@dataclass(frozen=True)
class Task:
    """A passage for a question, with what people say of it; without words it is to be read."""

    query: Query
    passage: Passage
    words: tuple[GradeReview, ...] = ()

    @property
    def ids(self) -> dict[str, str]:
        """What finds it again: both ids and both digests."""
        return {
            "qid": self.query.qid,
            "doc_id": self.passage.doc_id,
            "query": question_digest(self.query),
            "passage": passage_digest(self.passage),
        }


def as_jsonl(tasks: Sequence[Task]) -> str:
    """A line of reviews.jsonl for each word; an object with an empty grade for what is to be read."""
    return "".join(
        line + "\n"
        for task in tasks
        for line in ([word.model_dump_json() for word in task.words] or [_json({**_row(task, None), "grade": None})])
    )


def as_csv(tasks: Sequence[Task]) -> str:
    """A row for each word, or for what is to be read; no cell is one that a spreadsheet would run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # a cell with either end is quoted
    writer.writerow(COLUMNS)
    for task in tasks:
        for row in [_row(task, word) for word in task.words] or [_row(task, None)]:
            writer.writerow([spreadsheet_cell(str(row.get(name, ""))) for name in COLUMNS])
    return text.getvalue()


def as_argilla(tasks: Sequence[Task]) -> str:
    """Records as Argilla's `records.to_json` writes them: fields `question`, `passage`; questions `grade`, `note`."""
    return _listed(map(_record, tasks))


def as_label_studio(tasks: Sequence[Task]) -> str:
    """Tasks as Label Studio imports them, for controls `grade` (Choices or Rating) and `note` (TextArea)."""
    return _listed(map(_task, tasks))


FORMS: Mapping[str, Callable[[Sequence[Task]], str]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "argilla": as_argilla,
    "label-studio": as_label_studio,
}


def told(grade: int | None) -> str:
    """A grade as people write it."""
    return CANNOT_TELL if grade is None else str(grade)


def _row(task: Task, word: GradeReview | None) -> dict[str, object]:
    shown = _shown(task)
    if word is None:
        return shown
    said = word.model_dump(mode="json", include=set(COLUMNS), exclude={"grade"}, exclude_none=True)
    return {**shown, **said, "grade": told(word.grade)}


def _shown(task: Task) -> dict[str, object]:
    """What a reader sees, and what finds it again."""
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
        ASK: [{"value": told(word.grade), "user_id": user} for word, user in zip(task.words, users, strict=True)],
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
    return {"data": _shown(task), "annotations": [_annotation(word) for word in task.words]}


def _annotation(word: GradeReview) -> dict[str, object]:
    grade: dict[str, object] = {"type": "choices", "value": {"choices": [told(word.grade)]}}
    note: dict[str, object] = {"type": "textarea", "value": {"text": [word.note]}}
    result = [{"from_name": ASK, "to_name": "text", **grade}]
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


def _listed(entries: Iterator[dict[str, object]]) -> str:
    lines = ",\n".join(map(_json, entries))
    return f"[\n{lines}\n]\n" if lines else "[]\n"
