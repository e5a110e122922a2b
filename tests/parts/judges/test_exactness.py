"""A judge that answers by rule has no errors to be warned of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import call
from support.project import grade_of, make_project

from raggs.base.artifacts import JournalRecord, RankingRecord
from raggs.base.judge_health import ERROR_CORRELATION_WARNING
from raggs.parts.judges import grade_noises, is_exact, may_abstain
from raggs.ranking import Ranking, make_ranker
from raggs.runs.manifests.explain import Explanation
from raggs.runs.manifests.messages import health_lines
from raggs.runs.manifests.rank_messages import order_lines
from raggs.stages.rank_config import RankConfig
from raggs.stages.rank_health import RankStatistics

NUGGETS, NOISY = {"type": "nuggets"}, {"type": "qrels", "beta": 2.0}


@pytest.mark.parametrize(
    ("causes", "exact"),
    [
        (NUGGETS, True),
        ({"type": "reference", "min_run": 5}, True),
        ({"type": "qrels", "beta": None, "grade_noise": 0.0}, True),
        ({"type": "qrels", "beta": None}, True),
        (NOISY, False),
        ({"type": "qrels", "grade_noise": 0.1}, False),
        ({"type": "panel", "judges": [NUGGETS, {"type": "reference"}]}, True),
        ({"type": "panel", "judges": [NUGGETS, NOISY]}, False),
        ({"type": "litellm", "model": "m"}, False),
        ({"type": "scripted"}, False),
        ({"type": "unheard-of"}, False),
        ({"type": 3}, False),
        (None, False),
    ],
)
def test_who_answers_by_rule(causes: object, exact: bool) -> None:
    assert is_exact(causes) is exact


def statistics(exact: bool) -> RankStatistics:
    found = RankStatistics()
    found.exact = exact
    estimates = {"sharpness": 0.5, "echo": 0.9, "position_bias": 0.0, "expected_inversions": 4.0}
    found.see(RankingRecord(qid="q", calls=40, skipped=0, stop_reason="cap", **estimates))
    for slot in range(40):
        shown = ("a", "b", "c") if slot % 2 else ("c", "a", "b")
        found.see(JournalRecord(qid="q", state="s", engine="e", round=0, slot=slot, shown=shown, order=shown))
    return found


def test_echo_and_ties_of_such_a_judge_are_no_faults() -> None:
    suspect, exact = statistics(exact=False).health(), statistics(exact=True).health()
    assert any("error correlation" in warning for warning in suspect.warnings) and exact.warnings == ()
    assert suspect.model_copy(update={"warnings": ()}) == exact
    told = [line.text for line in health_lines(exact, exact=True)]
    assert len(told) == 1 and "rule-based" in told[0]
    assert not any(word in told[0] for word in ("error correlation", "wrongly", "warning"))


def ordered_ties() -> Ranking:
    """Thirty passages of grade 1 that a judge by rule, asked for them, has in one fixed order."""
    ids = [f"d{number:02}" for number in range(30)]
    ranker = make_ranker("bayes", ids, [4] * len(ids), max_calls=40, saving=0)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            ranker.observe(sorted(batch))
    return ranker.ranking()


def test_an_order_of_ties_is_told_without_a_word_of_echo() -> None:
    ranking = ordered_ties()
    assert (
        ranking.echo is not None and ranking.echo > ERROR_CORRELATION_WARNING
    )  # what the engine makes of ties that never turn
    for exact in (False, True):
        found = Explanation("q", RankConfig(), ranking, dict.fromkeys(ranking.order, 1), {}, 0, exact=exact)
        told = "\n".join(order_lines(found))
        assert ("repeats its own errors" in told, "rule-based" in told) == (not exact, exact)


def test_only_people_and_panels_of_them_alone_may_abstain() -> None:
    human, qrels = {"type": "human"}, {"type": "qrels"}
    assert may_abstain(human)
    assert may_abstain({"type": "panel", "judges": [human, human]})
    assert not may_abstain({"type": "panel", "judges": [human, qrels]})
    assert not may_abstain(qrels)
    assert may_abstain({"type": "one of somebody else"})


def test_simulated_noise_is_measured_and_told_everywhere(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", rank={"floor": 1})
    project.change(judge={"judge": {"type": "qrels", "path": "qrels.txt", "grade_noise": 0.2}})
    said = call("run", "--config", project.config, "--details").stdout
    records = [json.loads(line) for line in (project.run / "judge.jsonl").read_text().splitlines()]
    slipped = sum(record["grade"] != grade_of(record["qid"], record["doc_id"]) for record in records)
    assert 0 < slipped < len(records)
    noise = project.manifest()["stages"]["judge"]["health"]["noise"]
    assert (noise["count"], noise["total"]) == (slipped, len(records))
    told = f"the judge adds simulated noise (grade_noise 0.2): {slipped / len(records):.0%} of {len(records)} grades"
    page = project.folder / "report.html"
    call("report", project.run, "--out", page)
    for text in (said, call("status", project.run, "--details").stdout, page.read_text()):
        assert f"{told} differ from the labels" in " ".join(text.split())
        assert "rule-based" in text and "never errs" not in text
    call("audit", project.run)


def test_a_judge_without_noise_is_said_to_add_none(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    project.change(judge={"judge": {"type": "qrels", "path": "qrels.txt"}})
    assert "simulated noise" not in call("run", "--config", project.config).stdout
    assert project.manifest()["stages"]["judge"]["health"] is None


def test_noise_of_a_member_is_told_though_nobody_measured_it() -> None:
    assert grade_noises({"type": "panel", "judges": [NUGGETS, {"type": "qrels", "grade_noise": 0.1}]}) == [0.1]
    assert grade_noises({"type": "qrels", "grade_noise": 0.0}) == grade_noises(None) == []
