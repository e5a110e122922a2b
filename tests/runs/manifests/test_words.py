"""What people read of the judge's health and of a query's order."""

from __future__ import annotations

import json

from raggs.base.artifacts import JournalRecord, RankingRecord
from raggs.base.judge_health import STOP_BUDGET, STOP_NO_ORDER, STOP_SHARED_BUDGET, RankHealth
from raggs.runs.manifests.messages import SummaryLine, health_lines, share_words
from raggs.runs.manifests.rank_messages import STOPS
from raggs.stages.rank_health import RankStatistics
from raggs.stages.replay import TOO_FEW

BATCHES = ((("a", "b", "c"), ("a", "c", "b")), (("c", "b", "a"), ("b", "a", "c")), (("a", "b", "c"), None))


def found(sharpness: float | None, echo: float | None, bias: float | None = None) -> RankHealth:
    statistics = RankStatistics()
    estimates = {"sharpness": sharpness, "echo": echo, "position_bias": bias, "expected_inversions": 4.25}
    statistics.see(RankingRecord(qid="q", calls=2, skipped=1, stop_reason="cap", **estimates))
    for slot, (shown, order) in enumerate(BATCHES):
        statistics.see(JournalRecord(qid="q", state="s", engine="e", round=0, slot=slot, shown=shown, order=order))
    return statistics.health()


def told(sharpness: float | None, echo: float | None, bias: float | None = None) -> list[SummaryLine]:
    return list(health_lines(found(sharpness, echo, bias)))


def test_each_number_says_what_it_means() -> None:
    lines = [line.text for line in told(3.0, 0.1)]
    assert lines[0] == (
        "judge: the passage shown first wins 50% of the batches (33% without bias), "
        "67% of 3 close pairs flip when judged again (50% for random answers), "
        "1 of 3 batches without a valid order"
    )
    assert lines[1] == (
        "judge: sharpness 3.0 (prefers the better of two passages one grade apart in 95% of cases), "
        "test-retest error correlation 0.10 (errors hardly repeat)"
    )
    assert lines[2] == "4.2 discordant pairs expected in the top of a query (mean over queries)"


def test_an_engine_without_estimates_and_an_older_run_tell_what_they_have() -> None:
    assert [line.partition(":")[0] for line, warning in told(None, None) if not warning][:1] == ["judge"]
    assert list(health_lines(RankStatistics().health())) == list(health_lines(None)) == []
    older = json.loads(found(2.0, 0.1).model_dump_json())
    del older["sharpness"], older["echo"], older["position_bias"]
    assert [line.text.partition(":")[0] for line in health_lines(RankHealth(**older)) if not line.warning] == [
        "judge",
        "4.2 discordant pairs expected in the top of a query (mean over queries)",
    ]


def test_a_blunt_judge_that_repeats_its_errors_is_warned_about() -> None:
    warnings = [line for line, warning in told(0.8, 0.5) if warning]
    assert any("the judge is imprecise (sharpness 0.8)" in line and "69% of the time" in line for line in warnings)
    assert any("error correlation 0.50" in line for line in warnings)


def test_a_bias_that_was_taken_out_is_told_where_it_is_worth_a_word() -> None:
    assert (
        "position bias: the passage shown first gains 1.2 grades (corrected in the order)"
        in told(3.0, 0.0, 1.2)[1].text
    )
    assert (
        "position bias: the passage shown last gains 0.5 grades (corrected in the order)"
        in told(3.0, 0.0, -0.5)[1].text
    )
    assert "grades" not in told(3.0, 0.0, 0.04)[1].text


def test_a_question_is_told_its_part_of_the_whole_and_why_others_got_more() -> None:
    shares = (4, 6, 6, 9)
    assert next(share_words(6, shares)) == (
        "4 queries share 25 calls; this query got 6, the mean is 6.2: 1 got fewer, 1 got more"
    )
    why = [list(share_words(mine, shares))[1].rpartition(": ")[2] for mine in (4, 9)]
    assert [line.split(" had ")[0] for line in why] == ["queries with more calls", "this query"]
    assert list(share_words(6, (6, 6)))[1] == "each call goes to the query whose order it is expected to improve most"


def test_every_end_that_the_stage_gives_a_ranking_has_a_sentence() -> None:
    assert {STOP_NO_ORDER, STOP_SHARED_BUDGET, STOP_BUDGET, TOO_FEW} <= STOPS.keys()
