"""`raggs eval` of a retriever in a YAML file: a service or a Python function."""

from __future__ import annotations

import json

import pytest
from support.cli import call
from support.search_service import SearchService

QUERIES = {"q1": "a cat", "q2": "a wing", "q3": "a flat plate"}
LABELS = {"q1": {"cat": 3, "copy": 1}, "q2": {"wing": 2}, "q3": {"wing": 1, "plate": 0}}


@pytest.fixture
def golden(tmp_path):
    folder = tmp_path / "golden"
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": qid, "text": text}) + "\n" for qid, text in QUERIES.items())
    )
    rows = [f"{qid}\t{doc}\t{grade}\n" for qid, labels in LABELS.items() for doc, grade in labels.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return folder


@pytest.fixture
def service():
    with SearchService() as made:
        yield made


def scores(result):
    return {each["name"]: each["scores"] for each in json.loads(result.stdout)["systems"]}


def test_a_service_scores_like_its_run_file(golden, service, tmp_path):
    (tmp_path / "live.yaml").write_text(f"retriever: {{type: http, url: '{service.url}'}}\n")
    lines = ["q1 Q0 cat 1 2.5 x", "q1 Q0 copy 2 2.5 x", "q2 Q0 wing 1 1.0 x", "q3 Q0 plate 1 0.5 x"]
    (tmp_path / "file.trec").write_text("\n".join(lines) + "\n")
    found = call(
        "eval",
        "-g",
        golden,
        "-r",
        tmp_path / "live.yaml",
        "-r",
        f"now={tmp_path / 'file.trec'}",
        "-m",
        "ndcg@10",
        "--json",
    )
    by_name = scores(found)
    assert set(by_name) == {"live", "now"}
    assert by_name["live"]["ndcg@10"]["mean"] == by_name["now"]["ndcg@10"]["mean"] > 0.3
    assert sorted(request["query"] for request, _ in service.seen) == sorted(QUERIES.values())


def test_each_evaluation_searches_again(golden, service, tmp_path):
    (tmp_path / "live.yaml").write_text(f"retriever: {{type: http, name: prod, url: '{service.url}'}}\n")
    before = scores(call("eval", "-g", golden, "-r", tmp_path / "live.yaml", "--json"))
    service.answer = lambda _: {"results": []}
    after = scores(call("eval", "-g", golden, "-r", tmp_path / "live.yaml", "--json"))
    assert set(before) == set(after) == {"prod"}
    assert after["prod"] != before["prod"]


def test_a_function(golden, tmp_path):
    (tmp_path / "mine_to_search.py").write_text("def search(query, k):\n    return ['cat', 'wing'][:k]\n")
    (tmp_path / "mine.yaml").write_text("retriever: {type: python, callable: 'mine_to_search:search', k: 2}\n")
    found = scores(call("eval", "-g", golden, "-r", tmp_path / "mine.yaml", "-m", "recall@2", "--json"))
    assert found["mine"]["recall@2"]["mean"] > 0


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("retriever: {type: bm25}", 5, "unknown type 'bm25'"),
        ("retriever: {type: http, url: 'http://127.0.0.1:9/s', max_attempts: 1}", 6, "cannot be reached"),
        ("retriever: {type: http, url: 'http://127.0.0.1:9/s', text: body}", 2, "identified by their texts"),
        ("name: demo", 5, "retriever"),
    ],
)
def test_a_file_that_cannot_be_used(golden, tmp_path, text, code, message):
    (tmp_path / "live.yaml").write_text(text + "\n")
    result = call("eval", "-g", golden, "-r", tmp_path / "live.yaml", code=code)
    assert message in " ".join(result.stderr.split())


def test_queries_without_texts(service, tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 cat 1\n")
    (tmp_path / "live.yaml").write_text(f"retriever: {{type: http, url: '{service.url}'}}\n")
    result = call("eval", "-g", tmp_path / "qrels.txt", "-r", tmp_path / "live.yaml", code=2)
    assert "no text of 1 judged query" in " ".join(result.stderr.split())
