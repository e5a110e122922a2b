"""Run directories as golden sets, from artifacts written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from support.project import make_project
from typer.testing import CliRunner

from raggs.artifacts import JudgeRecord, MergeRecord, RankRecord, RetrieveRecord
from raggs.cli.app import app
from raggs.errors import DataError, NotFoundError
from raggs.evaluation.runfolders import golden_of, systems_of
from raggs.jsonl import read_records, write_records
from raggs.metrics.columns import Scale

SCALE = Scale.of(1, 5)


@pytest.fixture
def run(tmp_path):
    project = make_project(tmp_path, queries=2, corpus=20, rank={"top": 3, "max_calls": 3})
    assert CliRunner().invoke(app, ["run", "--config", str(project.config), "--quiet"]).exit_code == 0
    return project.run


def change(run, artifact, model, turn):
    path = run / f"{artifact}.jsonl"
    write_records(path, [turned for record in list(read_records(path, model)) if (turned := turn(record)) is not None])


def test_grades_doubt_and_facets_stand_for_the_same_passages(run):
    judged = {(r.qid, r.doc_id): r for r in read_records(run / "judge.jsonl", JudgeRecord)}
    ranked = {(r.qid, r.doc_id): r for r in read_records(run / "rank.jsonl", RankRecord)}
    qrels, doubt, facets = golden_of(run, SCALE)
    docs = qrels.docs.take(np.arange(len(qrels.docs))).tolist()
    keys = [(qrels.qids[query], doc.decode()) for query, doc in zip(qrels.query.tolist(), docs, strict=True)]
    assert sorted(keys) == sorted(judged)
    assert qrels.grade.tolist() == [judged[key].grade for key in keys]
    assert doubt.sigma.tolist() == [ranked[key].sigma if key in ranked and ranked[key].exposures else 0 for key in keys]
    assert any(doubt.sigma)
    assert facets == {record.doc_id: record.duplicate_of or record.doc_id for record in judged.values()}


def test_failed_judgments_are_unjudged_and_repeated_ones_are_doubt(run):
    seen = []

    def turn(record):
        seen.append((record.qid, record.doc_id))
        if len(seen) == 1:
            return record.model_copy(update={"grade": None, "error": "no answer"})
        return record.model_copy(update={"grade": 3, "grades": (2, None, 3, 5)}) if len(seen) == 2 else record

    change(run, "judge", JudgeRecord, turn)
    (run / "rank.jsonl").unlink()
    qrels, doubt, _ = golden_of(run, SCALE)
    assert len(qrels.grade) == len(seen) - 1
    assert not doubt.sigma.any()
    assert [given for given in doubt.samples if given] == [(2, 3, 5)]


def test_systems_are_the_retrievers_and_their_fusion(run):
    found = dict(systems_of(run))
    assert list(found) == ["bm25", "dense", "fused"]
    for name, model, artifact in (("bm25", RetrieveRecord, "retrieve"), ("fused", MergeRecord, "merge")):
        records = [r for r in read_records(run / f"{artifact}.jsonl", model) if getattr(r, "retriever", name) == name]
        assert found[name].score.tolist() == [record.score for record in records]
    change(run, "retrieve", RetrieveRecord, lambda record: record if record.retriever == "bm25" else None)
    assert list(dict(systems_of(run))) == ["bm25"]


def test_a_run_without_grades_or_lists_is_said(run):
    change(run, "judge", JudgeRecord, lambda record: record.model_copy(update={"grade": None, "error": "x"}))
    with pytest.raises(DataError, match="holds no grades"):
        golden_of(run, SCALE)
    (run / "judge.jsonl").unlink()
    with pytest.raises(NotFoundError, match="judge has not run"):
        golden_of(run, SCALE)
    change(run, "retrieve", RetrieveRecord, lambda record: None)
    with pytest.raises(DataError, match="nothing that was retrieved"):
        list(systems_of(run))


def test_grades_outside_the_scale_asked_for_are_refused(run):
    with pytest.raises(DataError, match="outside the scale 1 to 3"):
        golden_of(run, Scale.of(1, 3))
