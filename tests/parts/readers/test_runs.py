from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.parts.run_files import read_run

IDS = st.text("abc019-_é", min_size=1, max_size=12)
SCORES = st.floats(allow_nan=False, allow_infinity=False)


def rows(run):
    return {(run.qids[query], run.docs.text(row)): score
            for row, (query, score) in enumerate(zip(run.query.tolist(), run.score.tolist(), strict=True))}  # fmt: skip


@given(st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1), min_size=1))
def test_every_format_holds_the_same_run(tmp_path_factory, lists):
    folder = tmp_path_factory.mktemp("runs")
    flat = [(qid, doc_id, score) for qid, found in lists.items() for doc_id, score in found.items()]
    texts = {
        "json": json.dumps(lists),
        "trec": "".join(f"{qid} Q0 {doc_id} 1 {score!r} tag\n" for qid, doc_id, score in flat),
        "csv": "qid,docid,score\n" + "".join(f"{qid},{doc_id},{score!r}\n" for qid, doc_id, score in flat),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        assert rows(read_run(folder / name)) == {(qid, doc_id): score for qid, doc_id, score in flat}, name


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1_0", "", "high", "0x10", "١٢", "１２"])
def test_only_finite_decimal_scores_are_read(value, tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(f"qid,doc_id,score\nq1,doc-1,1\nq1,doc-2,{value}\n")
    with pytest.raises(DataError, match=r"run\.csv:3: score .* is not a finite number"):
        read_run(path)


def test_whole_numbers_of_json_are_scores(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"q1": {"doc-1": 3, "doc-2": 2.5, "doc-3": -0.0, "doc-4": 1e300}}')
    assert list(rows(read_run(path)).values()) == [3.0, 2.5, 0.0, 1e300]
