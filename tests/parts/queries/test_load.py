"""All questions of a run together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from raggs.base.artifacts import Query
from raggs.base.errors import DataError
from raggs.parts.queries.fields import load_queries


class Given:
    """Questions from memory, each on the line of its place."""

    def __init__(self, *qids: str) -> None:
        self.qids = qids

    def queries(self) -> Iterator[tuple[int, Query]]:
        for line, qid in enumerate(self.qids, start=1):
            yield line, Query(qid=qid, text=f"question {qid}")


def test_questions_are_sorted_by_id() -> None:
    found = load_queries(Given("b", "a", "q10", "q2"), Path("x.jsonl"))
    assert list(found) == ["a", "b", "q10", "q2"]
    assert all(query.qid == qid for qid, query in found.items())


def test_an_id_that_stands_twice_is_named_with_both_lines() -> None:
    with pytest.raises(DataError, match=r"duplicate query id b \(first in line 2\)") as caught:
        load_queries(Given("a", "b", "c", "b"), Path("x.jsonl"))
    assert (caught.value.where, caught.value.line) == ("x.jsonl", 4)


def test_no_questions_at_all() -> None:
    with pytest.raises(DataError, match="contains no queries") as caught:
        load_queries(Given(), "x.csv")
    assert caught.value.where == "x.csv"
    assert caught.value.remedy
