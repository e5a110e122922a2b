"""`judge.gate.kappa`: a run whose judge is too far from people ends with 7; words count whenever they were said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import Project, make_project
from support.reviewing import speak

from raggs.app.judge_check import check_judge
from raggs.base.artifacts import JudgeRecord
from raggs.parts.judges import without_human_grade
from raggs.runs.manifests.open_run import open_run

QRELS = {"type": "qrels", "path": "qrels.txt"}
NOISY = {**QRELS, "beta": 3.0, "grade_noise": 0.25, "seed": 1}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path, queries=6, judge={"judge": NOISY, "gate": {"kappa": 0.6}})


def health(project: Project) -> dict[str, object] | None:
    found: dict[str, object] | None = project.manifest()["stages"]["judge"]["health"]
    return found


def test_a_run_is_held_to_people_as_they_speak_and_no_stage_runs_again(project: Project) -> None:
    done = invoke("run", "--config", project.config)
    assert done.exit_code == 7
    assert "only 0 grades of 0 queries can be compared with human labels" in done.stderr
    speak(project.run, project.folder / "reviews", lambda _, grade: grade, reads=lambda each: each.rank <= 5)
    before = project.artifacts()
    done = invoke("run", "--config", project.config)
    assert done.exit_code == 0, done.stderr
    assert "nothing to do" in (done.stdout + done.stderr).lower()
    assert project.artifacts() == before
    told = invoke("status", project.run, "--details").stdout
    assert "human labels: kappa 1.00" in told
    assert invoke("audit", project.run).exit_code == 0

    elsewhere = project.folder / "others"
    speak(project.run, elsewhere, lambda _, grade: 6 - (grade or 1), reads=lambda each: each.rank <= 9)
    held = invoke("run", "--config", project.config, "--set", f"judge.gate.reviews={elsewhere}")
    assert held.exit_code == 7
    assert "the judge fails its check: kappa with human labels is -" in held.stderr
    checked = check_judge(open_run(project.run), elsewhere)
    people = health(project)["people"]
    assert (people["kappa"], people["grades"]) == (round(checked.whole.kappa.value, 4), checked.whole.cases)
    assert invoke("export", project.run, "--format", "trec", "--out", project.folder / "out").exit_code == 0
    meta = json.loads((project.folder / "out" / "qrels.txt.meta.json").read_text())
    assert meta["provenance"]["gate"] == [held.stderr.strip().rsplit("check: ", 1)[1]]
    for labels in (project.folder / "out", project.folder / "out" / "qrels.txt"):
        scored = invoke("eval", "--golden", labels, "--run", project.run)
        assert scored.exit_code == 0, scored.stderr
        assert "the judge fails its check: kappa with human labels" in " ".join(scored.stdout.split())

    loosened = invoke("run", "--config", project.config, "--set", "judge.gate.kappa=null")
    assert (loosened.exit_code, (health(project) or {}).get("people")) == (0, None)


def test_peoples_own_votes_are_no_part_of_what_is_held_against_them(project: Project) -> None:
    invoke("run", "--config", project.config, "--to", "judge", "-q")
    speak(project.run, project.folder / "reviews", lambda _, grade: 6 - (grade or 1), reads=lambda each: each.rank <= 6)
    for rule, own in (("median", 0), ("first", 36)):
        panel = {"type": "panel", "rule": rule, "judges": [{"type": "human"}, NOISY]}
        project.change(judge={"judge": panel, "gate": {"kappa": 0.6}})
        done = invoke("run", "--config", project.config, "--to", "judge", "-q")
        assert done.exit_code == 7, done.stderr
        people = health(project)["people"]
        assert (people["by_people"], people["grades"]) == (own, 36 - own)
        if rule == "median":
            assert people["kappa"] < 0, "the other member alone is compared"
        else:
            assert "the judge does not grade passages with human labels" in done.stderr


def test_a_grade_without_people_is_that_of_the_other_members() -> None:
    record = JudgeRecord(
        qid="q", rank=1, doc_id="d", grade=3, judge="panel", votes={"human": (5,), "a": (2, 3, 3), "human #2": (4,)}
    )
    assert without_human_grade(record).grade == 3
    assert without_human_grade(record.model_copy(update={"votes": {"a": (2,), "b": (4,)}})).grade == 3, (
        "nobody to leave out"
    )
    assert without_human_grade(record.model_copy(update={"votes": {"human": (5,), "a": (None,)}})).grade is None


def test_a_gate_that_cannot_be_is_told(project: Project) -> None:
    for setting, said in (("kappa=2", "judge.gate.kappa"), ("kappa=0", "judge.gate.kappa")):
        done = invoke("run", "--config", project.config, "--set", f"judge.gate.{setting}")
        assert (done.exit_code, said in done.stderr) == (5, True)
    alone = invoke("run", "--config", project.config, "--set", "judge.gate.kappa=null", "--set", "judge.gate.reviews=x")
    assert (alone.exit_code, "gate.reviews is used only with gate.kappa" in alone.stderr) == (5, True)
    (project.folder / "reviews").mkdir()
    (project.folder / "reviews" / "reviews.jsonl").write_text('{"kind": "grade", "grade": 7}\n')
    damaged = invoke("run", "--config", project.config)
    assert (damaged.exit_code, "reviews.jsonl" in damaged.stderr) == (5, True)
    assert not (project.run / "judge.jsonl").exists(), "told before anything is paid"
