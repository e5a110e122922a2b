"""Python functions as a judge: a failure or a wrong answer never becomes a number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.contracts import write_module
from support.judging import graded, judge, ordered, passage, query

from raggs.base.errors import ConfigError
from raggs.parts.judges import Judgment

RULES = """
KNOWN = ("q0", "q1", "q2")

def grade(query, passage):
    return 5 if "gamma" in passage else 2 if "alpha" in passage else 1
"""
JUDGES_ANY_QUERY = True
Make = Callable[..., Any]


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"callable": f"{write_module(folder, request, RULES)}:grade", "folder": folder}


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def made(body: str, order: str | None = None) -> Any:
        text = f"def grade(query, passage):\n    {body}\n"
        text += "" if order is None else f"def order(query, passages):\n    {order}\n"
        module = write_module(tmp_path, request, text)
        more = {} if order is None else {"order": f"{module}:order"}
        return judge("python", callable=f"{module}:grade", folder=tmp_path, **more)

    return made


@pytest.mark.parametrize("given", ["0", "6", "3.5", "True", "None", "'4'", "float('nan')"])
def test_only_a_grade_is_a_grade(make: Make, given: str) -> None:
    answer = graded(make(f"return {given}"), query(), passage("d1", "text"))
    assert answer.grade is None
    assert "for query q1, passage d1 instead of a whole number from 1 to 5" in (answer.error or "")


def test_a_whole_number_of_numpy_is_one(make: Make) -> None:
    answer = graded(make("import numpy; return numpy.int64(4)"), query(), passage("d1", "text"))
    assert (answer.grade, type(answer.grade)) == (4, int)


def test_what_it_raises_is_a_failed_judgment_that_names_the_cause(make: Make) -> None:
    answer = graded(make("raise ValueError('no idea')"), query(), passage("d1", "text"))
    assert answer.grade is None
    assert "grade raised ValueError on query q1, passage d1: no idea" in (answer.error or "")


def test_coroutines_are_waited_for(make: Make, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    module = write_module(tmp_path, request, "import asyncio\nasync def grade(query, passage):\n    return 4\n")
    assert graded(judge("python", callable=f"{module}:grade", folder=tmp_path), query(), passage("d", "t")).grade == 4


def test_without_order_the_grades_decide(make: Make) -> None:
    passages = [passage("d1", "a"), passage("d2", "abc"), passage("d3", "ab")]
    assert ordered(make("return len(passage)"), query(), passages) == ["d2", "d3", "d1"]


def test_without_grades_there_is_no_order(make: Make) -> None:
    answer = asyncio.run(make("return 9").order(query(), [passage("d1", "a"), passage("d2", "b")]))
    assert answer.order is None
    assert answer.error


@pytest.mark.parametrize("given", ["[0, 1]", "[0, 0, 1]", "[1, 2, 3]", "None", "[0.0, 1.0, 2.0]", "['a', 'b', 'c']"])
def test_an_order_names_each_position_once(make: Make, given: str) -> None:
    passages = [passage("d1", "a"), passage("d2", "b"), passage("d3", "c")]
    answer = asyncio.run(make("return 3", f"return {given}").order(query(), passages))
    assert answer.order is None
    assert "instead of each position from 0 to 2 once" in answer.error


def test_an_order_of_its_own(make: Make) -> None:
    passages = [passage("d1", "a"), passage("d2", "b"), passage("d3", "c")]
    backwards = "return list(reversed(range(len(passages))))"
    assert ordered(make("return 3", backwards), query(), passages) == ["d3", "d2", "d1"]


def test_a_function_that_is_not_there_is_found_before_anything_is_judged(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no module 'nowhere'"):
        judge("python", callable="nowhere:grade", folder=tmp_path).check([query()])


def test_a_message_of_any_length_is_stored_in_part(make: Make) -> None:
    answer = graded(make("raise ValueError('x' * 10**7)"), query(), passage("d1", "text"))
    assert "raised ValueError on query q1, passage d1: xxx" in (answer.error or "")
    assert len(answer.error or "") < 1_000
    assert (answer.error or "").endswith("x…")


def test_a_reason_of_any_length_is_stored_in_part_and_once() -> None:
    stored = Judgment(3, "x" * 10**7).reason
    assert len(stored) < 11_000
    assert stored.endswith("characters in all)")
    assert Judgment(3, stored).reason == stored, "what was stored is read again without another cut"
