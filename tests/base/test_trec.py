"""Reading TREC files: what is accepted, and what is said about the rest."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError, NotFoundError
from raggs.base.trec import Label, ScoredPassage, read_qrels, read_scored

IDS = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8).filter(
    lambda text: text[0] != "#"
)
PAIRS = st.lists(st.tuples(IDS, IDS), unique=True, max_size=20)


def write(folder: Path, content: str | bytes, name: str = "file.trec") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_rows_come_in_order_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeff# made by hand\nq2 0 d1 3\n\n  q1\t0  d1   -1 \nq1 0 d2 0")
    assert list(read_qrels(path)) == [Label(2, "q2", "d1", 3), Label(4, "q1", "d1", -1), Label(5, "q1", "d2", 0)]


def test_a_run_is_not_sorted_and_its_ranks_are_not_used(tmp_path: Path) -> None:
    path = write(tmp_path, "q1 Q0 d1 99 0.5 a\nq1 Q0 d2 x 7e1 a\n# end\nq1 Q0 d3 1 -2 a\n")
    assert list(read_scored(path)) == [
        ScoredPassage(1, "q1", "d1", 0.5),
        ScoredPassage(2, "q1", "d2", 70.0),
        ScoredPassage(4, "q1", "d3", -2.0),
    ]


def test_a_compressed_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"# packed\nq1 0 d1 5\n"), "qrels.gz")
    assert list(read_qrels(path)) == [Label(2, "q1", "d1", 5)]


@given(PAIRS, st.integers(-1, 5))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], grade: int
) -> None:
    path = write(tmp_path_factory.mktemp("trec"), "".join(f"{qid} 0 {doc_id} {grade}\n" for qid, doc_id in pairs))
    assert [(label.qid, label.doc_id, label.grade) for label in read_qrels(path)] == [(*pair, grade) for pair in pairs]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 0 d1", "3 columns instead of 4"),
        ("q1 0 d1 1 extra", "5 columns instead of 4"),
        ("q1 0 d1 2.5", "'2.5' is not an integer"),
        ("q1 0 d1 high", "'high' is not an integer"),
        ("q0 0 d0 2", r"q0 and passage d0 occur twice \(first in line 1\)"),
        ("#q1 0 d1 3", "starts with # like a comment, but could be a row of query '#q1'"),
    ],
)
def test_a_wrong_qrels_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, f"q0 0 d0 1\n# comment\n{line}\n")
    with pytest.raises(DataError, match=message) as caught:
        list(read_qrels(path))
    assert (caught.value.where, caught.value.line) == (str(path), 3)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 0 d1 1", "4 columns instead of 6"),
        ("q1 Q0 d1 1 nan a", "'nan' is not a finite number"),
        ("q1 Q0 d1 1 ١٢ a", "is not a finite number"),
        ("q1 Q0 d1 1 inf a", "'inf' is not a finite number"),
        ("q1 Q0 d1 1 1e999 a", "not a finite number"),
        ("q1 Q0 d1 1 high a", "'high' is not a finite number"),
        ("q0 Q0 d0 2 3.0 a", "occur twice"),
    ],
)
def test_a_wrong_run_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, f"q0 Q0 d0 1 4.0 a\n{line}\n")
    with pytest.raises(DataError, match=message) as caught:
        list(read_scored(path))
    assert (caught.value.where, caught.value.line) == (str(path), 2)


def test_the_same_passage_of_two_queries_is_no_duplicate(tmp_path: Path) -> None:
    assert len(list(read_qrels(write(tmp_path, "q1 0 d1 1\nq2 0 d1 1\n")))) == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        list(read_scored(tmp_path / "none.trec"))
    with pytest.raises(NotFoundError, match="cannot be read"):
        list(read_scored(tmp_path))
    with pytest.raises(NotFoundError, match="cannot be read"):
        list(read_qrels(write(tmp_path, gzip.compress(b"q 0 d 1\n")[:-9], "cut.gz")))
    with pytest.raises(NotFoundError, match="cannot be read"):
        list(read_qrels(write(tmp_path, "q 0 d 1\n", "plain.gz")))
    with pytest.raises(DataError, match="not UTF-8"):
        list(read_qrels(write(tmp_path, b"q 0 d\xff 1\n")))
