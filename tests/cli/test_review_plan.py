"""`raggs review plan`: a plan on the screen and in a file, what it leaves out, and what cannot be planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.forging import write_artifact
from support.project import Project, environment, make_project, raggs
from support.reviewing import speak

from raggs.base.artifacts import JudgeRecord, MergeRecord
from raggs.base.jsonl import read_records
from raggs.parts.reviews import GradeReview, PlanItem, ReviewStore, read_plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), queries=8, rank={"max_calls": 2})
    raggs("run", "--config", project.config, "-q")
    return project


def planned(project: Project, folder: Path, *more: object) -> list[PlanItem]:
    said = raggs("review", "plan", project.run, "--reviews", folder, "--out", folder / "plan.jsonl", *more)
    assert said.returncode == 0, said.stderr
    return [item for item in read_plan(folder / "plan.jsonl") if not item.read]


def test_a_plan_says_what_is_expected_of_it(made: Project, tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    narrow = environment(COLUMNS="80")
    arguments = ("review", "plan", made.run, "--minutes", 10, "--reviews", tmp_path, "--out", tmp_path / "plan.jsonl")
    said = raggs(*arguments, env=narrow)
    assert said.returncode == 0, said.stderr
    assert "of 9 verdicts between 3 systems" in said.stdout
    assert "no randomly drawn passages are labelled yet" in said.stdout
    tables = [line for line in said.stdout.splitlines() if not line.startswith(("note", "sure  ", "turn  ", "/"))]
    assert max(map(len, tables)) <= 80
    items = read_plan(tmp_path / "plan.jsonl")
    assert 5 < len(items) < 80
    assert 400 < sum(item.seconds for item in items) <= 600
    assert {item.chance is not None for item in items} == {True, False}
    assert all((item.chance is None) == (item.worth > 0) for item in items)
    first = (tmp_path / "plan.jsonl").read_bytes()
    raggs(*arguments)
    assert (tmp_path / "plan.jsonl").read_bytes() == first, "the same seed, the same plan"
    found = json.loads(raggs(*arguments, "--json").stdout)
    assert found["items"] == len(items)
    assert len(found["verdicts"]) == 9


def test_what_was_read_is_left_out_and_what_changed_since_comes_back(made: Project, tmp_path: Path) -> None:
    folder = tmp_path / "reviews"
    speak(made.run, folder, lambda _, grade: grade, reads=lambda each: each.qid != "q03")
    items = planned(made, folder, "--minutes", 600)
    assert {item.qid for item in items} == {"q03"}
    stale = tmp_path / "stale"
    for line in ReviewStore(folder).read():
        assert isinstance(line, GradeReview)
        other = "0" * 32 if line.qid == "q05" else line.passage
        ReviewStore(stale).append(line.model_copy(update={"passage": other}))
    assert {item.qid for item in planned(made, stale, "--minutes", 600)} == {"q03", "q05"}


def test_what_was_read_at_random_tells_how_far_the_judge_errs(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path / "right", lambda _, grade: grade, chance=0.5, reads=lambda each: each.qid < "q04")
    wrong = lambda _, grade: 6 - (grade or 3)  # noqa: E731
    speak(made.run, tmp_path / "wrong", wrong, chance=0.5, reads=lambda each: each.qid < "q04")
    sums = {}
    for name in ("right", "wrong"):
        said = raggs("review", "plan", made.run, "--reviews", tmp_path / name, "--json")
        found = json.loads(said.stdout)
        assert found["learned"] > 0
        sums[name] = sum(verdict["turned"] for verdict in found["verdicts"])
    assert sums["right"] < sums["wrong"]


def test_the_whole_time_may_go_to_chance(made: Project, tmp_path: Path) -> None:
    items = planned(made, tmp_path, "--minutes", 20, "--random", 1)
    assert all(item.chance for item in items)
    assert all(item.why == "drawn at random" for item in items)


def test_systems_of_files(made: Project, tmp_path: Path) -> None:
    pool = list(read_records(made.run / "merge.jsonl", MergeRecord))
    for name, sign in (("up", -1), ("down", 1)):
        lines = [f"{each.qid} Q0 {each.doc_id} 1 {sign * each.rank} x\n" for each in pool]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    systems = [word for name in ("up", "down") for word in ("--systems", tmp_path / f"{name}.trec")]
    said = raggs("review", "plan", made.run, *systems, "-m", "ndcg@5", "--reviews", tmp_path)
    assert said.returncode == 0, said.stderr
    assert "verdict between 2 systems" in said.stdout


@pytest.mark.parametrize(
    ("wrong", "sentence", "code"),
    [
        (("--minutes", "0"), "--minutes 0 is not a positive number", 2),
        (("--minutes", "nan"), "is not a positive number", 2),
        (("--random", "2"), "is not between 0 and 1", 2),
        (("-m", "fame@3"), "fame", 2),
        (("--systems", "{folder}/nothing.trec"), "nothing.trec", 4),
        (("--systems", "{folder}/strange.trec"), "only one system is named", 2),
        (("--systems", "{run}", "--systems", "{folder}/strange.trec"), "contains no query of the run", 1),
        (("--systems", "{run}", "--systems", "{folder}/far.trec"), "contains no passage from the run's pools", 1),
        (("--out", "{folder}"), "", 1),
    ],
)
def test_what_cannot_be_planned(
    made: Project, tmp_path: Path, wrong: tuple[str, ...], sentence: str, code: int
) -> None:
    (tmp_path / "strange.trec").write_text("other Q0 p001 1 1.0 x\n")
    (tmp_path / "far.trec").write_text("q00 Q0 elsewhere 1 1.0 x\n")
    words = [word.format(folder=tmp_path, run=made.run) for word in wrong]
    said = raggs("review", "plan", made.run, *words)
    assert sentence in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert said.returncode != 0
    assert code == 1 or said.returncode == code


def test_runs_that_have_nothing_to_read(made: Project, tmp_path: Path) -> None:
    assert "Traceback" not in raggs("review", "plan", tmp_path / "none").stderr
    speak(made.run, tmp_path / "reviews", lambda _, grade: grade)
    done = raggs("review", "plan", made.run, "--reviews", tmp_path / "reviews")
    assert done.returncode != 0
    assert "every passage of the pools has a human label" in done.stderr
    graded = list(read_records(made.run / "judge.jsonl", JudgeRecord))
    try:
        ungraded = [each.model_copy(update={"grade": None, "grades": ()}) for each in graded]
        write_artifact(made.run / "judge.jsonl", ungraded)
        said = raggs("review", "plan", made.run)
        assert said.returncode != 0
        assert "no query has a graded passage" in said.stderr
    finally:
        write_artifact(made.run / "judge.jsonl", graded)
