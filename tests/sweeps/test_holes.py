"""Holes: what systems show and nobody judged is found by what it could change, judged by the run's judge, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.people import grade, kept
from support.project import Project, make_project, passages
from support.sweeping import SweepProject, make_sweep

from raggs.app.audit import audit
from raggs.app.run import run
from raggs.app.sweep import judge_holes, load_sweep
from raggs.base.artifacts import MergeRecord, Passage, QueryRecord
from raggs.base.errors import UsageError
from raggs.base.jsonl import read_records
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Qrels
from raggs.sweeps.judgments import HOLES, find_holes, graded_ids, of_queries, read_holes, with_grades


def judgments() -> Judgments:
    return Judgments("x", Qrels.of({"a": {"d1": 5, "d2": 1}, "b": {"d1": 3}, "c": {"d9": 4}}))


def test_what_divides_the_systems_comes_before_what_all_of_them_show() -> None:
    one = {"a": [("d1", 3.0), ("d7", 2.0), ("d8", 1.0)], "b": [("d7", 1.0)], "z": [("d7", 1.0)]}
    other = {"a": [("d7", 3.0), ("d1", 2.0), ("d8", 1.0)]}
    found = find_holes(judgments(), [one, other], (1, 3))
    assert [(hole.qid, hole.doc_id) for hole in found] == [("b", "d7"), ("a", "d7"), ("a", "d8")]
    assert [hole.worth for hole in found] == [0.5, 0.25, 0.0], "d7 divides them at 1 alone, d8 nowhere"


def test_grades_of_some_questions_and_of_more_passages() -> None:
    some = of_queries(judgments(), ["a", "c"])
    assert graded_ids(some) == {"a": {"d1": 5, "d2": 1}, "c": {"d9": 4}}
    more = with_grades(some, {"a": {"d1": 2, "d3": 4}, "q": {"d1": 1}})
    assert graded_ids(more) == {"a": {"d1": 5, "d2": 1, "d3": 4}, "c": {"d9": 4}}
    assert of_queries(some, ["a", "c"]) is some


@pytest.fixture
def project(tmp_path: Path) -> SweepProject:
    golden = make_project(tmp_path / "golden", queries=4, corpus=40, judge={"stop_after": None}, merge={"depth": 8})
    run(golden.config)
    return make_sweep(tmp_path, count=4, size=40, golden="golden/runs/demo", workspace="golden/runs")


def test_the_judge_of_the_golden_run_fills_the_holes_and_the_scores_follow(project: SweepProject) -> None:
    before = project.sweep().report
    assert max(hole or 0 for row in before.systems for hole in row.holes.values()) > 0
    golden = {path: path.read_bytes() for path in (project.folder / "golden/runs/demo").iterdir() if path.is_file()}
    asked = judge_holes(load_sweep(project.config))
    assert asked.graded == asked.holes > 0
    after = project.sweep()
    assert not after.unchanged
    assert all(hole == 0 for row in after.report.systems for hole in row.holes.values())
    assert "unjudged" not in {part.verdict for part in after.report.comparisons}
    assert not after.report.choice.inconclusive
    assert after.report.golden.judgments == before.golden.judgments + asked.graded
    assert {path: path.read_bytes() for path in golden} == golden
    assert audit(project.out).ok
    assert project.sweep().unchanged
    assert judge_holes(load_sweep(project.config)).holes == 0


def test_an_edited_grade_of_a_hole_is_a_finding(project: SweepProject) -> None:
    project.sweep()
    judge_holes(load_sweep(project.config))
    project.sweep()
    path = project.out / HOLES
    path.write_text(path.read_text().replace('"grade":1', '"grade":5'))
    assert {finding.file for finding in audit(project.out).findings} >= {HOLES, "systems.jsonl"}


def heard(golden: Project, qid: str) -> None:
    """Have ada grade every passage of the corpus for a question."""
    queries = {record.qid: record for record in read_records(golden.run / "queries.jsonl", QueryRecord)}
    texts = [Passage(doc_id=each["_id"], title=each["title"], text=each["text"]) for each in passages(40)]
    kept(golden.folder / "reviews", *(grade(queries[qid], text, "ada", 3) for text in texts))


def test_people_are_heard_on_holes_and_the_next_judge_is_asked_where_nobody_spoke(tmp_path: Path) -> None:
    labels = {"type": "qrels", "path": "qrels.txt"}
    panel = {"type": "panel", "rule": "first", "judges": [{"type": "human"}, labels]}
    golden = make_project(tmp_path / "golden", queries=4, judge={"judge": panel}, merge={"depth": 8})
    run(golden.config, stop="merge")
    heard(golden, "q00")
    run(golden.config)
    project = make_sweep(tmp_path, count=4, size=40, golden="golden/runs/demo", workspace="golden/runs")
    project.sweep()
    asked = judge_holes(load_sweep(project.config))
    assert asked.graded == asked.holes
    by = {(record.qid == "q00", record.judge) for record in read_holes(project.out)}
    assert by == {(True, "human: ada"), (False, "qrels qrels.txt")}


def test_where_people_alone_judge_a_hole_stays_until_somebody_speaks(tmp_path: Path) -> None:
    golden = make_project(tmp_path / "golden", queries=4, judge={"judge": {"type": "human"}}, merge={"depth": 8})
    run(golden.config, stop="merge")
    queries = {record.qid: record for record in read_records(golden.run / "queries.jsonl", QueryRecord)}
    pooled = read_records(golden.run / "merge.jsonl", MergeRecord)
    kept(golden.folder / "reviews", *(grade(queries[one.qid], one.passage, "ada", 3) for one in pooled))
    run(golden.config)
    project = make_sweep(tmp_path, count=4, size=40, golden="golden/runs/demo", workspace="golden/runs")
    project.sweep()
    before = judge_holes(load_sweep(project.config))
    assert (before.graded, before.silent) == (0, before.holes)
    assert "the judge gave no grade for" in str(before)
    assert not read_holes(project.out), "silence is no answer that is kept"
    heard(golden, "q01")
    after = judge_holes(load_sweep(project.config))
    assert after.graded > 0
    assert {record.qid for record in read_holes(project.out)} == {"q01"}
    assert after.silent == after.holes - after.graded


def test_labels_have_no_judge(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    project.sweep()
    with pytest.raises(UsageError, match="needs a golden set that is a run of raggs"):
        judge_holes(load_sweep(project.config))
