"""Orders against people's grades, by the place in the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.forging import write_artifact
from support.project import Project, files_copied, make_project, raggs
from support.reviewing import graded_pool, speak

from raggs.app.judge_check import check_judge, lay_out_check, ordered_pairs
from raggs.base.artifacts import JournalRecord, JudgeRecord
from raggs.base.document import markdown
from raggs.base.jsonl import read_records
from raggs.runs.manifests.open_run import open_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), queries=16)
    raggs("run", "--config", project.config, "-q")
    return project


@pytest.fixture
def copy(made: Project, tmp_path: Path) -> Path:
    return files_copied(made.run, tmp_path / "run")


def entry(shown: str, order: str | None, **more: object) -> JournalRecord:
    words = {"qid": "q00", "state": "s", "engine": "e", "round": 0, "slot": 0, "shown": tuple(shown)}
    return JournalRecord.model_validate({**words, "order": None if order is None else tuple(order), **more})


def test_each_pair_of_a_prompt_is_a_case_for_both(copy: Path) -> None:
    write_artifact(copy / "rank.journal.jsonl", [entry("abc", "bac"), entry("ba", None, error="gone")])
    grades = {("q00", "a"): 5, ("q00", "b"): 3, ("q00", "c"): 3}
    found = [(pair.place, pair.judge, pair.people) for pair in ordered_pairs(open_run(copy), grades)]
    assert sorted(found) == [(1, False, True), (1, True, True), (2, True, False), (3, False, False)]
    assert ordered_pairs(open_run(copy), {("q00", "a"): 5}) == []


def test_orders_by_people_are_no_witness_and_no_ranking_is_nothing(copy: Path) -> None:
    grades = {("q00", "a"): 5, ("q00", "b"): 3}
    write_artifact(copy / "rank.journal.jsonl", [entry("ab", "ab", by="human: ada")])
    assert ordered_pairs(open_run(copy), grades) == []
    (copy / "rank.journal.jsonl").unlink()
    assert ordered_pairs(open_run(copy), grades) == []


def test_a_judge_that_likes_what_stands_first_is_told(copy: Path, tmp_path: Path) -> None:
    """It leaves every second prompt as it stands, and is right otherwise."""
    speak(copy, tmp_path / "reviews", lambda _, grade: grade)
    grades = {(record.qid, record.doc_id): grade or 1 for _, record, grade in graded_pool(copy)}
    told = [
        record if record.slot % 2 else record.model_copy(update={"order": record.shown})
        for record in read_records(copy / "rank.journal.jsonl", JournalRecord)
    ]
    write_artifact(copy / "rank.journal.jsonl", told)
    found = check_judge(open_run(copy), tmp_path / "reviews")
    assert found.whole.exact.value == 1.0, "its grades are people's: orders alone have a place"
    assert [group.name for group in found.places] == ["1", "2", "3", "4", "5"]
    first, last = found.places[0].checked, found.places[-1].checked
    assert first.bias.low > 0 > last.bias.high
    assert first.exact.value < 0.9
    assert sum(group.checked.cases for group in found.places) == len(ordered_pairs(open_run(copy), grades))
    page = markdown(lay_out_check(found))
    assert "## Agreement of orders by place in the prompt" in page
    assert "| 1 |" in page


def test_samples_have_a_map_of_their_own(copy: Path, tmp_path: Path) -> None:
    """Three answers each: where one of them is a grade up, people are half a grade up, too."""
    records = list(read_records(copy / "judge.jsonl", JudgeRecord))
    odd = [int(record.doc_id[1:]) % 2 for record in records]
    answers = [
        (record.grade, record.grade, min(5, (record.grade or 1) + up)) for record, up in zip(records, odd, strict=True)
    ]
    sampled = [record.model_copy(update={"grades": said}) for record, said in zip(records, answers, strict=True)]
    write_artifact(copy / "judge.jsonl", sampled)
    speak(copy, tmp_path / "reviews", lambda record, grade: min(5, (grade or 1) + int(record.doc_id[1:]) % 2))
    checked = check_judge(open_run(copy), tmp_path / "reviews")
    found = checked.calibration
    assert found.error_by_mean < found.error_mapped
    assert {round(point.mean % 1, 2) for point in found.by_mean} == {0.0, 0.33}
    assert "with a map of the judge's mean answer" in markdown(
        lay_out_check(check_judge(open_run(copy), tmp_path / "reviews"))
    )
