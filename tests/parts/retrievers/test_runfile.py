"""Runs of other systems: what is read, and what is refused with its place."""

from __future__ import annotations

import gzip

import pytest

from raggs.base.errors import DataError, NotFoundError
from raggs.parts.retrievers.runfile import RunFileRetriever


@pytest.fixture
def retrieve(context, tmp_path, ask):
    def run(text, qids=("q1",), name="run.trec", **options):
        path = tmp_path / name
        if text is not None:
            path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        retriever = RunFileRetriever(RunFileRetriever.Config(path=path, **options), context)
        lists = retriever.search([ask("anything", qid) for qid in qids])
        return [[tuple(hit) for hit in hits] for hits in lists]

    return run


def test_sorted_by_score_not_by_place(retrieve):
    text = "# a comment\nq1 Q0 wing 3 0.5 t\nq1 Q0 copy 2 7 t\nq1\tQ0\tcat\t1\t7e0\tt\n\n"
    assert retrieve(text) == [[("cat", 7.0), ("copy", 7.0), ("wing", 0.5)]]
    assert retrieve(text, name="run.gz", k=2) == [[("cat", 7.0), ("copy", 7.0)]]


def test_scores_that_rise_with_the_rank_are_refused(retrieve):
    with pytest.raises(DataError, match=r"run\.trec: the scores rise with the rank: in 2 of 2 pairs.*awk"):
        retrieve("q1 Q0 wing 1 0.5 t\nq1 Q0 copy 2 0.7 t\nq1 Q0 cat 3 0.9 t\n")


def test_a_query_that_the_run_lacks_has_no_hits(retrieve):
    assert retrieve("q2 Q0 cat 1 1 t\n", qids=("q1", "q2")) == [[], [("cat", 1.0)]]


def test_a_run_over_another_corpus(retrieve):
    with pytest.raises(DataError, match=r"run\.trec:2: the corpus does not contain passage 'dog'"):
        retrieve("q1 Q0 cat 1 1 t\nq1 Q0 dog 2 0.5 t\n")


def test_a_run_over_other_queries(retrieve):
    with pytest.raises(DataError, match=r"it has 101, 102, \.\.\., the run has q1, q2, \.\.\."):
        retrieve("101 Q0 cat 1 1 t\n102 Q0 cat 1 1 t\n", qids=("q1", "q2"))


def test_a_run_over_a_few_queries_may_miss_a_batch(retrieve):
    assert retrieve("q2 Q0 cat 1 1 t\n", qids=("q1",)) == [[]]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", DataError, "the run file is empty"),
        ("# nothing\n", DataError, "the run file is empty"),
        ("q1 0 cat 1\n", DataError, r"run\.trec:1: 4 columns instead of 6"),
        ("q1 Q0 cat 1 high t\n", DataError, "not a finite number"),
        ("q1 Q0 cat 1 nan t\n", DataError, "not a finite number"),
        ("q1 Q0 cat 1 1 t\nq1 Q0 cat 2 0 t\n", DataError, r"run\.trec:2: .* twice"),
        (None, NotFoundError, "no such file"),
    ],
)
def test_a_bad_run_is_refused(retrieve, text, error, message):
    with pytest.raises(error, match=message):
        retrieve(text)


def test_more_lines_than_are_looked_up_at_a_time(retrieve):
    lines = [f"q{number} Q0 cat 1 1 t\n" for number in range(2500)]
    assert retrieve("".join(lines), qids=("q1", "q2499")) == [[("cat", 1.0)]] * 2


def contract_case(folder, request):
    path = folder / "run.trec"
    path.write_text("q1 Q0 cat 1 2.5 tag\nq1 Q0 copy 2 2.5 tag\nq1 Q0 wing 3 1 tag\nq2 Q0 plate 1 1 tag\n")
    return {"path": path}
