"""`raggs diff`: two golden sets on the screen, as JSON, as files, and what cannot be compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from support.cli import invoke
from support.project import make_project, write_lines
from support.scoring import raggs_eval

from raggs import load_config
from raggs import run as run_config
from raggs.app.diff import DiffRequest, lay_out_diff
from raggs.app.diff import diff as compared
from raggs.cli.evals import show_diff
from raggs.cli.screen import Screen
from raggs.evaluation.diff_results import by_name
from raggs.evaluation.diff_sets import DiffReport
from raggs.runs.manifests.reasons import differences

QUERIES = [f"q{number:02}" for number in range(14)]


def diff(*arguments: object) -> Result:
    return invoke("diff", *arguments)


def found(*arguments: object) -> dict[str, Any]:
    result = diff(*arguments, "--json")
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    DiffReport.model_validate_json(result.stdout)
    return report


def test_the_form_has_a_schema() -> None:
    shown = invoke("schema", "diff")
    assert set(json.loads(shown.stdout)["properties"]) == set(DiffReport.model_fields)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and one of another judge over other questions: one new, one gone, one renamed, one changed."""
    folder = tmp_path_factory.mktemp("diff")
    project = make_project(folder, queries=8, corpus=40)
    old = run_config(load_config(project.config)).store.folder
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    asked[1]["text"] += " Exactly?"
    asked[2]["_id"] = "renamed"
    write_lines(folder / "queries.jsonl", [*asked[:7], {"_id": "q99", "text": "Which pearl is by the maple?"}])
    texts = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    texts[0]["text"] += " It was moved."
    texts[1]["_id"] = "p901"
    write_lines(folder / "corpus.jsonl", texts)
    project.change(name="later", judge={"judge": {"type": "qrels", "path": "qrels.txt", "grade_noise": 0.9, "seed": 4}})
    return old, run_config(load_config(project.config)).store.folder


def test_questions_and_passages_are_compared_by_content(runs: tuple[Path, Path]) -> None:
    report = found(*runs)
    asked = report["questions"]
    assert (asked["added"], asked["removed"]) == (["q99"], ["q07"])
    assert asked["changed"] == [{"id": "q01", "fields": ["text"]}]
    assert asked["renamed"] == [{"old": "q02", "new": "renamed"}]
    held = report["passages"]
    assert held["renamed"] == [{"old": "p001", "new": "p901"}]
    assert [each["id"] for each in held["changed"]] == ["p000"]
    assert sorted(each["qid"] for each in report["by_question"]) == [f"q{number:02}" for number in range(7)]


def test_grades_and_settings_that_moved_are_counted(runs: tuple[Path, Path]) -> None:
    report = found(*runs)
    grades, table = report["grades"], report["grades"]["table"]
    old, new = (
        {(each["qid"], each["doc_id"]): each["grade"] for each in map(json.loads, (run / "judge.jsonl").open())}
        for run in runs
    )
    names = {"renamed": "q02", "p901": "p001"}
    moved = {(names.get(qid, qid), names.get(doc, doc)): grade for (qid, doc), grade in new.items()}
    both = [(old[pair], moved[pair]) for pair in old.keys() & moved.keys()]
    assert grades["compared"] == len(both)
    assert all(table[one - 1][other - 1] == both.count((one, other)) for one in range(1, 6) for other in range(1, 6))
    assert grades["up"] == sum(one < other for one, other in both)
    assert grades["far"] == sum(abs(one - other) > 1 for one, other in both)
    changed = {each["name"]: (each["old"], each["new"]) for each in report["settings"]}
    assert changed["judge.judge.grade_noise"] == (0.25, 0.9)
    assert "workspace" not in changed
    assert {each["stage"] for each in report["made"]} >= {"embed", "retrieve"}  # other questions, another corpus
    assert any("different corpora" in warning for warning in report["warnings"])


@pytest.mark.parametrize("columns", [80, 60])
def test_the_screen_is_never_wider_than_it_is(
    runs: tuple[Path, Path], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs[0].parents[1])
    runs = (Path("runs") / runs[0].name, Path("runs") / runs[1].name)  # no folder's name is cut
    screen = Screen(width=columns)
    screen._force_terminal = True
    with screen.capture() as seen:
        show_diff(compared(DiffRequest(*runs)), screen)
    text = re.sub(r"\x1b\[[0-9;]*m", "", seen.get())
    assert max(map(len, (line.rstrip() for line in text.splitlines()))) <= columns
    assert "flip" in next(line for line in text.split("\n") if "verdicts" in line)
    for part in ("Grades that changed", "Orders that changed", "Coverage", "Settings that differ", "NEW 5"):
        assert part in text


def test_a_set_and_its_copy_hold_the_same(runs: tuple[Path, Path], tmp_path: Path) -> None:
    report = found(runs[0], copytree(runs[0], tmp_path / "copy"))
    grades = report["grades"]
    assert (grades["up"], grades["down"], grades["kappa"]["value"]) == (0, 0, 1.0)
    assert (report["orders"]["tau_ap"], report["orders"]["beyond"]) == (1.0, 0)
    assert not (report["settings"] or report["made"] or report["health"] or report["warnings"])
    assert not any(each["flipped"] for each in report["decisions"]["verdicts"])
    assert "Both sets contain the same judgments." in diff(runs[0], tmp_path / "copy").stdout


def labels(folder: Path, name: str, relevant: str, queries: list[str] = QUERIES, high: int = 5) -> Path:
    path = folder / name
    docs = ("good", "poor")
    path.write_text("".join(f"{qid} 0 {doc} {high if doc == relevant else 1}\n" for qid in queries for doc in docs))
    return path


@pytest.fixture
def systems(tmp_path: Path) -> list[str]:
    lists = []
    for first, second in (("good", "poor"), ("poor", "good")):
        path = tmp_path / f"{first}.trec"
        path.write_text("".join(f"{qid} Q0 {first} 1 2 s\n{qid} Q0 {second} 2 1 s\n" for qid in QUERIES))
        lists += ["-r", str(path)]
    return lists


def test_what_flips_is_named_first_and_may_fail(tmp_path: Path, systems: list[str]) -> None:
    old, new = labels(tmp_path, "old.txt", "good"), labels(tmp_path, "new.txt", "poor")
    said = diff(old, new, *systems, "-m", "mrr,ndcg@5", "--out", tmp_path / "out", "--fail-on-flip")
    assert said.exit_code == 7
    assert said.stderr == f"raggs: {new}: 2 verdicts of 2 flip\n"
    assert said.stdout.startswith(
        "2 of 2 verdicts flip.\ngood against poor on mrr: better (+0.500) in OLD, worse (-0.500) in NEW.\n"
    )
    details = diff(old, new, *systems, "-m", "mrr,ndcg@5", "--details").stdout
    reversed_ = "good against poor on mrr: reversed (better -> worse) (largest changes: q00 -1.00, q"
    assert details.startswith(f"2 of 2 verdicts flip:\n  {reversed_}")
    written = json.loads((tmp_path / "out" / "diff.json").read_text())
    assert written["decisions"]["verdicts"][0]["moved_by"][0] == {"qid": "q00", "old": 0.5, "new": -0.5}
    assert [each["reversed"] for each in written["decisions"]["verdicts"]] == [True, True]
    assert (
        (tmp_path / "out" / "diff.md").read_text().startswith("# Golden sets: OLD and NEW\n\n- 2 of 2 verdicts flip:")
    )
    assert diff(old, new, *systems, "-m", "mrr").exit_code == 0  # a difference is no failure
    assert diff(old, labels(tmp_path, "same.txt", "good"), *systems, "--fail-on-flip").exit_code == 0


def test_sets_without_texts_or_systems_say_what_is_not_known(tmp_path: Path) -> None:
    files = (labels(tmp_path, "old.txt", "good"), labels(tmp_path, "new.txt", "poor"))
    assert "No system is scored with both sets: name run files with --run." in diff(*files).stdout
    said = diff(*files, "--details")
    assert said.exit_code == 0
    for part in (
        "name systems with --run FILE",
        "only ids are compared",
        "no query has two passages that both sets rank",
    ):
        assert part in " ".join(said.stdout.split())


def test_other_scales_have_no_grades_that_moved(tmp_path: Path, systems: list[str]) -> None:
    old, new = labels(tmp_path, "old.txt", "good"), tmp_path / "new.txt"
    new.write_text("".join(f"{qid} 0 good 1\n{qid} 0 poor 0\n" for qid in QUERIES))
    report = found(old, new, *systems)
    assert report["grades"] is None
    assert "OLD has grades from 1 to 5, NEW from 0 to 4: grades cannot be compared" in report["notes"]
    assert report["decisions"]["measures"] == ["ndcg@10", "recall@10", "mrr@10"]


def test_what_cannot_be_compared_is_refused(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    old = labels(tmp_path, "old.txt", "good")
    other = labels(tmp_path, "other.txt", "good", ["x1", "x2"])
    broken = tmp_path / "nan.txt"
    broken.write_text("q00 0 good nan\n")
    half = copytree(runs[0], tmp_path / "half")
    (half / "judge.jsonl").unlink()
    scores = raggs_eval("-g", runs[0], "-r", runs[0], "-m", "mrr", "-o", tmp_path / "eval")
    assert scores.exit_code == 0
    for arguments, code, said in (
        ((runs[0], runs[0] / "."), 2, "are the same set"),
        ((old, other), 5, "has no query in common with"),
        ((old, broken), 5, "nan"),
        ((old, tmp_path / "none"), 4, "none"),
        ((half, runs[1]), 4, "has not run"),
        ((tmp_path / "eval" / "eval.json", old), 2, f"contains scores, computed with {runs[0]}"),
        ((old, other, "--confidence", "nan"), 2, "--confidence"),
    ):
        result = diff(*arguments)
        assert (result.exit_code, said in result.stderr) == (code, True), result.output
        assert len(result.stderr.splitlines()) == 1 or code == 2


def test_a_run_that_stopped_is_compared_as_far_as_it_came(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    """Questions that nobody has judged yet are not gone, and grades without an order are grades: it is said."""
    half = copytree(runs[0], tmp_path / "half")
    manifest = json.loads((half / "manifest.json").read_text())
    for stage in ("judge", "prune", "rank"):
        del manifest["stages"][stage]
    (half / "manifest.json").write_text(json.dumps(manifest))
    for file in (*half.glob("rank*"), *half.glob("prune*")):
        file.unlink()
    done = [line for line in (half / "judge.jsonl").read_text().splitlines() if json.loads(line)["qid"] < "q05"]
    (half / "judge.jsonl").unlink()
    (half / "judge.partial.jsonl").write_text("\n".join(done) + "\n")
    report = found(half, runs[0])
    assert report["orders"] is None
    assert report["questions"]["same"] == 8
    assert report["grades"]["compared"] == len(done)
    assert report["notes"] == ["OLD: stage judge was stopped: 3 queries omitted (q05, q06, q07)"]
    ranked = next(each for each in report["coverage"] if each["name"] == "questions ranked")
    assert (ranked["old"], ranked["new"]) == (0, 8)


def test_systems_without_lists_for_new_questions_are_told(tmp_path: Path, systems: list[str]) -> None:
    old, new = labels(tmp_path, "old.txt", "good"), labels(tmp_path, "new.txt", "good", [*QUERIES, "q99"])
    report = found(old, new, *systems)
    assert report["questions"]["added"] == ["q99"]
    assert "under NEW: good has no list for 1 judged query, scored as an empty list" in report["warnings"]


def test_adapters_in_lists_are_compared_by_name() -> None:
    told = [{"type": "bm25", "k": 5}, {"type": "dense", "k": 7}]
    more = [{"type": "dense", "k": 9}, {"type": "bm25", "k": 1, "name": "other"}, {"type": "bm25", "k": 5}]
    changes = [str(each) for each in differences(by_name({"r": told}), by_name({"r": more}))]
    assert changes[0] == "r.dense.k changed (7 -> 9)"
    assert changes[1].startswith("r.other is new (")
    assert by_name([3, [4]]) == {"0": 3, "1": {"0": 4}}
    assert by_name([{"type": "a"}, {"type": "a"}]) == {"0": {"type": "a"}, "1": {"type": "a"}}
    assert by_name([]) == []


def test_two_runs_are_compared_setting_by_setting_with_what_each_cost(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = copytree(runs[1], tmp_path / "paid")
    call = {"time": "2026-01-01T00:00:00Z", "stage": "judge", "qid": "q00", "model": "openai/x", "task": "grade"}
    paid = {**call, "outcome": "answered", "attempts": 2, "usd": 0.25}
    write_lines(other / "llm.ledger.jsonl", [paid, paid])
    asked = invoke("compare", runs[0], other, "--json")
    assert asked.exit_code == 0, asked.output
    found = json.loads(asked.stdout)
    counts = {each["name"]: each["counts"] for each in found["settings"]}
    assert counts.pop("name") is False
    assert counts == dict.fromkeys(("judge.judge.beta", "judge.judge.grade_noise", "judge.judge.seed"), True)
    stages = {each["stage"]: each for each in found["stages"]}
    assert {name: each["result"] for name, each in stages.items()} == dict.fromkeys(stages, "other")
    assert stages["judge"]["second"] == {"calls": 4, "usd": 0.5} == found["total"][1]
    assert stages["judge"]["first"] == {"calls": 0, "usd": 0.0}
    reasons = stages["judge"]["reasons"]
    assert "config.judge.grade_noise changed (0.25 -> 0.9)" in reasons
    assert not any(reason.startswith("judge.grade_noise") for reason in reasons)  # once is enough
    brief = " ".join(invoke("compare", runs[0], other).stdout.split())
    assert brief.startswith("4 settings differ, and 3 of them affect results: judge.judge.beta, ")
    assert "Stages with different results: embed, retrieve, merge, judge, prune, rank." in brief
    assert "B: 4 calls, $0.5000." in brief
    shown = invoke("compare", runs[0], other, "--details").stdout
    assert "4 calls, 0.5000 USD" in shown and "4 settings, 3 of them affect results" in shown
    assert "judge: config.judge.beta changed" in shown
    for wrong, code, said in (((runs[0], runs[0]), 2, "are the same run"), ((runs[0], tmp_path), 4, "no run")):
        refused = invoke("compare", *wrong)
        assert (refused.exit_code, said in refused.stderr) == (code, True), refused.stderr


def test_a_verdict_that_unjudged_passages_could_reverse_is_inconclusive(tmp_path: Path) -> None:
    """Both sets know the same of OLD's systems; NEW has judged what one of them shows alone."""
    numbers = range(20)
    judged = "".join(f"q{n:02} 0 good 5\nq{n:02} 0 poor 1\n" for n in numbers)
    more = judged + "".join(f"q{n:02} 0 new{n} 1\n" for n in numbers)
    (tmp_path / "old.txt").write_text(judged)
    (tmp_path / "new.txt").write_text(more)
    for name, docs in (("a", ("good", "poor")), ("b", ("new{n}", "poor"))):
        lines = (f"q{n:02} Q0 {doc.format(n=n)} {at} {-at} t\n" for n in numbers for at, doc in enumerate(docs, 1))
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    runs = tuple(f"{name}={tmp_path / name}.trec" for name in "ab")
    found = compared(DiffRequest(tmp_path / "old.txt", tmp_path / "new.txt", runs, ("precision@2",)))
    assert found.decisions is not None
    (verdict,) = found.decisions.verdicts
    assert (verdict.old, verdict.new, verdict.flipped) == ("unjudged", "better", True)
    assert verdict.old_unjudged == "50% of the top 2 of b is unjudged"
    said = lay_out_diff(found).scores.sentences
    assert "  a against b on precision@2: inconclusive (50% of the top 2 of b is unjudged) -> better" in said[1]
