from __future__ import annotations

import gzip
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError, RaggsError
from raggs.base.trec import Label
from raggs.metrics.columns import GradeScale
from raggs.parts import run_files
from raggs.parts.run_files import read_judgments, read_labels

IDS = st.text("abc019-_#.", min_size=1, max_size=12)


def shown(qrels):
    docs = qrels.docs.take(np.arange(len(qrels.docs))).tolist()
    rows = zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True)
    return qrels.scale, {(qrels.qids[query], doc.decode(), grade) for query, doc, grade in rows}


def outcome(path, scale=None):
    try:
        return shown(read_judgments(path, scale))
    except RaggsError as error:
        return str(error)


def slowly(path, scale=None):
    with patch.object(run_files, "quick_labels", return_value=None):
        return outcome(path, scale)


@given(
    st.dictionaries(st.tuples(IDS, IDS), st.integers(-2, 5), min_size=1),
    st.sampled_from(["{} 0 {} {}\n", "{}\tQ0\t{}\t{}\r\n", "  {} 0  {} {} \n"]),
    st.integers(1, 99),
)
def test_the_fast_way_and_the_slow_one_agree(tmp_path_factory, judged, form, chunk):
    path = tmp_path_factory.mktemp("labels") / "qrels"
    path.write_text("".join(form.format(qid, doc_id, grade) for (qid, doc_id), grade in judged.items()))
    scale = GradeScale.of(0, 5)
    with patch.object(run_files, "CHUNK", chunk):
        found = outcome(path, scale)
    assert found == slowly(path, scale)
    if not any(qid.startswith("#") for qid, _ in judged):
        assert found[1] == {(*key, grade) for key, grade in judged.items()}


@pytest.mark.parametrize(
    "line",
    [
        "q1 0 doc-9", "q1 0 doc-9 4 x", "q1 0 doc-3 5", "q1 0 doc-9 9", "q1 0 doc-9 4.0", "q1 0 doc-9 4e0", "q1 0 é 4",
        "q1 0 doc-9 +4", "q1 0 doc-9 -0", "# q1 0 doc-9 4", "q1 0 #9 4", "#q 0 doc-9 4", "q1 0 doc-9 0000000004",
        "q1 0 " + "x" * 300 + " 4", "q1\x0b0 doc-9 4", "q1 0 doc-9 4\x00", "q1 0 doc-9 1_0", "q1 0 doc-9 ++4",
    ],
)  # fmt: skip
def test_the_fast_way_and_the_slow_one_agree_on_oddities(line, tmp_path):
    path = tmp_path / "qrels"
    path.write_text(f"q1 0 doc-3 5\nq2 0 doc-3 1\n{line}\n")
    assert outcome(path) == slowly(path)


def test_plain_files_never_take_the_slow_way(tmp_path):
    path = tmp_path / "qrels.gz"
    path.write_bytes(gzip.compress(b"q2 0 msmarco#3_4 5\nq1 0 doc-3 -1\nq2 0 doc-3 1"))
    with patch.object(run_files, "read_labels", side_effect=AssertionError):
        qrels = read_judgments(path)
    assert qrels.qids == ("q1", "q2")
    assert qrels.query.tolist() == [0, 1, 1]
    assert qrels.grade.tolist() == [-1, 5, 1]


@pytest.mark.parametrize(
    ("grades", "scale"),
    [("1 5", (1, 5, 4)), ("0 1", (0, 4, 1)), ("0 4", (0, 4, 1)), ("-1 4", (1, 5, 4)), ("1 1", (0, 4, 1))],
)
def test_the_scale_is_guessed_where_it_can_be(grades, scale, tmp_path):
    path = tmp_path / "qrels"
    path.write_text("".join(f"q1 0 doc-{place} {grade}\n" for place, grade in enumerate(grades.split())))
    found = read_judgments(path).scale
    assert (found.low, found.high, found.relevant) == scale


@pytest.mark.parametrize(
    ("grades", "remedy"), [("1 2", "--scale 0-2"), ("2 1", "--scale 0-2"), ("3 -1", "--scale 0-3")]
)
def test_grades_that_may_mean_two_things_are_not_guessed(grades, remedy, tmp_path):
    path = tmp_path / "qrels"
    path.write_text("".join(f"q1 0 doc-{place} {grade}\n" for place, grade in enumerate(grades.split())))
    with pytest.raises(DataError, match=remedy):
        read_judgments(path)
    assert read_judgments(path, GradeScale.of(1, 5)).scale.relevant == 4


def test_labels_keep_their_lines_where_the_format_has_some(tmp_path):
    for name, text, line in (
        ("a", "# x\nq1 0 doc-3 5\n", 2),
        ("b", "qid,doc_id,grade\n\nq1,doc-3,5\n", 3),
        ("c", '{"q1": {"doc-3": 5}}', 0),
    ):
        (tmp_path / name).write_text(text)
        assert list(read_labels(tmp_path / name)) == [Label(line, "q1", "doc-3", 5)]
