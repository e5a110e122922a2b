"""Queries and passages of a set compared with those of an earlier version."""

from __future__ import annotations

from raggs.base.artifacts import Query, Validity
from raggs.golden.changes import match_queries


def asked(**texts: str) -> dict[str, Query]:
    return {qid: Query(qid=qid, text=text) for qid, text in texts.items()}


def test_queries_by_id_and_content():
    found = match_queries(asked(a="one", b="two", c="three").values(), asked(a="one", x="two", c="other", n="new"))
    assert found.earlier == {"a": "a", "x": "b"}
    assert (found.edited, found.new, found.gone) == (("c",), ("n",), ())
    assert found.counts.model_dump() == {"unchanged": 1, "renamed": 1, "edited": 1, "new": 1, "gone": 0}


def test_two_queries_with_one_text_are_two_queries():
    found = match_queries(asked(a="one", b="one").values(), asked(x="one", y="one", z="one"))
    assert sorted(found.earlier.values()) == ["a", "b"]
    assert found.counts.new == 1


def test_data_that_no_judge_reads_does_not_change_a_query():
    before = Query(qid="a", text="one")
    after = before.model_copy(update={"metadata": {"by": "me"}, **dict(Validity(depends_on=("d",)))})
    assert match_queries([before], {"a": after}).counts.unchanged == 1


def test_an_expected_answer_changes_a_query():
    before = Query(qid="a", text="one")
    assert match_queries([before], {"a": before.model_copy(update={"answer": "two"})}).counts.edited == 1
