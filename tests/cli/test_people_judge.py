"""A run whose panel hears people first: their grades win, resuming and auditing hold, every grade says who gave it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.people import grade, kept, pools
from support.project import Project, make_project, raggs

from raggs.artifacts import JudgeRecord
from raggs.jsonl import read_records

QRELS = {"type": "qrels", "path": "qrels.txt"}
FIRST = {"type": "panel", "rule": "first", "judges": [{"type": "human"}, QRELS]}


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose pools are known."""
    project = make_project(tmp_path_factory.mktemp("pooled"), queries=3, judge={"judge": FIRST})
    assert raggs("run", "--config", project.config, "--to", "merge", "-q").returncode == 0
    return project


@pytest.fixture
def project(pooled: Project, tmp_path: Path) -> Project:
    """The same, with ada's grade for the first passage of each question, which is what the label is not."""
    made = Project(tmp_path / "project")
    shutil.copytree(pooled.folder, made.folder)
    words = [grade(query, passages[0], "ada", 5, note="read it") for query, passages in pools(made.run).values()]
    kept(made.folder / "reviews", *words)
    return made


def grades(project: Project) -> list[JudgeRecord]:
    return list(read_records(project.run / "judge.jsonl", JudgeRecord))


def test_people_decide_where_they_spoke_and_the_audit_is_clean(project: Project) -> None:
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stderr
    assert "people graded 3 of the" in done.stderr
    records = [record for record in grades(project) if record.duplicate_of is None]
    firsts = [record for record in records if record.rank == 1]
    assert {(record.grade, record.judge, record.reason) for record in firsts} == {
        (5, "human: ada", "ada; ada: read it")
    }
    assert {record.judge for record in records if record.rank > 1} == {"qrels qrels.txt"}
    audit = raggs("audit", project.run)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_a_review_added_afterwards_runs_judge_to_rank_again_and_one_of_other_questions_does_not(
    project: Project,
) -> None:
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    before = project.artifacts()
    query, passages = pools(project.run)["q01"]
    kept(project.folder / "reviews", grade(query.model_copy(update={"text": "Of another set?"}), passages[1], "bo", 1))
    again = raggs("run", "--config", project.config)
    assert "nothing to do" in (again.stdout + again.stderr).lower()
    kept(project.folder / "reviews", grade(query, passages[1], "bo", 4))
    why = raggs("why", project.run, "judge", "--config", project.config)
    assert "reviews" in why.stdout
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    after = project.artifacts()
    assert after["merge"] == before["merge"]
    assert after["judge"] != before["judge"]
    [changed] = [record for record in grades(project) if record.judge == "human: bo"]
    assert (changed.qid, changed.grade) == ("q01", 4)
    assert raggs("audit", project.run).returncode == 0


def test_people_alone_leave_the_rest_unjudged_and_nothing_fails(project: Project) -> None:
    project.change(judge={"judge": {"type": "human"}})
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stderr
    records = [record for record in grades(project) if record.duplicate_of is None]
    assert all((record.grade == 5) == (record.rank == 1) for record in records)
    assert {record.skipped for record in records if record.rank > 1} == {"nobody has reviewed it"}
    assert raggs("audit", project.run).returncode == 0


def test_damaged_reviews_stop_the_run_before_anything_is_judged(project: Project) -> None:
    with (project.folder / "reviews" / "reviews.jsonl").open("a") as file:
        file.write('{"kind": "grade", "grade": 7}\n')
    done = raggs("run", "--config", project.config)
    assert done.returncode == 5, done.stderr
    assert "reviews.jsonl" in done.stderr
    assert not (project.run / "judge.jsonl").exists()
