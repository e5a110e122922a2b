"""People's grades of a random part, found in the reviews, and what `raggs eval --reviews` says by them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.forging import write_artifact
from support.project import Project, files_copied, make_project, raggs
from support.reviewing import graded_pool, speak

from raggs.app.corrections import drawn_labels
from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedFiles, MeasureRequest, ProjectionRequest
from raggs.app.evaluate import evaluate
from raggs.base.artifacts import JudgeRecord, MergeRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import read_records
from raggs.runs.manifests.open_run import open_run

CHANCE = 0.5
PRECISION = MeasureRequest(("precision4@10", "ndcg@10"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), queries=16, rank={"max_calls": 2})
    raggs("run", "--config", project.config, "-q")
    return project


def lot(record: MergeRecord) -> bool:
    """A draw of half of the pool, the same each time."""
    return int(hash_value([record.qid, record.doc_id])[:8], 16) % 2 == 0


def above(_: MergeRecord, grade: int | None) -> int | None:
    return None if grade is None else min(5, grade + 1)


def test_the_random_part_is_what_was_drawn_and_graded_blind(made: Project, tmp_path: Path) -> None:
    drawn = speak(made.run, tmp_path, above, chance=CHANCE, reads=lambda each: lot(each) and each.rank > 3)
    speak(made.run, tmp_path, above, reads=lambda each: each.rank == 1)
    speak(made.run, tmp_path, above, chance=CHANCE, reads=lambda each: each.rank == 2, blind=False)
    unsure = speak(made.run, tmp_path, lambda *_: None, chance=CHANCE, reads=lambda each: each.rank == 3)
    found = drawn_labels(open_run(made.run), tmp_path)
    assert len(found.labels) == drawn
    told = drawn / (drawn + unsure)
    assert {label.chance for label in found.labels.values()} == {CHANCE * told}, (
        "those who could not tell are like others"
    )
    assert found.notes == (
        f"{unsure} drawn passages without a grade (`cannot tell`): assumed to be like the graded ones",
    )
    grades = {(record.qid, record.doc_id): grade for _, record, grade in graded_pool(made.run)}
    assert all(label.grade == min(5, (grades[key] or 0) + 1) for key, label in found.labels.items())


def test_nothing_drawn_is_said(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path, above)
    with pytest.raises(DataError, match="no passage of this run was drawn at random and labelled blind"):
        drawn_labels(open_run(made.run), tmp_path)


def test_a_run_that_people_graded_themselves_cannot_be_corrected(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path / "reviews", above, chance=CHANCE, reads=lot)
    run = files_copied(made.run, tmp_path / "run")
    records = [
        each.model_copy(update={"judge": "human: ada"}) for each in read_records(run / "judge.jsonl", JudgeRecord)
    ]
    write_artifact(run / "judge.jsonl", records)
    with pytest.raises(DataError, match="grades of drawn passages are human labels"):
        drawn_labels(open_run(run), tmp_path / "reviews")


def test_scores_are_corrected(made: Project, tmp_path: Path) -> None:
    """People are a grade above the judge everywhere, so that corrected precision is above the judge's."""
    speak(made.run, tmp_path / "reviews", above, chance=CHANCE, reads=lot)
    said = raggs(
        "eval", "-g", made.run, "-r", made.run, "-m", "precision4@10,ndcg@10", "--reviews", tmp_path / "reviews",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "corrected by human labels; judge only" in said.stdout
    assert "not corrected by human labels: ndcg@10" in said.stdout
    parts = [each["part"] for each in json.loads((tmp_path / "out" / "eval.json").read_text())["analyses"]["corrected"]]
    scores = [part for part in parts if part["against"] is None]
    assert {part["measure"] for part in parts} == {"precision4@10"}
    assert scores
    assert all(
        part["corrected"] > part["machine"] and part["low"] < part["corrected"] < part["high"] for part in scores
    )
    assert "## Corrected by human labels" in (tmp_path / "out" / "eval.md").read_text()


def test_what_has_no_texts_or_other_passages_is_refused(made: Project, tmp_path: Path) -> None:
    asked = AnalysisRequest(reviews=tmp_path)
    runs = (str(made.run),)
    with pytest.raises(UsageError, match="need the texts of a run"):
        evaluate(EvalRequest(JudgedFiles(made.folder / "qrels.txt", runs), PRECISION, analyses=asked))
    projected = JudgedFiles(made.run, runs, ProjectionRequest())
    with pytest.raises(UsageError, match="do not apply to projected"):
        evaluate(EvalRequest(projected, PRECISION, analyses=asked))
