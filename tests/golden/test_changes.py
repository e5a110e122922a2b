"""Queries and passages of a set compared with those of an earlier version."""

from __future__ import annotations

from raggs.base.artifacts import Passage, Query, Span, Validity
from raggs.golden.changes import dependent_queries, match_queries


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


def test_a_query_depends_on_documents_and_evidence() -> None:
    def passage(doc_id: str, text: str, source: str) -> Passage:
        return Passage(doc_id=doc_id, text=text, span=Span(source=source, start=0, end=len(text)))

    before = [passage("a#1", "one", "a"), passage("b#1", "two", "b"), passage("c#1", "three", "c")]
    after = [passage("a#1", "one", "a"), passage("a#2", "more", "a"), passage("b#1", "2", "b")]
    queries = [
        Query(qid="q1", text="t", depends_on=("a",)),
        Query(qid="q2", text="t", evidence=(("a#1", "b#1"),)),
        Query(qid="q3", text="t", depends_on=("c", "a")),
        Query(qid="q4", text="t"),
    ]
    found = dependent_queries(queries, before, after, whole=True)
    assert found == {"q1": ("a",), "q2": ("b#1",), "q3": ("c", "a")}
    assert dependent_queries(queries, before, after, whole=False) == {"q2": ("b#1",), "q3": ("c",)}
    assert dependent_queries(queries[3:], before, after, whole=True) == {}
