import csv
import json

import pytest

from raggs.golden.formats.beir import BeirExporter


@pytest.fixture
def folder(golden, tmp_path):
    BeirExporter().write(golden(), tmp_path)
    return tmp_path


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_corpus_holds_each_pooled_passage_once_and_sorted(folder):
    corpus = lines(folder / "corpus.jsonl")
    assert [passage["_id"] for passage in corpus] == ["d1", "d10", "d2", "d3", "d3b", "d5", "d9", "é/7"]
    assert all(list(passage) == ["_id", "title", "text"] for passage in corpus)
    by_id = {passage["_id"]: passage for passage in corpus}
    assert by_id["d1"]["text"] == 'A "quoted"\ttext\nof two lines\u2028or three\x85or four'
    assert by_id["d9"] == {"_id": "d9", "title": "", "text": "The text of d9."}
    assert by_id["é/7"]["title"] == "Title é/7"


def test_queries_are_sorted(folder):
    assert lines(folder / "queries.jsonl") == [{"_id": qid, "text": f"What of {qid}?"} for qid in ("q1", "q10", "q2")]


def test_qrels_are_graded_rows_under_the_usual_header(folder):
    with (folder / "qrels" / "test.tsv").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["query-id", "corpus-id", "score"]
    assert [row for row in rows if row[0] == "q10"] == [["q10", "d3", "3"], ["q10", "é/7", "2"], ["q10", "d1", "0"]]
    assert len(rows) == 9 and ["q1", "d2"] not in [row[:2] for row in rows]


def test_every_judged_passage_and_query_exists(folder):
    corpus = {passage["_id"] for passage in lines(folder / "corpus.jsonl")}
    queries = {query["_id"] for query in lines(folder / "queries.jsonl")}
    for row in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        qid, doc_id, _ = row.split("\t")
        assert qid in queries and doc_id in corpus
