"""The grades of run directories as columns, from artifacts written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from support.golden import change

from raggs.base.artifacts import JudgeRecord, RankRecord
from raggs.base.errors import DataError, NotFoundError
from raggs.base.jsonl import read_records
from raggs.golden.formats.tables import JsonlExporter
from raggs.golden.sources import open_golden
from raggs.metrics.columns import GradeScale


def columns(run, scale=None):
    return open_golden(run).judgments(scale)


def test_grades_doubt_and_facets_stand_for_the_same_passages(run):
    judged = {(r.qid, r.doc_id): r for r in read_records(run / "judge.jsonl", JudgeRecord)}
    ranked = {(r.qid, r.doc_id): r for r in read_records(run / "rank.jsonl", RankRecord)}
    found = columns(run)
    qrels, doubt, facets = found.qrels, found.doubt, found.facets
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
    found = columns(run)
    qrels, doubt = found.qrels, found.doubt
    assert len(qrels.grade) == len(seen) - 1
    assert not doubt.sigma.any()
    assert [given for given in doubt.samples if given] == [(2, 3, 5)]


def test_a_run_without_grades_is_said(run):
    change(run, "judge", JudgeRecord, lambda record: record.model_copy(update={"grade": None, "error": "x"}))
    with pytest.raises(DataError, match="no query has a graded passage: the judge failed on "):
        columns(run)
    (run / "judge.jsonl").unlink()
    with pytest.raises(NotFoundError, match="judge has not run"):
        columns(run)


def test_grades_outside_the_scale_asked_for_are_refused(run):
    with pytest.raises(DataError, match="outside the scale 1 to 3"):
        columns(run, GradeScale.of(1, 3))


def test_a_ranking_is_read_from_a_run_and_from_its_export_alike(run, tmp_path):
    change(run, "rank", RankRecord, lambda record: record.model_copy(update={"unordered": record.rank > 5}))
    found = columns(run)
    JsonlExporter().write(open_golden(run), tmp_path / "out")
    other = columns(tmp_path / "out")
    records = list(read_records(run / "rank.jsonl", RankRecord))
    assert any(record.unordered for record in records)
    ranked = {(r.qid, r.doc_id): (r.score, r.sigma) for r in records if not r.unordered}
    for qrels in (found.qrels, other.qrels):
        docs = [qrels.docs.text(row) for row in range(len(qrels.grade))]
        rows = zip(qrels.query.tolist(), docs, qrels.belief.score, qrels.belief.sigma, strict=True)
        placed = {(qrels.qids[query], doc): (score, sigma) for query, doc, score, sigma in rows if np.isfinite(score)}
        assert placed == ranked
    change(run, "rank", RankRecord, lambda record: record.model_copy(update={"exposures": 0}))
    assert columns(run).qrels.belief is None
