"""Passages below `rank.floor` are not ordered: they stand below the others, marked, and nobody is sure of them."""

from __future__ import annotations

import csv
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, make_project, raggs

from raggs.base.judge_health import STOP_NO_RELEVANT
from raggs.base.settings import causes_of
from raggs.config.load import load_config
from raggs.golden.formats.tables import CsvImporter
from raggs.ranking import make_ranker
from raggs.runs.manifests.messages import OUTCOMES
from raggs.stages.rank_config import RankConfig
from raggs.stages.replay import TOO_FEW, fill_ranking, part_pool, win_probability

FLOOR, TOP = 4, 12
POOL = (("a", 1), ("b", 4), ("c", 2), ("d", 5), ("e", 2), ("f", 1))


def test_what_is_below_stands_by_grade_and_then_by_fused_rank() -> None:
    found = part_pool(POOL, 3)
    ranking = fill_ranking(make_ranker("bayes", ["b", "d"], [4, 5], top=4).ranking(), found, top=4)
    assert found.ordered == (("b", 4), ("d", 5))
    assert ranking.order == ("d", "b", "c", "e", "a", "f") and ranking.unordered == 4
    assert ranking.position_confidence[1:] == (win_probability(2), 0.5, win_probability(1), 0.5, 1.0)
    assert 0.5 == win_probability(0) < 0.8 < win_probability(1) < 0.95 < win_probability(2) < 1
    assert set(zip(ranking.rank_low[2:], ranking.rank_high[2:], strict=True)) == {(3, 6)}
    assert ranking.membership[2:] == (0.5,) * 4  # two places of the top for four


@pytest.mark.parametrize(("floor", "first"), [(5, ("d",)), (6, ())])
def test_where_fewer_than_two_reach_the_floor_there_is_nothing_to_ask(floor: int, first: tuple[str, ...]) -> None:
    found = part_pool(POOL, floor)
    ranker = make_ranker("bayes", *zip(*found.ordered, strict=True))
    ranking = fill_ranking(ranker.ranking(), found, top=20)
    assert ranker.done and ranking.stop_reason == TOO_FEW and ranking.unordered == len(POOL) - len(first)
    assert ranking.order[: len(first)] == first and sorted(ranking.order) == list("abcdef")
    lengths = {len(getattr(ranking, name)) for name in ("scores", "sigma", "exposures", "rank_low", "membership")}
    assert lengths == {len(ranking.position_confidence)} == {len(POOL)}


def test_a_floor_is_a_cause_only_where_it_is_set() -> None:
    assert "floor" not in causes_of(RankConfig()) and causes_of(RankConfig(floor=2))["floor"] == 2
    assert "floor" not in causes_of(RankConfig(floor=1))


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    rank = {"top": TOP, "max_calls": 8, "floor": FLOOR}
    project = make_project(tmp_path_factory.mktemp("floor"), prune={"min_keep": 14, "max_keep": 16}, rank=rank)
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 0, done.stderr
    return project


def lines(project: Project, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / name).read_text().splitlines()]


def test_the_judge_is_asked_for_what_reaches_the_floor_alone(ranked: Project) -> None:
    grades = {(each["qid"], each["doc_id"]): each["grade"] for each in lines(ranked, "rank.jsonl")}
    asked = {(each["qid"], doc_id) for each in lines(ranked, "rank.journal.jsonl") for doc_id in each["shown"]}
    assert asked and min(grades[each] for each in asked) >= FLOOR
    for _, group in groupby(lines(ranked, "rank.jsonl"), key=lambda each: each["qid"]):
        found = list(group)
        marked = [each.get("unordered", False) for each in found]
        assert marked == [each["grade"] < FLOOR for each in found] == sorted(marked) and any(marked)
        assert not any(each["exposures"] for each in found if each["grade"] < FLOOR)


def test_audit_why_show_export_and_a_second_run_know_of_it(ranked: Project, tmp_path: Path) -> None:
    before = ranked.artifacts()
    audited = raggs("audit", ranked.run)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert f"below grade {FLOOR}, sorted by grade" in raggs("why", ranked.run, "--query", "q01", "--details").stdout
    assert "not ordered" in raggs("show", ranked.run, "q01", "--all").stdout
    assert raggs("export", ranked.run, "--format", "jsonl", "--out", tmp_path / "out").returncode == 0
    top = [json.loads(line) for line in (tmp_path / "out" / "golden.jsonl").read_text().splitlines()]
    assert {each["grade"] < FLOOR for each in top if "unordered" in each} == {True}
    assert f"below grade {FLOOR} (rank.floor) are sorted" in raggs("status", ranked.run, "--details").stdout
    assert raggs("export", ranked.run, "--format", "csv", "--out", tmp_path / "csv").returncode == 0
    table = list(csv.DictReader((tmp_path / "csv" / "golden.csv").read_text("utf-8-sig").splitlines()))
    placed = [row for row in table if row["rank"]]
    assert [row["unordered"] == "yes" for row in placed] == [int(row["grade"]) < FLOOR for row in placed]
    back = [each for query in CsvImporter().read(tmp_path / "csv").by_query() for each in query.order]
    assert {each.unordered for each in back if each.grade < FLOOR} == {True}
    assert raggs("run", "--config", ranked.config).returncode == 0 and ranked.artifacts() == before


@pytest.mark.parametrize("size", [5, "auto"])
def test_a_floor_that_nothing_reaches_asks_nobody(tmp_path: Path, size: int | str) -> None:
    prune = {"min_keep": 14, "max_keep": 16}
    judge = {"judge": {"type": "qrels", "path": "few.txt"}}
    project = make_project(tmp_path, prune=prune, judge=judge, rank={"top": 5, "floor": 5, "batch_size": size})
    labels = [line.split() for line in (tmp_path / "qrels.txt").read_text().splitlines()]
    few = [f"{qid} 0 {doc_id} {min(int(grade), 4)}\n" for qid, _, doc_id, grade in labels]
    (tmp_path / "few.txt").write_text("".join(few))
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 0, done.stderr
    assert not lines(project, "rank.journal.jsonl") or size == "auto"
    assert {each["stop_reason"] for each in lines(project, "rank.queries.jsonl")} == {TOO_FEW}
    assert all(each["unordered"] for each in lines(project, "rank.jsonl"))
    assert raggs("audit", project.run).returncode == 0
    assert load_config(project.config).run.rank.floor == 5


def with_grades_of_at_most(project: Project, most: int, qids: set[str]) -> None:
    """Lower the labels of these queries."""
    labels = [line.split() for line in (project.folder / "qrels.txt").read_text().splitlines()]
    lowered = [f"{qid} 0 {doc_id} {min(int(g), most) if qid in qids else g}\n" for qid, _, doc_id, g in labels]
    (project.folder / "few.txt").write_text("".join(lowered))


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("rank", [{}, {"batch_size": "auto"}, {"budget": {"calls": 60}}])
def test_a_query_without_a_relevant_passage_is_not_ranked(tmp_path: Path, rank: dict[str, Any]) -> None:
    judge = {"judge": {"type": "qrels", "path": "few.txt"}}
    rank = {"top": 5, "max_calls": 12, **rank}
    project = make_project(tmp_path, prune={"min_keep": 14, "max_keep": 16}, judge=judge, rank=rank)
    with_grades_of_at_most(project, 2, {"q01", "q02"})
    done = raggs("run", "--config", project.config, "--details")
    assert done.returncode == 0, done.stderr
    told = "not ranked: 2 queries without a passage of grade 3 or higher"
    status, why = (
        raggs(*words, "--details").stdout for words in (("status", project.run), ("why", project.run, "--query", "q01"))
    )
    assert all(told in " ".join(each.split()) for each in (done.stdout, status))
    assert f"stopped: {STOP_NO_RELEVANT}" in why and "rank.min_best_grade" in why and "below grade" not in why
    counts = project.manifest()["stages"]["rank"]["counts"]
    assert counts["not ranked"] == 2 and sum(counts.get(name, 0) for name in OUTCOMES) == 4
    assert all("top 5 stable for" in each for each in (done.stdout, status))
    reasons = {each["qid"]: (each["stop_reason"], each["calls"]) for each in lines(project, "rank.queries.jsonl")}
    assert {qid for qid, (reason, _) in reasons.items() if reason == STOP_NO_RELEVANT} == {"q01", "q02"}
    assert all((calls == 0) == (reason == STOP_NO_RELEVANT) for reason, calls in reasons.values())
    batches = [each for each in lines(project, "rank.journal.jsonl") if not each.get("profile")]
    assert batches and not {"q01", "q02"} & {each["qid"] for each in batches}
    kept = {each["doc_id"]: each for each in lines(project, "prune.jsonl") if each["qid"] == "q01" and each["kept"]}
    ordered = [each for each in lines(project, "rank.jsonl") if each["qid"] == "q01"]
    assert all(each["unordered"] for each in ordered) and len(ordered) == len(kept)
    leaders = [kept[each["doc_id"]] for each in ordered if each["duplicate_of"] is None]
    assert leaders == sorted(leaders, key=lambda each: (-each["grade"], each["rank"]))
    audited = raggs("audit", project.run)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    dry = raggs("run", "--config", project.config, "--dry-run")
    assert dry.returncode == 0, dry.stderr


def test_the_threshold_of_relevance_can_be_lowered_and_raised(tmp_path: Path) -> None:
    judge = {"judge": {"type": "qrels", "path": "few.txt"}}
    project = make_project(tmp_path, prune={"min_keep": 14, "max_keep": 16}, judge=judge, rank={"max_calls": 8})
    with_grades_of_at_most(project, 2, {"q01"})
    for least, unranked in ((3, True), (1, False), (3, True)):
        done = raggs("run", "--config", project.config, "-q", "--set", f"rank.min_best_grade={least}")
        assert done.returncode == 0, done.stderr
        found = {each["qid"]: each["stop_reason"] for each in lines(project, "rank.queries.jsonl")}
        assert (found["q01"] == STOP_NO_RELEVANT) is unranked and found["q02"] != STOP_NO_RELEVANT
        assert raggs("audit", project.run).returncode == 0
