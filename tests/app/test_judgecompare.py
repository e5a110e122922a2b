"""Two runs' judges on the same passages: what is matched, what is left out and said, costs, and people as referee."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.cli import invoke
from support.forging import write_artifact
from support.project import Project, grade_of, make_project
from support.reviewing import speak

from raggs.app.judge_compare import JudgeComparison, compare_judges, comparison_json, plan_differing, verdict
from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord
from raggs.base.errors import DataError
from raggs.base.jsonl import read_records
from raggs.parts.reviews import read_plan
from raggs.runs.manifests.open_run import open_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run whose judge errs seldom, and one, `loose`, whose judge errs often."""
    project = make_project(tmp_path_factory.mktemp("project"), queries=12)
    often = ("--set", "judge.judge.grade_noise=0.7", "--set", "judge.judge.seed=2", "--run-id", "loose")
    for settings in ((), often):
        done = invoke("run", "--config", project.config, "--to", "judge", "-q", *settings)
        assert done.exit_code == 0, done.stderr
    return project


def compared(project: Project, reviews: Path | None = None, other: Path | None = None) -> JudgeComparison:
    loose = other or project.run.with_name("loose")
    return compare_judges(open_run(project.run), open_run(loose), reviews)


def truly(record: MergeRecord, _: int | None) -> int:
    return grade_of(record.qid, record.doc_id)


def test_the_judge_that_errs_less_is_nearer_to_people_and_who_never_spoke_is_asked_where_they_differ(
    made: Project, tmp_path: Path
) -> None:
    read = speak(made.run, tmp_path, truly, reads=lambda each: each.rank <= 8)
    found = compared(made, tmp_path)
    assert found.nearer is not None
    assert (found.nearer.cases, found.nearer.winner) == (read, "first")
    assert "A is closer to the human labels by" in verdict(found)
    assert verdict(found).endswith("use A")
    assert found.settings == {"judge.grade_noise": ("0.25", "0.7"), "judge.seed": ("1", "2")}
    assert found.agreement.cases == len(found.cases)
    assert sum(map(sum, found.agreement.table)) == found.agreement.cases
    apart = [case.apart for case in found.cases]
    assert apart == sorted(apart, reverse=True)
    listed = json.loads(comparison_json(found))
    assert len(listed["differing"]) == sum(map(bool, apart))
    assert listed["nearer"]["winner"] == "A"

    count = plan_differing(found, tmp_path / "plan.jsonl")
    planned = read_plan(tmp_path / "plan.jsonl")
    assert count == len(planned) == len(found.unread) > 0
    assert {(item.qid, item.doc_id) for item in planned} == {(case.qid, case.doc_id) for case in found.unread}
    assert {item.why for item in planned} == {"two judges differ"}, "no grade is told to whoever reads"


def test_passages_are_matched_by_what_they_say_and_what_one_lacks_is_counted(made: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(made.run.with_name("loose"), other)
    queries = list(read_records(other / "queries.jsonl", QueryRecord))
    write_artifact(other / "queries.jsonl", [one.model_copy(update={"qid": f"x{one.qid}"}) for one in queries])
    pool = list(read_records(other / "merge.jsonl", MergeRecord))
    grades = list(read_records(other / "judge.jsonl", JudgeRecord))
    renamed = [{"qid": f"x{one.qid}", "doc_id": f"x{one.doc_id}"} for one in pool]
    changed = {0: {"grade": None, "skipped": "no"}, 1: {"judge": "human: ada"}}
    write_artifact(
        other / "merge.jsonl",
        [
            one.model_copy(update={**names, **({"text": "Another text."} if number == 2 else {})})
            for number, (one, names) in enumerate(zip(pool, renamed, strict=True))
        ],
    )
    write_artifact(
        other / "judge.jsonl",
        [
            one.model_copy(update={**names, **changed.get(number, {})})
            for number, (one, names) in enumerate(zip(grades, renamed, strict=True))
        ],
    )
    whole, found = compared(made), compared(made, other=other)
    assert found.agreement.cases == whole.agreement.cases - 3
    left = found.unmatched
    assert (left.first_only, left.second_only, left.ungraded, left.by_people) == (1, 1, 1, 1)
    assert found.cases[0].qid == whole.cases[0].qid, "ids are those of the first run"


def test_without_people_or_with_few_nothing_is_claimed(made: Project, tmp_path: Path) -> None:
    assert "it is unknown" in verdict(compared(made))
    with pytest.raises(DataError, match="has a blind human label"):
        compared(made, tmp_path)
    speak(made.run, tmp_path, truly, reads=lambda each: each.rank <= 1)
    found = compared(made, tmp_path)
    assert found.nearer is not None
    assert (found.nearer.few, found.nearer.winner) == (True, None)
    assert "it is inconclusive which judge is closer to the human labels" in verdict(found)
    assert json.loads(comparison_json(found))["nearer"]["off"]["gain"]["low"] is None


def test_two_members_of_a_panel_are_compared_as_two_judges_are(made: Project, tmp_path: Path) -> None:
    labels = made.settings()["judge"]["judge"]
    often = {**labels, "grade_noise": 0.7, "seed": 2}
    panel = {"type": "panel", "judges": [often, labels, {"type": "human"}]}
    project = Project(tmp_path / "panel")
    shutil.copytree(made.folder, project.folder)
    project.change(judge={"judge": panel})
    speak(made.run, project.folder / "reviews", truly, reads=lambda each: each.rank <= 8)
    assert invoke("run", "--config", project.config, "--to", "judge", "-q", "--run-id", "panel").exit_code == 0
    run = project.run.with_name("panel")
    done = invoke("judge", "compare", run, "--json")
    assert done.exit_code == 0, done.stderr
    found, apart = json.loads(done.stdout), compared(made, project.folder / "reviews")
    assert list(found["first"]["judges"]) == ["qrels qrels.txt"]
    assert list(found["second"]["judges"]) == ["qrels qrels.txt #2"]
    assert found["verdict"].endswith("use B")
    assert found["agreement"]["kappa"]["value"] == apart.agreement.kappa.value, "each votes as it judges alone"
    named = invoke("judge", "compare", run, "--members", "#2,qrels qrels.txt", "--show", "0")
    assert "use A" in named.stdout
    assert "same settings" not in named.stdout
    for members in ("#2", "qrels,#2", "#2,#2", "nobody,#2"):
        wrong = invoke("judge", "compare", run, "--members", members)
        assert (wrong.exit_code, "identify two different members" in wrong.stderr) == (2, True)
    assert "is not a panel" in invoke("judge", "compare", made.run).stderr
    assert "omit B or --members" in invoke("judge", "compare", run, made.run, "--members", "a,b").stderr


def test_the_command(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path, truly, reads=lambda each: each.rank <= 8)
    loose, out, plan = made.run.with_name("loose"), tmp_path / "out", tmp_path / "plan.jsonl"
    done = invoke(
        "judge",
        "compare",
        made.run,
        loose,
        "--reviews",
        tmp_path,
        "--out",
        out,
        "--plan",
        plan,
        "--show",
        "3",
        "--details",
    )
    assert done.exit_code == 0, done.stderr
    assert "use A" in done.stdout
    assert "neither judge calls a language model" in done.stdout
    assert "the first 3" in done.stdout
    assert {path.name for path in out.iterdir()} == {"compare.json", "compare.md"}
    assert plan.is_file()
    turned = invoke("judge", "compare", loose, made.run, "--reviews", tmp_path, "--json")
    assert json.loads(turned.stdout)["verdict"].endswith("use B")
    twice = invoke("judge", "compare", made.run, made.run)
    assert (twice.exit_code, "are the same run" in twice.stderr) == (2, True)
    missing = invoke("judge", "compare", made.run, tmp_path / "none")
    assert missing.exit_code == 4
