"""A run's judge against people: what counts, what is left out and said, and by what the cases are divided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.forging import write_artifact
from support.project import Project, files_copied, make_project, raggs
from support.reviewing import graded_pool, speak

from raggs.app.judge_check import _length, _order, check_json, check_judge, lay_out_check, write_check
from raggs.base.artifacts import JudgeRecord, MergeRecord
from raggs.base.errors import DataError
from raggs.base.jsonl import read_records
from raggs.runs.manifests.open_run import open_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), queries=8, rank={"max_calls": 2})
    raggs("run", "--config", project.config, "-q")
    return project


def above(record: MergeRecord, grade: int | None) -> int | None:
    """One who is a grade above the judge on odd passages."""
    return None if grade is None else min(5, grade + int(record.doc_id[1:]) % 2)


def test_all_that_people_and_judge_graded_is_compared(made: Project, tmp_path: Path) -> None:
    count = speak(made.run, tmp_path, above)
    found = check_judge(open_run(made.run), tmp_path)
    assert found.whole.cases == count
    assert found.whole.clusters == 8
    assert found.whole.bias.value < 0
    assert found.whole.within_one.value == 1.0
    assert found.people is None
    assert list(found.judges) == ["qrels qrels.txt"]
    kinds = {group.kind for group in found.groups}
    assert kinds >= {"grade of the judge", "rank in the pool"}
    for kind in kinds:
        assert sum(group.checked.cases for group in found.groups if group.kind == kind) == count


def test_what_was_seen_or_unsure_does_not_count_and_is_told(made: Project, tmp_path: Path) -> None:
    first, second, third = [record for _, record, _ in graded_pool(made.run)][:3]
    count = speak(made.run, tmp_path, above, reads=lambda each: each.qid != first.qid)
    speak(made.run, tmp_path, lambda *_: 1, reads=lambda each: each == first, blind=False)
    speak(made.run, tmp_path, lambda *_: None, reads=lambda each: each == second)
    speak(made.run, tmp_path, lambda *_: 1, reads=lambda each: each == third, blind=False, who="bo")
    found = check_judge(open_run(made.run), tmp_path)
    assert (found.whole.cases, found.left_out.seen, found.left_out.unsure) == (count, 2, 1)


def test_people_among_each_other(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path, above)
    both = speak(made.run, tmp_path, lambda _, grade: grade, who="bo", reads=lambda each: each.rank <= 5)
    found = check_judge(open_run(made.run), tmp_path)
    assert found.people is not None
    assert found.people.cases == both == 40
    assert found.people.bias.value > 0, "ada, first by name, is above bo"
    table = lay_out_check(found).sections[0].table
    assert table is not None
    assert table.head == ("figure", "judge and annotators", "two annotators")


def test_the_part_that_was_drawn_is_counted(made: Project, tmp_path: Path) -> None:
    drawn = speak(made.run, tmp_path, above, chance=0.25, reads=lambda each: each.rank <= 5)
    speak(made.run, tmp_path, above, reads=lambda each: each.rank > 5)
    found = check_judge(open_run(made.run), tmp_path)
    assert found.drawn == drawn
    assert any("were chosen, not drawn at random" in note for note in lay_out_check(found).notes)


def test_grades_that_are_peoples_own_are_no_witness(made: Project, tmp_path: Path) -> None:
    count = speak(made.run, tmp_path / "reviews", above)
    run = files_copied(made.run, tmp_path / "run")
    records = list(read_records(run / "judge.jsonl", JudgeRecord))
    people = [record.model_copy(update={"judge": "human: ada"}) for record in records[:9]]
    write_artifact(run / "judge.jsonl", [*people, *records[9:]])
    found = check_judge(open_run(run), tmp_path / "reviews")
    assert (found.whole.cases, found.left_out.by_people) == (count - 9, 9)
    assert list(found.judges) == ["qrels qrels.txt"]


def test_nothing_to_compare_is_said(made: Project, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no blind human label"):
        check_judge(open_run(made.run), tmp_path)
    speak(made.run, tmp_path, above, blind=False)
    with pytest.raises(DataError, match="labels count only if they are blind"):
        check_judge(open_run(made.run), tmp_path)


def test_labels_of_passages_without_a_grade_are_not_called_missing(made: Project, tmp_path: Path) -> None:
    count = speak(made.run, tmp_path / "reviews", above)
    run = files_copied(made.run, tmp_path / "run")
    records = list(read_records(run / "judge.jsonl", JudgeRecord))
    failed = [record.model_copy(update={"grade": None, "error": "no answer"}) for record in records]
    write_artifact(run / "judge.jsonl", failed)
    with pytest.raises(DataError, match="can be compared with a grade of the judge") as caught:
        check_judge(open_run(run), tmp_path / "reviews")
    assert str(caught.value.remedy).startswith(f"the judge has no grade of {count} passages with a blind label")


def test_few_cases_are_called_few_and_json_holds_no_number_that_it_has_not(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path, above, reads=lambda each: each.rank <= 1)
    found = check_judge(open_run(made.run), tmp_path)
    files = write_check(found, tmp_path / "out")
    assert [file.name for file in files] == ["check.json", "check.md"]
    assert json.loads(check_json(found))["whole"]["kappa"]["low"] is None
    page = files[1].read_text()
    assert "usable for comparing systems: not yet, about 12 more labels needed" in page


def test_thirds_of_length_are_named_by_their_ends() -> None:
    assert [_length(length, [80, 120]) for length in (10, 80, 81, 120, 121)] == [
        "up to 80", "up to 80", "81 to 120", "81 to 120", "more than 120",
    ]  # fmt: skip
    assert sorted(["more than 120", "81 to 120", "up to 80"], key=_order) == ["up to 80", "81 to 120", "more than 120"]
