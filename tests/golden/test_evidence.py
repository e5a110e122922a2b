"""Evidence sets from files of queries and runs to the measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.project import make_project, raggs

from raggs.base.artifacts import Query
from raggs.base.errors import DataError
from raggs.golden.sources import open_golden
from raggs.parts.queries import format_of
from raggs.parts.queries.fields import load_queries
from raggs.parts.queries.formats import (
    CsvQueries,
    CsvQueriesConfig,
    JsonlQueries,
    JsonlQueriesConfig,
    YamlQueries,
    YamlQueriesConfig,
)
from raggs.parts.queries.writing import write_queries

SETS = (("a", "b"), ("c",))


def reader_of(path: Path) -> CsvQueries | JsonlQueries | YamlQueries:
    match format_of(path):
        case "csv":
            return CsvQueries(CsvQueriesConfig(path=path))
        case "jsonl":
            return JsonlQueries(JsonlQueriesConfig(path=path))
    return YamlQueries(YamlQueriesConfig(path=path))


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def test_a_query_without_evidence_has_the_same_bytes_as_before() -> None:
    assert "evidence" not in Query(qid="q", text="t").model_dump_json()


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.csv", "queries.yaml"])
def test_files_of_queries_keep_evidence(name: str, tmp_path: Path) -> None:
    written = [Query(qid="q1", text="which?", evidence=SETS), Query(qid="q2", text="who?")]
    write_queries(written, tmp_path / name)
    assert [*load_queries(reader_of(tmp_path / name), name).values()] == written


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([["a"], []], "evidence set 2 is empty"),
        ([["a", "a"]], "evidence set 1 contains a passage twice"),
        ([["a", "b"], ["b", "a"]], "evidence set 1 contains all passages of set 2"),
        ([["a"], ["b", "c"], ["c", "a"]], "evidence set 3 contains all passages of set 1"),
        ([[f"p{number}"] for number in range(17)], "17 evidence sets with 17 passages"),
        (["a", "b"], "evidence"),
        ("a", "evidence"),
        ([["two words"]], "evidence"),
    ],
)
def test_wrong_sets_name_file_and_line(sets: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        Query.model_validate({"qid": "q", "text": "t", "evidence": sets})
    path = tmp_path / "queries.jsonl"
    write_lines(path, [{"_id": "q1", "text": "a"}, {"_id": "q2", "text": "b", "evidence": sets}])
    with pytest.raises(DataError, match=words) as caught:
        load_queries(reader_of(path), path)
    assert caught.value.line == 2


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Labels of three queries, two of them with evidence sets; b2 is a near-duplicate of b."""
    grades: dict[str, dict[str, int]] = {"q1": {"a": 5, "b": 4, "c": 5}, "q2": {"a": 5}, "q3": {"a": 4, "b": 4}}
    rows: list[dict[str, object]] = [
        {"qid": qid, "doc_id": doc_id, "grade": grade}
        for qid, found in grades.items()
        for doc_id, grade in found.items()
    ]
    rows.append({"qid": "q1", "doc_id": "b2", "grade": 4, "duplicate_of": "b"})
    write_lines(tmp_path / "judgments.jsonl", rows)
    meta = {"format": "jsonl", "labels": "judgments.jsonl", "files": {"judgments.jsonl": ""}}
    (tmp_path / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    queries: list[dict[str, object]] = [{"_id": f"q{number}", "text": f"query {number}"} for number in (1, 2, 3)]
    queries[0]["evidence"] = [["a", "b"], ["c"]]
    queries[2]["evidence"] = [["a", "unlabelled"]]
    write_lines(tmp_path / "queries.jsonl", queries)
    for name, docs in (("first", "a b2 x"), ("second", "x a unlabelled")):
        lines = [f"q{q} Q0 {doc} {n} {9 - n} x\n" for q in (1, 2, 3) for n, doc in enumerate(docs.split(), 1)]
        (tmp_path / f"{name}.trec").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_eval_scores_evidence_with_near_duplicates_and_unlabelled_passages(labels: Path) -> None:
    out = labels / "out"
    arguments = ["eval", "-g", labels, "-r", labels / "first.trec", "-r", labels / "second.trec"]
    found = raggs(*arguments, "-m", "complete@3,evidence_recall@2", "--out", out)
    assert found.returncode == 0, found.stderr
    report = json.loads((out / "eval.json").read_text(encoding="utf-8"))
    values = report["per_query"]
    assert values["first"]["complete@3"] == {"q1": 1.0, "q3": 0.0}
    assert values["second"]["complete@3"] == {"q1": 0.0, "q3": 1.0}
    assert values["first"]["evidence_recall@2"] == {"q1": 1.0, "q3": 0.5}
    assert raggs("audit", out / "eval.json").returncode == 0
    again = raggs(*arguments, "-m", "complete@3,evidence_recall@2", "--fail-on-regression", out / "eval.json")
    assert again.returncode == 0, again.stderr


def test_a_set_without_evidence_is_refused_with_a_remedy(labels: Path) -> None:
    write_lines(labels / "queries.jsonl", [{"_id": "q1", "text": "query 1"}])
    found = raggs("eval", "-g", labels, "-r", labels / "first.trec", "-m", "complete@3")
    assert found.returncode == 5 and "add evidence to the queries" in " ".join(found.stderr.split())


def test_other_evidence_is_another_set_of_judgments(labels: Path) -> None:
    first = open_golden(labels).judgments().digest
    text = (labels / "queries.jsonl").read_text(encoding="utf-8")
    (labels / "queries.jsonl").write_text(text.replace('["c"]', '["d"]'), encoding="utf-8")
    assert open_golden(labels).judgments().digest != first


def test_a_run_and_its_export_deliver_evidence(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3)
    raggs("run", "--config", project.config, "-q")
    plain = {path.name: path.read_bytes() for path in project.run.glob("*.jsonl")}
    top = json.loads((project.run / "judge.jsonl").read_text(encoding="utf-8").splitlines()[0])
    queries = project.config.parent / "queries.jsonl"
    rows = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["_id"] == top["qid"]:
            row["evidence"] = [[top["doc_id"]]]
    write_lines(queries, rows)
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    after = {path.name: path.read_bytes() for path in project.run.glob("*.jsonl")}
    assert {name for name in plain if plain[name] != after[name]} <= {"queries.jsonl", "llm.ledger.jsonl"}
    expected = {top["qid"]: ((top["doc_id"],),)}
    assert open_golden(project.run).judgments().evidence == expected
    assert raggs("export", project.run, "--format", "jsonl", "--out", tmp_path / "export").returncode == 0
    assert open_golden(tmp_path / "export").judgments().evidence == expected
    assert raggs("audit", project.run).returncode == 0
