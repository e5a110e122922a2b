"""Grades as columns: one digest, whatever file they came from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raggs.golden.judgments import Judgments
from raggs.golden.sources import open_golden
from raggs.metrics.columns import GradeScale, Qrels

LABELS = st.dictionaries(
    st.text("ab1", min_size=2, max_size=3),
    st.dictionaries(st.text("cd2", min_size=2, max_size=9), st.integers(-1, 5), min_size=1),
    min_size=1,
)


def digest(labels, scale=None):
    return Judgments("x", Qrels.of(labels, scale or GradeScale.of(0, 5))).digest


@given(LABELS, LABELS)
def test_a_digest_stands_for_the_judgments_whatever_their_order(one, other):
    turned = {qid: dict(reversed(list(docs.items()))) for qid, docs in reversed(list(one.items()))}
    assert digest(turned) == digest(one)
    assert (digest(one) == digest(other)) is (one == other)


def test_a_digest_tells_grades_queries_and_passages_apart():
    found = [
        digest({"q1": {"ab": 1}}),
        digest({"q1": {"ab": 2}}),
        digest({"q2": {"ab": 1}}),
        digest({"q1": {"abc": 1}}),
        digest({"q1": {"ab": 1}, "q2": {"cd": 1}}),
        digest({"q1": {"ab": 1, "cd": 1}}),
    ]
    assert len(set(found)) == len(found)


def test_files_of_two_formats_have_one_digest(tmp_path):
    (tmp_path / "a.txt").write_text("q1 0 doc-1 5\nq2 0 doc-1 1\n")
    (tmp_path / "a.csv").write_text("qid,doc_id,grade\nq2,doc-1,1\nq1,doc-1,5\n")
    one, other = (open_golden(tmp_path / name).judgments() for name in ("a.txt", "a.csv"))
    assert one.digest == other.digest


def test_facets_are_numbered_once_for_all_systems_that_are_scored():
    judgments = Judgments("qrels", Qrels.of({"q": {"a": 5, "b": 4, "c": 4}}), facets={"a": "a", "b": "a"})
    own = judgments.facets_of({})
    assert own is judgments.facets_of({})
    assert own[0] == own[1] != own[2] == -1
    more = judgments.facets_of({"b": "b", "c": "a"})
    assert more[0] == more[2] != more[1], "what is given goes before what the set says"
    assert Judgments("qrels", judgments.qrels).facets_of({}) is None
