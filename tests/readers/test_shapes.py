from __future__ import annotations

import pytest

from raggs.errors import DataError, NotFoundError
from raggs.readers.shapes import Shape, check_ids, nested_cells, shape_of, table_cells


@pytest.mark.parametrize(
    ("first", "shape"),
    [
        ("q1 0 doc-3 5", Shape.TREC),
        ("# by hand", Shape.TREC),
        ("", Shape.TREC),
        ("q1,doc-3,5", Shape.TREC),
        ("[1]", Shape.TREC),
        ("query-id\tcorpus-id\tscore", Shape.TABLE),
        ("\ufeffQuery_ID;DocNo;Label", Shape.TABLE),
        ('"q_id","doc_id","score"', Shape.TABLE),
        ("rank, qid , docid, score", Shape.TABLE),
        ("qid,docid", Shape.TREC),
        (' {"q1": {}}', Shape.NESTED),
    ],
)
def test_the_first_line_tells_the_format(first, shape, tmp_path):
    path = tmp_path / "file"
    path.write_text(f"\n{first}\n" if not first.startswith("\ufeff") else first, encoding="utf-8")
    assert shape_of(path) is shape


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(NotFoundError):
        shape_of(tmp_path / "none")


def test_quoted_cells_may_hold_the_delimiter_and_columns_stand_in_any_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('text,score,doc_id,qid\n"a, b",2,doc-1,q1\r\n,3,"doc,2",q1\n')
    assert [tuple(cell) for cell in table_cells(path, graded=False)] == [
        (2, "q1", "doc-1", "2"),
        (3, "q1", "doc,2", "3"),
    ]


def test_a_grade_goes_before_a_score(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("qid,doc_id,score,grade\nq1,doc-1,0.5,4\n")
    assert next(table_cells(path, graded=True)).value == "4"
    assert next(table_cells(path, graded=False)).value == "0.5"


def test_whole_numbers_of_json_read_as_integers(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"q1": {"doc-1": 3.0, "doc-2": -1, "doc-3": 2.5}}')
    assert [cell.value for cell in nested_cells(path)] == ["3", "-1", "2.5"]


@pytest.mark.parametrize("name", ["", " ", "a b", "a\tb", " a", "a\u00a0b", "a\0", "\ud800", "a\udc80b"])
def test_ids_that_files_cannot_hold_are_refused(name, tmp_path):
    with pytest.raises(DataError) as caught:
        check_ids(tmp_path, 3, "fine", name)
    str(caught.value).encode()  # the sentence itself must be printable


@pytest.mark.parametrize("name", ["a", "é", "doc#3", "https://x.y/z?a=b", "文書", "😀", "a\u0301"])
def test_ids_of_any_language_are_taken(name, tmp_path):
    check_ids(tmp_path, None, name)
