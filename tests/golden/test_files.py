"""Files of others as golden sets, and what raggs exports as one again."""

from __future__ import annotations

import pytest

from raggs.base.errors import DataError, NotFoundError
from raggs.golden import formats
from raggs.golden.sources import open_golden
from raggs.metrics.columns import GradeScale

LABELS = {"q1": {"d1": 3, "d2": None, "d3": 0}, "q2": {"d1": 1}}
FILES = {
    "a.txt": "q2 0 d1 1\nq1 0 d1 3\nq1 0 d2 -1\nq1 0 d3 0\n",
    "a.csv": "qid,doc_id,grade\nq2,d1,1\nq1,d1,3\nq1,d2,-1\nq1,d3,0\n",
    "a.tsv": "query-id\tcorpus-id\tscore\nq2\td1\t1\nq1\td1\t3\nq1\td2\t-1\nq1\td3\t0\n",
    "a.json": '{"q2": {"d1": 1}, "q1": {"d1": 3, "d2": -1, "d3": 0}}',
}


def grades(golden):
    return {one.qid: {each.doc_id: each.grade for each in one.grades} for one in golden.by_query()}


@pytest.mark.parametrize("name", FILES)
def test_labels_of_any_format_are_grades_by_query(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    golden = open_golden(tmp_path / name)
    assert grades(golden) == LABELS
    assert list(grades(golden)) == ["q1", "q2"]
    assert all((one.query, one.pool, one.order) == (None, (), ()) for one in golden.by_query())
    assert (golden.name, golden.top, golden.provenance, list(golden.queries())) == (name, 0, None, [])
    judgments = golden.judgments(GradeScale.of(0, 3))
    assert (judgments.qrels.qids, judgments.doubt, judgments.facets) == (("q1", "q2"), None, {})
    assert sorted(judgments.qrels.grade.tolist()) == [-1, 0, 1, 3]


def test_a_missing_file_is_said_when_it_is_read(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        open_golden(tmp_path / "none.txt").judgments()


@pytest.mark.parametrize("format_", ["beir", "trec"])
def test_an_export_opens_as_the_golden_set_that_it_is(run, tmp_path, format_):
    before = open_golden(run)
    formats.EXPORTERS.load(format_)().write(before, tmp_path / "out")
    after = open_golden(tmp_path / "out")
    assert grades(after) == grades(before)
    assert after.judgments().digest == before.judgments().digest
    assert after.name == "out", "and not that of the file in it, which all of them have"
    asked = {one.qid: one.query and one.query.text for one in after.by_query()}
    if format_ == "beir":
        assert asked == {query.qid: query.text for query in before.queries()}
        assert [query.qid for query in after.queries()] == list(asked)
    else:
        assert set(asked.values()) == {None}


def test_the_only_table_of_a_folder_will_do_and_of_several_it_is_the_test_one(tmp_path):
    folder = tmp_path / "qrels"
    folder.mkdir()
    (folder / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert open_golden(tmp_path).source == str(folder / "train.tsv")
    (folder / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    with pytest.raises(NotFoundError, match="no run here"):
        open_golden(tmp_path)
    (folder / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\n")
    assert grades(open_golden(tmp_path)) == {"q1": {"d3": 1}}


def test_a_fault_in_the_questions_is_said_with_its_line(tmp_path):
    (tmp_path / "qrels.txt").write_text(FILES["a.txt"])
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "What?"}\n{"_id": "q2"}\n')
    with pytest.raises(DataError, match=r"queries\.jsonl:2: "):
        list(open_golden(tmp_path).by_query())
