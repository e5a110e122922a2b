"""`raggs audit eval.json`: the files are hashed and evaluated again, and each thing that differs is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.project import make_project
from support.scoring import BETTER, OUTPUTS, QRELS, RUN, SAMPLES, raggs_eval, write

from raggs.app.eval_request import EvalRequest, JudgedFiles
from raggs.app.evaluate import evaluate
from raggs.app.evaluate_functions import evaluate as evaluate_lists
from raggs.app.run import run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, qrels=QRELS, a=RUN, b=BETTER, samples__yaml=SAMPLES, outputs__jsonl=OUTPUTS)
    return tmp_path


def audited(path: Path | str, code: int = 0) -> list[str]:
    """The findings, with --json."""
    result = invoke("audit", path, "--json")
    assert result.exit_code == code, result.output
    found = json.loads(result.stdout)
    assert found["ok"] is (code == 0)
    return [f"{each['file']}: {each['message']}" for each in found["findings"]]


def edited(file: Path, change: Any) -> None:
    report = json.loads(file.read_text())
    change(report)
    file.write_text(json.dumps(report, indent=2) + "\n")


ASKED = {
    "plain": ("-g", "qrels", "-r", "a", "-r", "new=b", "-b", "a", "--bounds"),
    "options": (
        "-g", "qrels", "-r", "a", "-m", "ndcg,harm", "-k", "2,5", "--gains", "5=9", "--binary-at", "3",
        "--scale", "1-5", "--ties", "file", "--confidence", "0.9", "--seed", "4", "--fail-under", "map=0.01",
        "--robustness",
        "--pool", "20",
    ),
    "condensed": ("-g", "qrels", "-r", "a", "-r", "b", "-b", "b", "--condensed"),
    "samples": ("--samples", "samples.yaml", "--outputs", "outputs.jsonl"),
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_an_evaluation_is_what_its_files_give_wherever_the_folder_is_moved(
    here: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    (here / "in").mkdir()
    for name in ("qrels", "a", "b", "samples.yaml", "outputs.jsonl"):
        shutil.move(here / name, here / "in" / name)
    (here / "in" / "main").mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(here / "in")
        assert raggs_eval(*asked, "-o", "main").exit_code == 0
    assert audited("in/main/eval.json") == audited("in/main") == []
    shutil.move(here / "in", here / "elsewhere")
    assert audited("elsewhere/main/eval.json") == []
    paths = [each["path"] for each in json.loads((here / "elsewhere/main/eval.json").read_text())["sources"]["inputs"]]
    assert all(path.startswith("../") for path in paths)


def test_the_columns_that_the_command_named_are_read_again(here: Path) -> None:
    write(here, labels__csv="question,passage,mark,other\nq1,d1,5,1\nq1,d2,1,5\nq2,d1,2,1\n")
    write(here, lists__csv="question,passage,first,second\nq1,d2,2,1\nq1,d1,1,2\nq2,d1,1,1\n")
    asked = ("-g", "labels.csv", "-r", "lists.csv", "-m", "ndcg@2")
    columns = [f"--column={each}" for each in ("qid=question", "doc_id=passage", "grade=mark", "score=first")]
    assert raggs_eval(*asked, *columns, "-o", "main").exit_code == 0
    report = json.loads((here / "main" / "eval.json").read_text())
    assert report["sources"]["options"]["columns"]["grade"] == "mark"
    assert audited("main/eval.json") == []
    edited(here / "main" / "eval.json", lambda report: report["sources"]["options"]["columns"].update(grade="other"))
    assert any("options changed" in each for each in audited("main/eval.json", code=5))
    assert raggs_eval("-g", "qrels", "-r", "a", "-o", "plain").exit_code == 0
    assert "columns" not in json.loads((here / "plain" / "eval.json").read_text())["sources"]["options"]


def test_what_was_changed_is_named_by_file_system_measure_and_value(here: Path) -> None:
    assert raggs_eval("-g", "qrels", "-r", "a", "-r", "b", "-b", "a", "-m", "mrr,ndcg@5", "-o", "main").exit_code == 0
    file = here / "main" / "eval.json"
    kept = file.read_text()

    def change(report: dict[str, Any]) -> None:
        report["systems"][1]["scores"]["ndcg@5"]["mean"] = 0.5
        report["per_query"]["b"]["mrr"]["q3"] = 0.25
        report["comparisons"][0]["wins"] = 9

    edited(file, change)
    found = audited("main", code=5)
    assert "eval.csv: differs from the text generated from eval.json" in found
    assert "eval.json: system b, mrr, query q3: value is 0.25, evaluated again 1" in found
    assert any(said.startswith("eval.json: system b, ndcg@5: mean is 0.5, evaluated again 0.") for said in found)
    assert "eval.json: comparison of b with a on mrr: wins is 9, evaluated again 2" in found
    file.write_text(kept)
    write(here, b=BETTER.replace("doc-3 2 4.0", "doc-8 2 4.0"))
    found = audited("main", code=5)
    assert found[0] == "b: changed after the evaluation: its sha256 differs (run)"
    assert any(said.startswith("eval.json: system b, mrr: mean is 1, evaluated again") for said in found)
    assert not any("system a" in said for said in found)


def test_edited_options_and_an_edited_golden_set_are_named(here: Path) -> None:
    raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "-o", "main")
    edited(here / "main" / "eval.json", lambda report: report["sources"]["options"].update(seed=3))
    assert audited("main", code=5)[0] == "eval.json: options changed after the evaluation: their sha256 differs"
    raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "-o", "main")
    write(here, qrels=QRELS.replace("doc-3 5", "doc-3 1"))
    found = audited("main", code=5)
    assert found[0] == "qrels: changed after the evaluation: its sha256 differs (golden)"
    assert any(said.startswith("eval.json: golden set: digest is ") for said in found)


def test_missing_files_are_named_and_nothing_is_claimed_of_scores(here: Path) -> None:
    raggs_eval("-g", "qrels", "-r", "a", "-r", "b", "-m", "mrr", "-o", "main")
    (here / "b").unlink()
    assert audited("main", code=5) == ["b: is missing, so its contents cannot be checked (run)"]
    assert "not checked: scores" not in invoke("audit", "main").output


def test_lists_in_memory_and_locks_are_refused_with_a_sentence(here: Path) -> None:
    evaluate_lists({"q": {"d": 5, "e": 1}}, runs={"one": {"q": ["d", "e"]}}, measures=["mrr"]).write(here / "memory")
    (found,) = audited("memory", code=5)
    assert "the lists were in memory" in found
    raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "-o", "main")
    assert invoke("audit", "main/eval.json", "--lock", "golden.lock").exit_code == 2
    assert invoke("audit", "qrels").exit_code == 0, "labels are audited as before"


def test_a_run_directory_is_hashed_by_its_artifacts(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3, corpus=20, judge={"stop_after": None})
    run(project.config)
    folder = project.config.parent / "runs" / "demo"
    evaluate(EvalRequest(JudgedFiles(folder, (str(folder),)))).write(tmp_path / "main")
    inputs = json.loads((tmp_path / "main" / "eval.json").read_text())["sources"]["inputs"]
    assert [each["role"] for each in inputs] == ["golden", "run"]
    assert {"judge.jsonl", "retrieve.jsonl"} <= inputs[0]["files"].keys()
    assert audited(tmp_path / "main") == []
    shutil.rmtree(folder)
    assert len(audited(tmp_path / "main", code=5)) >= 2
