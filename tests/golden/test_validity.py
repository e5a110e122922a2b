"""Queries and labels with a period of validity."""

from __future__ import annotations

import gzip
import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.project import make_project, raggs

from raggs.base.artifacts import JudgeRecord, Query
from raggs.base.errors import DataError
from raggs.base.jsonl import read_records
from raggs.golden.judgments import Judgments
from raggs.golden.sources import open_golden
from raggs.golden.validity import InvalidParts, invalid_parts, valid_judgments
from raggs.metrics.columns import GradeScale, Qrels
from raggs.metrics.unjudged import LabelUncertainty
from raggs.parts.queries.fields import load_queries
from raggs.parts.queries.formats import CsvQueries, CsvQueriesConfig, JsonlQueries, JsonlQueriesConfig
from raggs.parts.queries.writing import write_queries
from raggs.stages.judge import with_validity

DAYS = st.dates(date(2020, 1, 1), date(2030, 1, 1))
DAY = date(2026, 6, 1)


@given(st.one_of(st.none(), DAYS), st.one_of(st.none(), DAYS), DAYS)
def test_both_ends_of_the_period_are_valid(first: date | None, last: date | None, day: date) -> None:
    if first and last and last < first:
        with pytest.raises(ValidationError, match="before valid_from"):
            Query(qid="q", text="t", valid_from=first, valid_until=last)
        return
    query = Query(qid="q", text="t", valid_from=first, valid_until=last)
    assert query.valid_on(day) == ((first is None or first <= day) and (last is None or day <= last))
    assert Query.model_validate_json(query.model_dump_json()) == query


@pytest.mark.parametrize("value", [1767225600, "2026-01-31T00:00:00", "soon", "2026-02-30", True])
def test_only_plain_dates_are_dates(value: object) -> None:
    with pytest.raises(ValidationError):
        Query.model_validate({"qid": "q", "text": "t", "valid_until": value})


def test_a_query_without_limits_has_the_same_bytes_as_before() -> None:
    assert "valid" not in Query(qid="q", text="t").model_dump_json()


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.csv"])
def test_files_of_queries_keep_the_validity(name: str, tmp_path: Path) -> None:
    first = Query(qid="q1", text="which?", valid_from=date(2026, 1, 1), valid_until=DAY, depends_on=("guide.md", "b"))
    written = [first, Query(qid="q2", text="who?")]
    write_queries(written, tmp_path / name)
    reader = (
        CsvQueries(CsvQueriesConfig(path=tmp_path / name))
        if name.endswith("csv")
        else JsonlQueries(JsonlQueriesConfig(path=tmp_path / name))
    )
    assert [*load_queries(reader, name).values()] == written


def test_a_wrong_date_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b", "valid_until": "June"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="valid_until") as caught:
        load_queries(JsonlQueries(JsonlQueriesConfig(path=path)), path)
    assert caught.value.line == 2


def test_labels_have_the_validity_of_their_passage() -> None:
    graded = JudgeRecord(qid="q", rank=1, doc_id="d", grade=4, judge="m")
    dated = with_validity(graded, {"valid_until": "2026-06-01", "depends_on": ["d7"], "author": "x"})
    assert (dated.valid_until, dated.depends_on, dated.grade) == (DAY, ("d7",), 4)
    assert with_validity(graded, {"valid_until": "until further notice"}) == graded
    assert with_validity(graded, {"author": "x"}) is graded


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Labels of three queries: q1 is valid until May, one label of q2 from July on."""
    rows = [
        {"qid": "q1", "doc_id": "a", "grade": 5},
        {"qid": "q2", "doc_id": "b", "grade": 5, "valid_from": "2026-07-01"},
        {"qid": "q2", "doc_id": "c", "grade": 3},
        {"qid": "q3", "doc_id": "a", "grade": 4},
    ]
    (tmp_path / "judgments.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    queries = [{"_id": f"q{n}", "text": f"query {n}"} for n in (1, 2, 3)]
    queries[0]["valid_until"] = "2026-05-31"
    (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in queries), encoding="utf-8")
    for name, docs in (("first", "abc"), ("second", "cba")):
        lines = [f"q{q} Q0 {doc} {n} {9 - n} x\n" for q in (1, 2, 3) for n, doc in enumerate(docs, 1)]
        (tmp_path / f"{name}.trec").write_text("".join(lines), encoding="utf-8")
    return tmp_path / "judgments.jsonl"


def test_expired_queries_are_removed_and_expired_labels_are_unjudged(labels: Path) -> None:
    golden = open_golden(labels.parent)
    found = invalid_parts(golden, DAY)
    assert (found.queries, found.labels, found.dated) == (("q1",), {("q2", "b")}, True)
    left = valid_judgments(golden.judgments(), found).qrels
    docs = [left.docs.text(row) for row in range(len(left.grade))]
    kept = {(left.qids[q], doc): int(grade) for q, doc, grade in zip(left.query, docs, left.grade, strict=True)}
    assert kept == {("q2", "b"): -1, ("q2", "c"): 3, ("q3", "a"): 4}
    assert invalid_parts(golden, date(2026, 5, 31)).queries == ()


def test_valid_labels_keep_the_probabilities_that_the_judge_states() -> None:
    qrels = Qrels.of({"q1": {"a": 3}, "q2": {"b": 4, "c": 4}}, GradeScale.of(1, 5))
    shares = np.array([[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.0, 0.5, 0.5]])
    doubt = LabelUncertainty(np.zeros(3), ((), (), ()), shares, np.array([0, 1, 1]))
    found = valid_judgments(Judgments("labels", qrels, doubt), InvalidParts(DAY, ("q1",), frozenset(), True)).doubt
    assert found is not None
    assert found.shares is not None
    assert found.leader is not None
    assert found.shares.tolist() == shares[1:].tolist()
    assert found.leader.tolist() == [0, 0], "the near-duplicate still shares the draw of its representative"


def test_a_day_on_which_nothing_is_valid_is_an_error(labels: Path) -> None:
    text = labels.with_name("queries.jsonl").read_text(encoding="utf-8")
    rows = [{**json.loads(line), "valid_until": "2026-05-31"} for line in text.splitlines()]
    labels.with_name("queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    golden = open_golden(labels.parent)
    with pytest.raises(DataError, match="no query is valid on 2026-06-01"):
        valid_judgments(golden.judgments(), invalid_parts(golden, DAY))


def test_eval_reports_or_leaves_out_what_has_expired(labels: Path, tmp_path: Path) -> None:
    arguments = ["eval", "-g", tmp_path, "-r", tmp_path / "first.trec", "-r", tmp_path / "second.trec"]
    told = raggs(*arguments)
    assert "Not valid on" in told.stdout and "but counted: 1 query" in told.stdout
    out = tmp_path / "out"
    left = raggs(*arguments, "--as-of", "2026-06-01", "--out", out)
    assert "Excluded, because not valid on 2026-06-01: 1 query and 1 label." in " ".join(left.stdout.split())
    report = json.loads((out / "eval.json").read_text(encoding="utf-8"))
    assert report["validity"] == {"day": "2026-06-01", "queries": ["q1"], "labels": 1, "excluded": True}
    assert report["sources"]["options"]["as_of"] == "2026-06-01"
    assert "q1" not in next(iter(next(iter(report["per_query"].values())).values()))
    assert raggs("audit", out / "eval.json").returncode == 0


def test_a_run_copies_validity_from_queries_and_passages(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3)
    raggs("run", "--config", project.config, "-q")
    plain = (project.run / "judge.jsonl").read_bytes()
    assert b"valid" not in plain
    assert invalid_parts(open_golden(project.run), DAY).dated is False
    assert all(record.valid_until is None for record in read_records(project.run / "judge.jsonl", JudgeRecord))


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01", ""])
def test_a_wrong_day_is_refused(text: str, labels: Path) -> None:
    found = raggs("eval", "-g", labels, "-r", labels, "--as-of", text)
    assert found.returncode == 2 and "is not a date" in found.stderr


def test_compressed_labels_state_their_validity_too(labels: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(labels.read_bytes()))
    assert invalid_parts(open_golden(packed), DAY).labels == {("q2", "b")}


def test_a_run_without_stored_queries_has_no_limits(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3)
    raggs("run", "--config", project.config, "-q")
    (project.run / "queries.jsonl").unlink()
    assert invalid_parts(open_golden(project.run), DAY).dated is False
