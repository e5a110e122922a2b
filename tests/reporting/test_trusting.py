from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.golden import GivenGolden
from support.reports import facts

from raggs.base.judge_health import CanaryHealth, Health, JudgeHealth, RankHealth, WilsonRate
from raggs.evaluation.models import ScorePart
from raggs.reporting.sections.decision import TrustCheck, checks
from raggs.runs.manifests.models import RunManifest, StageLock
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


def rate(count: int, total: int) -> WilsonRate:
    return WilsonRate(rate=count / total if total else None, interval=(0.0, 1.0), count=count, total=total)


def lock(stage: str, health: Health, **params: object) -> StageLock:
    return StageLock(
        stage=stage,
        fingerprint="f" * 64,
        components={"judge": {"type": "litellm"}},
        params=params,
        inputs={},
        outputs={},
        judge="litellm m",
        health=health,
        started=WHEN,
        ended=WHEN,
    )


def run(folder: Path, *, passed: int = 10, inversions: float = 1.0, warnings: tuple[str, ...] = ()) -> OpenedRun:
    """Of a judge that has ten canaries, whose gate asks for nine of them, and orders the top of each query."""
    canaries = CanaryHealth(passed=rate(passed, 10), kinds={"shuffled": rate(passed, 10)})
    orders = RankHealth(
        first=rate(2, 10),
        flips=rate(0, 0),
        cycles=rate(0, 0),
        invalid=rate(0, 10),
        fair_first=0.2,
        expected_inversions=inversions,
        warnings=warnings,
    )
    stages = {"judge": lock("judge", JudgeHealth(canaries=canaries)), "rank": lock("rank", orders, max_calls=8)}
    config = {"judge": {"gate": {"canaries": 0.9}}}
    folder.mkdir(exist_ok=True)
    manifest = RunManifest(name="demo", created=WHEN, config=config, stages=stages, config_file="my raggs.yaml")
    RunStore(folder).save(manifest)
    return open_run(folder)


def found(opened: OpenedRun) -> dict[str, TrustCheck]:
    golden = GivenGolden("demo", 5, facts().golden.given, provenance=None)
    return {check.name: check for check in checks(replace(facts(), run=opened, golden=golden))}


@pytest.mark.parametrize(
    ("passed", "canaries", "gate"), [(10, "good", "good"), (9, "doubt", "good"), (8, "doubt", "bad")]
)
def test_canaries_and_the_gate_are_told_with_their_limits(
    tmp_path: Path, passed: int, canaries: str, gate: str
) -> None:
    told = found(run(tmp_path / "run", passed=passed))
    assert (told["Canaries"].state, told["Gate"].state) == (canaries, gate)
    assert told["Gate"].threshold == "judge.gate: canaries 0.9"
    assert told["Canaries"].said[0].startswith(f"canaries: {passed} of 10 pass")
    assert (told["Gate"].step is not None) == (gate == "bad")


@pytest.mark.parametrize(("inversions", "state"), [(1.0, "good"), (1.1, "doubt")])
def test_an_order_is_rough_beyond_a_tenth_of_the_pairs_of_its_top(
    tmp_path: Path, inversions: float, state: str
) -> None:
    check = found(run(tmp_path / "run", inversions=inversions))["Order"]  # a top of 5 has 10 pairs
    assert check.state == state
    if state == "doubt":
        assert check.step is not None
        assert check.step.command == "raggs run --config 'my raggs.yaml' --set rank.max_calls=16"


@pytest.mark.parametrize(("capped", "state"), [(1, "good"), (2, "doubt")])
def test_an_order_is_in_doubt_if_many_queries_stopped_at_the_cap(tmp_path: Path, capped: int, state: str) -> None:
    opened = run(tmp_path / "run", inversions=9.0)
    lock_ = opened.manifest.stages["rank"].model_copy(
        update={"counts": {"settled": 10 - capped, "cap": capped, "not ranked": 3}}
    )
    stages = {**opened.manifest.stages, "rank": lock_}
    RunStore(opened.folder).save(opened.manifest.model_copy(update={"stages": stages}))
    told = found(open_run(opened.folder))
    assert told["Order"].state == state and f"of 10 queries; {capped} stopped at the maximum" in told["Order"].said[0]
    assert told["Order"].said[1].startswith("not ranked: 3 queries")
    assert not any("settled" in said for said in told["Judge"].said)
    assert (told["Order"].step is None) == (state == "good")


def test_a_warning_of_the_judges_health_is_a_doubt_in_its_own_words(tmp_path: Path) -> None:
    told = found(run(tmp_path / "run", warnings=("it prefers the first",)))["Judge"]
    assert (told.state, told.said[-1]) == ("doubt", "warning: it prefers the first")
    assert not any("canaries" in said or "wrongly ordered" in said for said in told.said), (
        "they have checks of their own"
    )
    assert found(run(tmp_path / "run"))["Judge"].state == "good"


def test_stages_that_are_not_done_are_told_with_the_command_that_does_them(tmp_path: Path) -> None:
    opened = run(tmp_path / "run")  # has judged and ranked, and nothing before and between
    check = found(opened)["Completeness"]
    assert (check.state, check.said) == ("doubt", ("stages not run yet: embed, retrieve, merge, prune",))
    assert check.step is not None and check.step.command == "raggs run --config 'my raggs.yaml'"
    store = RunStore(opened.folder)
    store.save(opened.manifest.model_copy(update={"stages": {}, "name": "other", "config": {"name": "demo"}}))
    nothing = found(open_run(opened.folder))
    whole = nothing["Completeness"]
    assert whole.state == "bad" and whole.step is not None
    assert whole.step.command == "raggs run --config 'my raggs.yaml' --run-id other"  # another name is another run
    assert nothing["Human labels"].step is None  # there is nothing yet to hold people against
    lock_ = opened.manifest.stages["judge"]
    graded = dict.fromkeys(("embed", "retrieve", "merge", "judge"), lock_)
    store.save(opened.manifest.model_copy(update={"stages": graded}))
    alone = found(open_run(opened.folder))["Completeness"]  # who needs grades alone leaves the ranking out
    assert (alone.state, alone.said, alone.step) == ("good", ("stages not run yet: prune, rank",), None)


def test_labels_that_are_all_relevant_leave_the_rest_unjudged_by_custom() -> None:
    report = facts().report
    assert report is not None and report.warnings
    holes = {each.name: each.scores["holes@2"].model_copy(update={"mean": 0.9}) for each in report.systems}
    empty = report.with_systems({name: {"scores": {**_scores(name), "holes@2": part}} for name, part in holes.items()})
    for warnings, state in ((report.warnings, "bad"), ((), "doubt")):
        told = facts(empty.model_copy(update={"warnings": warnings}))
        assert {check.name: check.state for check in checks(told)}["Unjudged"] == state


def _scores(name: str) -> dict[str, ScorePart]:
    report = facts().report
    assert report is not None
    return dict(next(each.scores for each in report.systems if each.name == name))
