from __future__ import annotations

import pytest

from raggs.base.errors import DataError, NotFoundError
from raggs.parts.file_shapes import Shape, check_ids, line_cells, nested_cells, shape_of, table_cells


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


def test_lines_of_queries_are_neither_labels_nor_results(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n')
    assert shape_of(path) is Shape.NESTED
    with pytest.raises(DataError, match=r"queries\.jsonl:1: JSON lines whose keys do not name .*pass labels"):
        next(nested_cells(path))
    path.write_text('{"q1": {"d": 1}} 5')
    with pytest.raises(DataError, match=r"not valid JSON \(Extra data\)"):
        next(nested_cells(path))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(NotFoundError):
        shape_of(tmp_path / "none")


def test_quoted_cells_may_hold_the_delimiter_and_columns_stand_in_any_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('text,score,doc_id,qid\n"a, b",2,doc-1,q1\r\n,3,"doc,2",q1\n')
    assert [tuple(cell) for cell in table_cells(path, graded=False)] == [
        (2, "q1", "doc-1", "2", "", ""),
        (3, "q1", "doc,2", "3", "", ""),
    ]


def test_a_grade_and_a_score_are_two_columns_for_the_grade(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("qid,doc_id,score,grade\nq1,doc-1,0.5,4\n")
    with pytest.raises(DataError, match=r"t\.csv:1: .*'score' and 'grade'.*--column grade=score or --column grade="):
        next(table_cells(path, graded=True))
    assert next(table_cells(path, {"grade": "grade"}, graded=True)).value == "4"
    assert next(table_cells(path, {"grade": "score"}, graded=True)).value == "0.5"
    assert next(table_cells(path, graded=False)).value == "0.5", "of a run only the score counts"


def test_a_quoted_cell_may_hold_what_looks_like_a_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('qid,doc_id,grade,text\nq1,d1,3,"first\nq2,d2,1,x"\nq1,d2,0,y\n')
    assert [(cell.line, cell.qid, cell.doc_id) for cell in table_cells(path, graded=True)] == [
        (2, "q1", "d1"),
        (4, "q1", "d2"),
    ]


def test_json_lines_name_a_column_the_same_way_everywhere(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"qid": 1, "doc_id": "a", "grade": 2}\n{"qid": 1, "doc_id": "b", "score": 3}\n')
    with pytest.raises(DataError, match=r"t\.jsonl:2: the grade is in 'score' here and in 'grade' in line 1"):
        list(line_cells(path, graded=True))
    path.write_text('{"qid": 1, "doc_id": "a", "grade": 2, "grade": 4}\n')
    with pytest.raises(DataError, match="'grade' occurs twice in one object"):
        list(line_cells(path, graded=True))


@pytest.mark.parametrize("wrong", ["true", "1.0", "null", '["d"]'])
def test_ids_of_json_lines_are_texts_or_whole_numbers(wrong, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"qid": "q", "doc_id": {wrong}, "grade": 2}}\n')
    with pytest.raises(DataError, match=r"t\.jsonl:1: an id is"):
        list(line_cells(path, graded=True))


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
