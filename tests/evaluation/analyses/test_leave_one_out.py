"""Leave one system out: scores and ranks when what a system alone found counts as unjudged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.scoring import raggs_eval, scored, write

LABELS = {"q1": {"d1": 5, "d2": 4, "d3": 2, "d4": 5}, "q2": {"d1": 4, "d5": 3, "d6": 5}}
LISTS = {
    "dense": {"q1": ["d2", "d1", "x"], "q2": ["d6", "d1"]},
    "lexical": {"q1": ["d4", "d1"], "q2": ["d1", "d5"]},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, qrels=labelled(LABELS), **{name: listed(lists) for name, lists in LISTS.items()})
    return tmp_path


def labelled(labels: dict[str, dict[str, int]]) -> str:
    return "".join(f"{qid} 0 {doc} {grade}\n" for qid, grades in labels.items() for doc, grade in grades.items())


def listed(lists: dict[str, list[str]]) -> str:
    return "".join(f"{qid} Q0 {doc} {at} {-at} t\n" for qid, docs in lists.items() for at, doc in enumerate(docs, 1))


def test_scores_and_ranks_are_those_without_the_judgments_that_only_one_system_brought(here: Path) -> None:
    asked = ("-g", "qrels", "-r", "dense", "-r", "lexical", "-m", "ndcg@5")
    report = scored(*asked, "--leave-one-out")
    found = {each["system"]: each["part"] for each in report["analyses"]["leave_one_out"]}
    own = {"dense": {("q1", "d2"), ("q2", "d6")}, "lexical": {("q1", "d4"), ("q2", "d5")}}
    for name, left in own.items():
        kept = {q: {d: g for d, g in grades.items() if (q, d) not in left} for q, grades in LABELS.items()}
        write(here, less=labelled(kept))
        again = scored("-g", "less", "--scale", "1-5", "-r", "dense", "-r", "lexical", "-m", "ndcg@5")
        means = {each["name"]: each["scores"]["ndcg@5"]["mean"] for each in again["systems"]}
        assert found[name]["without"] == pytest.approx(means[name])
        assert found[name]["rank_without"] == 1 + sum(mean > means[name] for mean in means.values())
        assert found[name]["alone"] == 2
    assert (found["dense"]["rank"], found["dense"]["rank_without"]) == (1, 2)
    assert found["dense"]["overtaken_by"] == ["lexical"]
    assert [found[name]["relevant"] for name in LISTS] == [2, 1]
    said = raggs_eval(*asked, "--leave-one-out").stdout
    assert "dense without its unique passages: ndcg@5 " in said
    assert "rank 1 -> 2 (behind lexical); 2 judged passages (2 relevant) are unique to it" in said.replace("\n", " ")
    assert "leave_one_out" not in scored(*asked)["analyses"]


def test_lower_values_may_be_better(here: Path) -> None:
    report = scored("-g", "qrels", "-r", "dense", "-r", "lexical", "-m", "harm@2", "--leave-one-out")
    parts = [each["part"] for each in report["analyses"]["leave_one_out"]]
    assert all(part["score"] >= 0 for part in parts)


def test_one_system_is_refused(here: Path) -> None:
    result = raggs_eval("-g", "qrels", "-r", "dense", "--leave-one-out")
    assert (result.exit_code, "at least two systems" in result.stderr) == (2, True)


def test_it_stands_in_the_files_and_is_evaluated_again_by_an_audit(here: Path) -> None:
    from support.cli import invoke

    asked = ("-g", "qrels", "-r", "dense", "-r", "lexical", "-m", "ndcg@5", "--leave-one-out", "-o", "out")
    assert raggs_eval(*asked).exit_code == 0
    assert "## Leave-one-out from the pool" in (here / "out" / "eval.md").read_text()
    assert json.loads((here / "out" / "eval.json").read_text())["analyses"]["leave_one_out"]
    assert invoke("audit", "out/eval.json").exit_code == 0
