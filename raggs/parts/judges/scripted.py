"""A judge that reads its answers from a file: for tests, demonstrations and replays of human decisions.

The file is JSON lines. Each line has one of these forms:

    {"qid": "q1", "doc_id": "d1", "grade": 4}             grade of a passage; "reason" is optional
    {"qid": "q1", "doc_id": "d1", "fail": "refused"}      the judge fails on this passage
    {"qid": "q1", "order": ["d3", "d1"]}                  best first; passages not listed follow, by grade

A passage without a line gets the grade `default_grade`. ``{"qid": "q1", "fail_orders": 2}`` makes the first two orders
of the query fail. All other answers are the same for each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeGuard

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Passage, Query
from raggs.base.errors import DataError
from raggs.base.jsonl import read_objects
from raggs.base.settings import InputPath
from raggs.parts.judges import Judge, Judgment, Ordering

LINE_REMEDY = 'for example {"qid": "q1", "doc_id": "d1", "grade": 4}'


class ScriptedJudgeConfig(AdapterConfig):
    type: Literal["scripted"] = "scripted"
    path: InputPath = Field(
        description="JSON-lines file of grades, orders and failures; keys: qid, doc_id, grade, order, fail, fail_orders"
    )
    default_grade: int = Field(1, ge=MIN_GRADE, le=MAX_GRADE, description="grade of passages without a line")


@dataclass
class _Script:
    grades: dict[tuple[str, str], Judgment] = field(default_factory=dict)
    orders: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)


class ScriptedJudge(Judge):
    """Reads grades, orders and failures from a JSON-lines file."""

    Config = ScriptedJudgeConfig
    config: ScriptedJudgeConfig

    @property
    def name(self) -> str:
        return f"scripted {self.config.path.name}"

    def check(self, queries: Iterable[Query]) -> None:
        known = {query.qid for query in queries}
        named = {qid for qid, _ in self._script.grades} | set(self._script.orders)
        if named and not known & named:
            message = f"no line is for a query of this run (the file has lines for {', '.join(sorted(named)[:3])})"
            raise DataError(message, where=self.config.path, remedy="use the query ids of the run")

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        return self._script.grades.get((query.qid, passage.doc_id)) or Judgment(self.config.default_grade)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        if self._script.failures.get(query.qid, 0) > 0:
            self._script.failures[query.qid] -= 1
            return Ordering(None, "failure requested by the script")
        places = self._script.orders.get(query.qid, {})

        def key(place: int) -> tuple[int, int, str]:
            doc_id = passages[place].doc_id
            judgment = self._script.grades.get((query.qid, doc_id))
            grade = judgment.grade if judgment and judgment.grade else self.config.default_grade
            return places.get(doc_id, len(places)), -grade, doc_id

        return Ordering(tuple(sorted(range(len(passages)), key=key)))

    @cached_property
    def _script(self) -> _Script:
        script = _Script()
        for number, row in read_objects(self.config.path):
            problem = _take(script, row)
            if problem:
                raise DataError(problem, where=self.config.path, line=number, remedy=LINE_REMEDY)
        return script


def _take(script: _Script, row: dict[str, Any]) -> str | None:
    """Parse one line into the script; return an error message if the line is invalid, otherwise None."""
    qid = row.get("qid")
    if not isinstance(qid, str):
        return "qid is missing or is not a string"
    if "order" in row:
        return _take_order(script, qid, row["order"])
    if "fail_orders" in row:
        return _take_failures(script, qid, row["fail_orders"])
    return _take_grade(script, qid, row)


def _take_order(script: _Script, qid: str, names: Any) -> str | None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return "order is not a list of passage ids"
    if len(set(names)) < len(names):
        return "order lists a passage twice"
    if qid in script.orders:
        return f"query {qid} already has an order"
    script.orders[qid] = {name: place for place, name in enumerate(names)}
    return None


def _take_failures(script: _Script, qid: str, count: Any) -> str | None:
    if not _is_whole(count) or count < 0:
        return f"fail_orders must be a whole number of at least 0, got {count!r}"
    script.failures[qid] = count
    return None


def _take_grade(script: _Script, qid: str, row: dict[str, Any]) -> str | None:
    doc_id, grade, failure = row.get("doc_id"), row.get("grade"), row.get("fail")
    if not isinstance(doc_id, str):
        return "doc_id is missing or is not a string"
    if (qid, doc_id) in script.grades:
        return f"query {qid} and passage {doc_id} occur twice"
    if isinstance(failure, str):
        script.grades[qid, doc_id] = Judgment(None, error=failure)
    elif _is_whole(grade) and MIN_GRADE <= grade <= MAX_GRADE:
        script.grades[qid, doc_id] = Judgment(grade, str(row.get("reason", "")))
    else:
        return f"grade must be a whole number from 1 to 5, got {grade!r}"
    return None


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
