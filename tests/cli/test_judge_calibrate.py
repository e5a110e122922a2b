"""`raggs judge calibrate`: from human labels of a run or from a leaderboard to a calibration that a run uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import call, invoke
from support.llm_server import LLMServer
from support.project import Project, make_project, write_lines

from raggs.parts.judges.litellm import read_calibration
from raggs.stats.calibration import apply_calibration

pytestmark = pytest.mark.usefixtures("provider_key")

MODEL = "openai/judge"
MAX_LINES, WIDTH = 25, 80


def truth(_: str, passage: str) -> int:
    return len(passage) % 5 + 1


def graded(folder: Path, url: str, queries: int = 6, **judge: Any) -> Project:
    """A run of a judge that is always right, but states only 0.6 for its grade."""
    project = make_project(folder, queries=queries, corpus=24)
    llm = {"api_base": url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}, "backoff_s": 0.02}
    project.change(judge={"judge": {"type": "litellm", "model": MODEL, "answers": "decision", **judge}}, llm=llm)
    call("run", "--config", project.config, "--to", "judge")
    return project


def rows(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / "judge.jsonl").read_text().splitlines()]


def label(project: Project, each: int, *, offset: int = 0) -> int:
    """Import the grade of the judge as blind human label of every `each`th passage; return the number of labels."""
    chosen = [row for row in rows(project) if not row.get("duplicate_of")][offset::each]
    path = project.folder / f"labels-{offset}.jsonl"
    write_lines(
        path, [{"qid": row["qid"], "doc_id": row["doc_id"], "grade": row["grade"], "blind": True} for row in chosen]
    )
    call("review", "import", project.run, path, "--annotator", "ada")
    return len(chosen)


def test_labels_of_a_run_make_a_calibration_that_costs_no_call(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = graded(tmp_path, server.url)
        count, calls = label(project, 3), server.count
        file = tmp_path / "calibration.json"
        shown = call("judge", "calibrate", project.run, "--out", file).stdout
        assert shown.startswith("Calibrated probabilities are better: log score -0.")
        lines = shown.splitlines()
        assert len(lines) <= MAX_LINES
        assert all(len(line) <= WIDTH for line in lines if not line.startswith(("next: ", str(file))))
        found = json.loads(file.read_text())
        assert found["temperature"] < 0.8, "0.6 is too low for a grade that is always right"
        assert (found["labels"], len(found["fitted_on"]), found["queries"]) == (count, count, 6)
        assert found["effect"]["log_score"]["after"][0] < found["effect"]["log_score"]["before"][0]
        assert found["effect"]["exact"]["before"][0] == 1.0

        before = {(row["qid"], row["doc_id"]): row for row in rows(project)}
        label(project, 3, offset=1)
        project.change(judge={"judge": {**project.settings()["judge"]["judge"], "calibration": str(file)}})
        call("run", "--config", project.config, "--to", "judge", "--yes")
        assert server.count == calls, "the answers are cached"
        for row in rows(project):
            own = before[row["qid"], row["doc_id"]]
            assert row["grade"] == own["grade"]
            assert row["distribution"][row["grade"] - 1] > own["distribution"][row["grade"] - 1]
            assert row["distribution_source"] == "decision"
        assert "the rest matches the manifest" in call("audit", project.run, code=7).output

        checked = json.loads(call("judge", "check", project.run, "--json").stdout)
        assert checked["left_out"]["fitted"] == count
        assert checked["whole"]["cases"] == len([row for row in rows(project) if not row.get("duplicate_of")][1::3])
        said = " ".join(call("judge", "check", project.run).stdout.split())
        assert f"Excluded: {count} labels that the calibration was fitted on." in said
        file.write_text(file.read_text().replace("fitted_on", "other"))
        said = " ".join(call("judge", "check", project.run, "--details").stdout.split())
        assert "missing or has changed since the run" in said


def test_the_same_labels_give_the_same_bytes_and_no_file_is_overwritten(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = graded(tmp_path, server.url)
    label(project, 2)
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    call("judge", "calibrate", project.run, "-o", one)
    shown = json.loads(call("judge", "calibrate", project.run, "-o", two, "--json").stdout)
    assert one.read_bytes() == two.read_bytes()
    assert shown["verdict"] == "better" and shown["temperature"] == json.loads(one.read_text())["temperature"]
    assert "--force" in invoke("judge", "calibrate", project.run, "-o", one).output
    call("judge", "calibrate", project.run, "-o", one, "--force")


def test_drawn_labels_can_be_kept_for_checks(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = graded(tmp_path, server.url)
    every = [row for row in rows(project) if not row.get("duplicate_of")]
    path = tmp_path / "drawn.jsonl"
    write_lines(
        path,
        [
            {"qid": row["qid"], "doc_id": row["doc_id"], "grade": row["grade"], "blind": True, "chance": 0.25}
            for row in every[::4]
        ],
    )
    call("review", "import", project.run, path, "--annotator", "ada")
    label(project, 2, offset=1)
    drawn = json.loads(call("judge", "check", project.run, "--json").stdout)["drawn"]
    shown = call("judge", "calibrate", project.run, "-o", tmp_path / "all.json").stdout
    assert len(json.loads((tmp_path / "all.json").read_text())["fitted_on"]) == len(every[::4]) + len(every[1::2])
    assert drawn == len(every[::4])
    assert "--chosen" in shown
    call("judge", "calibrate", project.run, "-o", tmp_path / "chosen.json", "--chosen")
    chosen = {tuple(pair) for pair in json.loads((tmp_path / "chosen.json").read_text())["fitted_on"]}
    assert len(chosen) == len(every[::4]) + len(every[1::2]) - drawn


@pytest.mark.parametrize(
    ("judge", "each", "said"),
    [
        ({}, 15, "but a calibration needs 20 labels of 5 queries"),
        ({"answers": "text"}, 2, "states no probabilities"),
    ],
)
def test_too_few_labels_and_judges_without_probabilities_are_refused(
    tmp_path: Path, judge: dict[str, Any], each: int, said: str
) -> None:
    with LLMServer(truth=truth) as server:
        project = graded(tmp_path, server.url, **judge)
    label(project, each)
    result = call("judge", "calibrate", project.run, "-o", tmp_path / "c.json", code=5)
    assert said in " ".join(result.output.split())
    assert not (tmp_path / "c.json").exists()


def test_a_calibrated_run_a_panel_and_human_grades_are_refused(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = graded(tmp_path, server.url)
        label(project, 2)
        file, other = tmp_path / "c.json", tmp_path / "d.json"
        call("judge", "calibrate", project.run, "-o", file)
        own = project.settings()["judge"]["judge"]
        members = [own, {**own, "answers": "logprobs"}]
        for judge, said in (
            ({"judge": {**own, "calibration": str(file)}}, "are already calibrated"),
            ({"judge": {"type": "panel", "judges": members}}, "means over several judges"),
            ({"judge": own, "human_first": True}, "repeat the run without human_first"),
        ):
            project.change(judge=judge)
            call("run", "--config", project.config, "--to", "judge", "--yes")
            result = call("judge", "calibrate", project.run, "-o", other, code=5)
            assert said in " ".join(result.output.split())


def test_a_leaderboard_makes_a_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMServer(truth=truth) as server:
        project = make_project(tmp_path, queries=6, corpus=24)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.chdir(tmp_path)
        judges = {
            "judges": [
                {"type": "litellm", "model": MODEL, "answers": answers} for answers in ("decision", "logprobs", "text")
            ],
            "llm": {"prices": {MODEL: {"input": 1.0, "output": 2.0}}},
        }
        for number, each in enumerate(judges["judges"]):
            judges["judges"][number] = {"name": each["answers"], "judge": each}
        (tmp_path / "judges.yaml").write_text(json.dumps(judges))
        call("judge", "bench", "qrels.txt", "-c", "judges.yaml", "--pairs", "80", "--repeats", "0", "--orders", "0")
        board = tmp_path / "bench" / "leaderboard.json"
        file = tmp_path / "c.json"
        assert "--judge decision" in invoke("judge", "calibrate", board, "-o", file).output
        assert "logprobs" in invoke("judge", "calibrate", board, "-o", file, "--judge", "logprob").output
        call("judge", "calibrate", board, "-o", file, "--judge", "decision")
        found = json.loads(file.read_text())
        assert (found["judge"], found["labels"]) == ("decision", 80)
        top = [0.6, 0.305, 0.076, 0.019, 0.0]  # the labels are unrelated to the grades
        assert max(apply_calibration(top, read_calibration(file))) < 0.4
        judges["judges"] = [{"name": "decision", "judge": {**judges["judges"][0]["judge"], "calibration": str(file)}}]
        (tmp_path / "judges.yaml").write_text(json.dumps(judges))
        result = call(
            *("judge", "bench", "qrels.txt", "-c", "judges.yaml", "--pairs", "80", "--repeats", "0", "--orders", "0"),
            code=5,
        )
        assert "fitted on all pairs of the sample" in " ".join(result.output.split())
        call("judge", "bench", "qrels.txt", "-c", "judges.yaml", "--pairs", "100", "--repeats", "0", "--orders", "0")
        refused = call("judge", "calibrate", board, "-o", tmp_path / "d.json", "--judge", "decision", code=5)
        assert "already calibrated" in " ".join(refused.output.split())
    assert project.config.is_file()


def test_probabilities_count_in_uncertainty_corrected_scores_and_plans(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = graded(tmp_path, server.url, queries=12)
        every = [row for row in rows(project) if not row.get("duplicate_of")]
        chosen = every[::2]
        drawn = [
            {"qid": row["qid"], "doc_id": row["doc_id"], "grade": row["grade"], "blind": True, "chance": 0.5}
            for row in chosen
        ]
        plan = tmp_path / "plan.jsonl"
        call("review", "plan", project.run, "--minutes", "5", "--random", "0", "--out", plan)
        reasons = [json.loads(line)["why"] for line in plan.read_text().splitlines()]
        assert any(each.endswith("; the judge is uncertain") for each in reasons), reasons
        write_lines(tmp_path / "drawn.jsonl", drawn)
        call("review", "import", project.run, tmp_path / "drawn.jsonl", "--annotator", "ada")
        scored = ("eval", "-g", project.run, "-r", project.run, "-m", "precision@10,ndcg@10", "--json")
        plain, wide = (json.loads(call(*scored, *more).stdout) for more in ((), ("--uncertainty",)))
        for before, after in zip(plain["systems"], wide["systems"], strict=True):
            for name, score in before["scores"].items():
                other = after["scores"][name]
                assert score["mean"] == other["mean"]
                assert other["low"] <= score["low"] and score["high"] <= other["high"]
        reviewed = (*scored, "--reviews", tmp_path / "reviews")
        by_probability = json.loads(call(*reviewed).stdout)["analyses"]["corrected"]
        assert all(part["part"]["corrected"] is not None for part in by_probability)

        file = tmp_path / "calibration.json"
        call("judge", "calibrate", project.run, "--out", file)
        project.change(judge={"judge": {**project.settings()["judge"]["judge"], "calibration": str(file)}})
        call("run", "--config", project.config, "--to", "judge", "--yes")
        notes = " ".join(json.loads(call(*reviewed).stdout)["notes"])
        assert f"calibration was fitted on {len(chosen)} drawn labels" in notes
