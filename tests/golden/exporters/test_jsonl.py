import json
from dataclasses import replace

import pytest

from raggs.base.errors import DataError
from raggs.golden.formats.tables import JsonlExporter


@pytest.fixture
def rows(golden, tmp_path):
    path, *_ = JsonlExporter().write(golden(), tmp_path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_line_is_complete_in_itself(rows):
    assert rows[1] == {
        "qid": "q1",
        "query": "What of q1?",
        "rank": 2,
        "doc_id": "d1",
        "grade": 5,
        "gain": 4,
        "score": 3.25,
        "confidence": 0.75,
        "title": "Title d1",
        "text": 'A "quoted"\ttext\nof two lines\u2028or three\x85or four',
    }


def test_the_top_of_each_query_in_order(rows):
    found = [(row["qid"], row["rank"], row["doc_id"]) for row in rows]
    assert found == [
        *[("q1", rank, doc_id) for rank, doc_id in enumerate(["d10", "d1", "d9", "d3"], start=1)],
        *[("q10", rank, doc_id) for rank, doc_id in enumerate(["é/7", "d3", "d1"], start=1)],
        ("q2", 1, "d5"),
    ]


def test_queries_that_were_not_ranked_are_left_out(golden, tmp_path):
    given = [replace(query, order=() if query.qid == "q10" else query.order) for query in golden().by_query()]
    path, *_ = JsonlExporter().write(golden(given), tmp_path)
    assert "q10" not in path.read_text() and '"qid": "q2"' in path.read_text()


def test_a_stray_passage_is_named(golden, tmp_path):
    given = [
        replace(query, pool=tuple(one for one in query.pool if one.doc_id != "d9")) for query in golden().by_query()
    ]
    with pytest.raises(DataError, match="passage d9 of query q1 is ranked but not in the pool"):
        JsonlExporter().write(golden(given), tmp_path)
    assert not list(tmp_path.iterdir())
