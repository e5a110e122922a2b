import json

import pytest

from raggs.errors import DataError
from raggs.exporters.jsonl import JsonlExporter


@pytest.fixture
def rows(golden, tmp_path):
    path, _ = JsonlExporter().write(golden(), tmp_path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_line_is_complete_in_itself(rows):
    assert rows[1] == {
        "qid": "q1",
        "query": "What of q1?",
        "rank": 2,
        "doc_id": "d1",
        "grade": 5,
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
    ranking = [record for record in golden().ranking if record.qid != "q10"]
    path, _ = JsonlExporter().write(golden(ranking=ranking), tmp_path)
    assert "q10" not in path.read_text() and '"qid": "q2"' in path.read_text()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"queries": {}}, "query q1 is ranked but not in the queries"),
        ({"pool": ()}, "query q1 is ranked but not in the pool"),
    ],
)
def test_a_stray_query_is_named(golden, tmp_path, changes, complaint):
    with pytest.raises(DataError, match=complaint):
        JsonlExporter().write(golden(**changes), tmp_path)


def test_a_stray_passage_is_named(golden, tmp_path):
    pool = [record for record in golden().pool if record.doc_id != "d9"]
    with pytest.raises(DataError, match="passage d9 of query q1 is ranked but not in the pool"):
        JsonlExporter().write(golden(pool=pool), tmp_path)
    assert not list(tmp_path.iterdir())


def test_only_one_pool_is_held_at_a_time(golden, tmp_path):
    """Reading runs ahead of writing by no more than one query."""
    read: list[str] = []

    def watched_pool():
        for record in golden().pool:
            read.append(record.qid)
            yield record

    def watched_ranking():
        for record in golden().ranking:
            if record.qid == "q1" and record.rank > 1:
                assert "q2" not in read
            yield record

    JsonlExporter().write(golden(pool=watched_pool(), ranking=watched_ranking()), tmp_path)
    assert read[-1] == "q2"
