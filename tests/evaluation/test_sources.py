from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raggs.errors import NotFoundError, UsageError
from raggs.evaluation.sources import Golden, open_golden, open_systems
from raggs.metrics.columns import Qrels, Scale

LABELS = st.dictionaries(
    st.text("ab1", min_size=2, max_size=3),
    st.dictionaries(st.text("cd2", min_size=2, max_size=9), st.integers(-1, 5), min_size=1),
    min_size=1,
)


def digest(labels, scale=None):
    return Golden("x", Qrels.of(labels, scale or Scale.of(0, 5)), None, {}).digest


@settings(max_examples=60, deadline=None)
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
    assert open_golden(tmp_path / "a.txt", None).digest == open_golden(tmp_path / "a.csv", None).digest


def test_systems_are_called_by_their_files_or_as_asked(tmp_path):
    line = b"q1 Q0 doc-1 1 2.0 t\n"
    for name in ("bm25.trec", "dense.v2.trec.gz", "plain"):
        (tmp_path / name).write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    specs = [str(tmp_path / name) for name in ("bm25.trec", "dense.v2.trec.gz", "plain")]
    specs.append(f"x={tmp_path / 'plain'}")
    assert [system.name for system in open_systems(specs)] == ["bm25", "dense.v2", "plain", "x"]
    with pytest.raises(UsageError, match="two systems are called bm25"):
        list(open_systems([specs[0], specs[0]]))


def test_a_folder_without_a_run_is_said(tmp_path):
    with pytest.raises(NotFoundError, match="no run here"):
        open_golden(tmp_path, None)
