"""`raggs review`: a grade in one line, and what people have said so far."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.project import Project, make_project, raggs

from raggs.base.artifacts import JudgeRecord
from raggs.base.jsonl import read_records
from raggs.parts.reviews import ReviewStore


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"))
    raggs("run", "--config", project.config, "-q")
    return project


@pytest.fixture
def item(made: Project) -> tuple[str, str]:
    first = next(iter(read_records(made.run / "judge.jsonl", JudgeRecord)))
    return first.qid, first.doc_id


def test_a_grade_in_one_line(made: Project, item: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "reviews"
    before = (made.run / "judge.jsonl").read_bytes()
    said = raggs("review", "set", made.run, *item, "4", "--note", "so it is", "--annotator", "ada", "--reviews", folder)
    assert said.returncode == 0
    assert f"ada: grade 4 for {item[1]} of {item[0]}" in said.stdout
    again = raggs("review", "set", made.run, *item, "?", "--annotator", "ada", "--reviews", folder)
    assert "replaces your earlier label" in again.stdout
    lines = ReviewStore(folder).read()
    assert [(line.who, line.note) for line in lines] == [("ada", "so it is"), ("ada", "")]
    assert lines[1].replaces == lines[0].id
    assert (made.run / "judge.jsonl").read_bytes() == before, "a run is never touched"
    status = raggs("review", "status", made.run, "--reviews", folder)
    assert "1 passage without a grade" in status.stdout


def test_by_itself_it_lies_beside_the_runs(made: Project, item: tuple[str, str]) -> None:
    for who, grade in (("ada", "2"), ("bo", "5")):
        assert raggs("review", "set", made.run, *item, grade, "--annotator", who).returncode == 0
    assert (made.folder / "reviews" / "reviews.jsonl").is_file()
    status = raggs("review", "status", made.run)
    assert "1 passage with different grades" in status.stdout
    assert "0 are blind" in status.stdout
    assert raggs("review", "set", made.run, *item, "4", "--annotator", "bo", "--settle").returncode == 0
    found = json.loads(raggs("review", "status", made.run, "--json").stdout)
    assert found["blind"] == 0
    assert (found["graded"], found["conflicts"], found["reviewers"]) == (1, 0, {"ada": 1, "bo": 1})


@pytest.mark.parametrize(
    ("wrong", "sentence", "code"),
    [
        (("{qid}", "{doc}", "7"), "grade 7 is outside 1..5", 2),
        (("{qid}", "{doc}", "four"), "'four' is not a grade", 2),
        (("nobody", "{doc}", "4"), "no query nobody in this run", 4),
        (("{qid}", "nothing", "4"), "no passage nothing in the pool", 4),
        (("{qid}", "{doc}", "4", "--annotator", " "), "1 to 80 characters", 2),
        (("{qid}", "{doc}", "4", "--annotator", "x" * 81), "1 to 80 characters", 2),
        (
            ("{qid}", "{doc}", "4", "--note", "x" * 20_000),
            "the note has 20,000 characters; at most 10,000",
            2,
        ),
    ],
)
def test_what_cannot_be_noted(
    made: Project, item: tuple[str, str], tmp_path: Path, wrong: tuple[str, ...], sentence: str, code: int
) -> None:
    words = [word.format(qid=item[0], doc=item[1]) for word in wrong]
    said = raggs("review", "set", made.run, *words, "--reviews", tmp_path / "reviews")
    assert said.returncode == code
    assert sentence in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "reviews" / "reviews.jsonl").exists()
