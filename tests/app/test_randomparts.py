"""The random part of a plan: what it holds, how a second plan goes on with it, and what scores are corrected by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.forging import write_artifact
from support.project import Project, files_copied, make_project, raggs
from support.reviewing import speak

from raggs.app.corrections import DrawnLabels, drawn_labels
from raggs.app.judge_check import check_judge
from raggs.app.review import items_of
from raggs.app.review_plan import PlanRequest, plan_reading
from raggs.app.review_pool import draw_of_plan
from raggs.app.serve import ServeRequest, prepare
from raggs.base.artifacts import JudgeRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.jsonl import read_records
from raggs.parts.reviews import Key, PlanItem, note_draw, read_draws, write_plan
from raggs.runs.manifests.open_run import open_run

TOKEN = "x" * 16
MEASURES = ("ndcg@10", "recall@10", "precision4@10")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), queries=28, rank={"max_calls": 2})
    raggs("run", "--config", project.config, "-q")
    return project


def begin(project: Project, folder: Path, minutes: float, *, share: float = 1.0, whole: bool = False) -> list[PlanItem]:
    """Make a plan and note its random part, as serving it does."""
    found = plan_reading(open_run(project.run), PlanRequest((), MEASURES, minutes, share, whole), folder)
    items = [*found.items, *found.before]
    drawn = draw_of_plan(items)
    assert drawn is not None
    note_draw(folder, drawn)
    return items


def read(project: Project, folder: Path, items: Sequence[PlanItem]) -> None:
    """Read what a plan asks, a grade above the judge, without seeing it."""
    wanted = {(item.qid, item.doc_id) for item in items if not item.read}
    speak(
        project.run,
        folder,
        lambda _, grade: min(5, (grade or 1) + 1),
        reads=lambda record: (record.qid, record.doc_id) in wanted,
    )


def drawn(items: Sequence[PlanItem]) -> dict[Key, float]:
    return {item.key: item.chance for item in items if item.chance is not None}


def told(project: Project, found: DrawnLabels) -> dict[Key, float]:
    """The chances that labels are corrected by."""
    keys = items_of(open_run(project.run))
    return {keys[item]: label.chance for item, label in found.labels.items()}


def test_a_second_plan_goes_on_with_the_draw_of_the_first(made: Project, tmp_path: Path) -> None:
    first = begin(made, tmp_path, 6)
    read(made, tmp_path, first)
    one = drawn_labels(open_run(made.run), tmp_path)
    assert told(made, one) == pytest.approx(drawn(first))
    second = begin(made, tmp_path, 12)
    assert set(drawn(first)) < set(drawn(second))
    assert {item.key for item in second if item.read} == set(drawn(first))
    assert all(drawn(second)[item] >= chance for item, chance in drawn(first).items())
    half = drawn_labels(open_run(made.run), tmp_path)
    left = f"{len(second) - len(first)} passages of a random draw not labelled yet, so none of its labels count"
    assert (half.labels, half.notes) == (one.labels, (left,))
    read(made, tmp_path, second)
    assert told(made, drawn_labels(open_run(made.run), tmp_path)) == pytest.approx(drawn(second))


def test_what_was_read_for_its_worth_counts_where_chance_hits_it(made: Project, tmp_path: Path) -> None:
    worth = plan_reading(open_run(made.run), PlanRequest((), MEASURES, 20, 0.0), tmp_path).items
    assert not drawn(worth)
    read(made, tmp_path, worth)
    items = begin(made, tmp_path, 20)
    before = [item for item in items if item.read]
    assert before
    assert all(item.chance for item in before)
    read(made, tmp_path, items)
    assert told(made, drawn_labels(open_run(made.run), tmp_path)) == pytest.approx(drawn(items))
    checked = check_judge(open_run(made.run), tmp_path)
    assert len(drawn(items)) <= checked.drawn < checked.whole.cases
    again = plan_reading(open_run(made.run), PlanRequest((), MEASURES, 5), tmp_path)
    assert again.learned == sum(key in drawn(items) for key in items_of(open_run(made.run)).values())


def test_what_came_into_the_pools_after_the_draw_is_told(made: Project, tmp_path: Path) -> None:
    items = begin(made, tmp_path, 20)
    read(made, tmp_path, items)
    before = drawn_labels(open_run(made.run), tmp_path)
    assert before.notes == ()
    fewer = [
        item.model_copy(update={"chance": min(1.0, item.chance * 1.25)}) for item in read_draws(tmp_path)[-1].items
    ]
    note_draw(tmp_path, read_draws(tmp_path)[-1].model_copy(update={"items": tuple(fewer)}))
    assert "entered the pools after the random draw" in drawn_labels(open_run(made.run), tmp_path).notes[0]


def test_near_duplicates_have_the_label_of_what_is_read_for_them(made: Project, tmp_path: Path) -> None:
    run = files_copied(made.run, tmp_path / "run")
    records = list(read_records(run / "judge.jsonl", JudgeRecord))
    first, second = (record for record in records if record.qid == "q00" and record.rank <= 2)
    twin = second.model_copy(update={"duplicate_of": first.doc_id})
    write_artifact(run / "judge.jsonl", [twin if record is second else record for record in records])
    items = begin(made, tmp_path, 6000)
    read(made, tmp_path, items)
    labels = drawn_labels(open_run(run), tmp_path).labels
    assert labels["q00", second.doc_id] == labels["q00", first.doc_id]


def test_whole_questions_correct_any_measure(made: Project, tmp_path: Path) -> None:
    items = begin(made, tmp_path, 6000, whole=True)
    assert {item.unit for item in items} == {"question"}
    order = list(dict.fromkeys(item.query for item in items))
    assert len(order) == 16, "twelve questions have the words of others"
    read(made, tmp_path, [item for item in items if item.query != order[-1]])
    found = drawn_labels(open_run(made.run), tmp_path)
    assert set(found.whole.chance.values()) == {15 / 16}, "those read so far are a draw, too"
    assert 20 <= len(found.whole.chance) < 28
    said = raggs(
        "eval",
        "-g",
        made.run,
        "-r",
        made.run,
        "-m",
        ",".join(MEASURES),
        "--reviews",
        tmp_path,
        "--out",
        tmp_path / "out",
    )
    assert said.returncode == 0, said.stderr
    assert "not corrected by human labels" not in said.stdout
    parts = [each["part"] for each in json.loads((tmp_path / "out" / "eval.json").read_text())["analyses"]["corrected"]]
    assert {part["measure"] for part in parts} == set(MEASURES)
    assert all(part["whole"] and part["queries"] == len(found.whole.chance) for part in parts)
    precision = next(part for part in parts if part["measure"] == "precision4@10" and part["against"] is None)
    assert precision["machine"] < precision["low"] < precision["corrected"]


def test_few_whole_questions_have_no_number(made: Project, tmp_path: Path) -> None:
    items = begin(made, tmp_path, 6000, whole=True)
    few = list(dict.fromkeys(item.query for item in items))[:8]
    read(made, tmp_path, [item for item in items if item.query in few])
    said = raggs("eval", "-g", made.run, "-r", made.run, "-m", "ndcg@10", "--reviews", tmp_path)
    assert (
        "queries labelled completely; 20 with a defined value are needed; 3 must differ from the most common value"
        in " ".join(said.stdout.split())
    )
    planned = ("review", "plan", made.run, "--whole", "--random", "0.5", "--minutes", "10")
    said = raggs(*planned, "--reviews", tmp_path / "new")
    assert "drawn with all passages; correcting scores with them needs at least 20" in " ".join(said.stdout.split())


def test_a_draw_that_is_not_read_to_its_end_is_told(made: Project, tmp_path: Path) -> None:
    items = begin(made, tmp_path, 20)
    read(made, tmp_path, items[1:])
    with pytest.raises(DataError, match="not completely labelled: 1 passage left"):
        drawn_labels(open_run(made.run), tmp_path)


def test_serving_a_plan_or_a_sample_notes_what_chance_chose(made: Project, tmp_path: Path) -> None:
    plan = tmp_path / "plan.jsonl"
    found = plan_reading(open_run(made.run), PlanRequest(minutes=20.0), tmp_path)
    write_plan(plan, found.items)
    prepare(ServeRequest((made.run,), tmp_path, plan=plan), TOKEN)
    prepare(ServeRequest((made.run,), tmp_path, sample=12, seed=3), TOKEN)
    prepare(ServeRequest((made.run,), tmp_path, sample=20, seed=3), TOKEN)
    prepare(ServeRequest((made.run,), tmp_path), TOKEN)
    planned, small, large = read_draws(tmp_path)
    assert {item.key for item in planned.items} == {item.key for item in found.items if item.chance}
    assert {item.key for item in small.items} < {item.key for item in large.items}, "a larger sample holds the smaller"
    assert len(large.items) == 20


def test_a_plan_of_which_all_was_read_before_still_counts(made: Project, tmp_path: Path) -> None:
    found = plan_reading(open_run(made.run), PlanRequest(minutes=20.0, share=1.0), tmp_path)
    read(made, tmp_path, found.items)
    plan = tmp_path / "plan.jsonl"
    write_plan(plan, [item.model_copy(update={"read": True}) for item in found.items])
    with pytest.raises(UsageError, match="all items of the plan are labelled"):
        prepare(ServeRequest((made.run,), tmp_path, plan=plan), TOKEN)
    assert told(made, drawn_labels(open_run(made.run), tmp_path)) == pytest.approx(drawn(found.items))
