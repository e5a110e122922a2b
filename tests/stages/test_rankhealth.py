"""The judge's health: rates counted by hand, and the judges that deserve a warning."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.base.artifacts import JournalRecord, RankingRecord
from raggs.base.judge_health import COUNT_NEAR_TIES, COUNT_NOT_RANKED, COUNT_SETTLED, STOP_NO_RELEVANT, RankHealth
from raggs.stages.rank_health import RankStatistics

ABC = ("a", "b", "c")
ESTIMATES = ("sharpness", "echo", "position_bias", "expected_inversions")


def health(*queries) -> RankHealth:
    """Of queries, each a list of batches or what an engine found out."""
    statistics = RankStatistics()
    for number, query in enumerate(queries):
        if isinstance(query, dict):
            told = {"expected_inversions": 0.0, **query}
            statistics.see(RankingRecord(qid=f"q{number}", calls=1, skipped=0, stop_reason="cap", **told))
            continue
        for slot, (shown, order) in enumerate(query):
            statistics.see(
                JournalRecord(qid=f"q{number}", state="s", engine="e", round=0, slot=slot, shown=shown, order=order)
            )
    return statistics.health()


def test_rates_by_hand() -> None:
    found = health([(ABC, ABC), (ABC, ("b", "a", "c")), (ABC, None)], [(("a", "b"), ("b", "a"))])
    assert (found.first.count, found.first.total, found.first.rate) == (1, 3, 0.3333)
    assert found.first.interval == (0.0615, 0.7923)
    assert found.fair_first == pytest.approx((1 / 3 + 1 / 3 + 1 / 2) / 3, abs=1e-4)
    assert (found.invalid.count, found.invalid.total) == (1, 4)
    # One batch was shown twice, with an answer each time: of its three pairs only a and b changed places.
    assert (found.flips.count, found.flips.total) == (1, 3)
    # a and b have no majority, so no triple can be judged.
    assert found.cycles.total == 0


def test_circles_are_counted_once() -> None:
    round_trip = [(("a", "b"), ("a", "b")), (("b", "c"), ("b", "c")), (("c", "a"), ("c", "a"))]
    straight = [(("a", "b"), ("a", "b")), (("b", "c"), ("b", "c")), (("a", "c"), ("a", "c"))]
    found = health(round_trip, straight)
    assert (found.cycles.count, found.cycles.total) == (1, 2)


def test_nothing_judged_is_no_rate_and_no_warning() -> None:
    found = health()
    assert (found.first.rate, found.first.interval, found.fair_first) == (None, (0.0, 1.0), None)
    assert found.warnings == ()
    assert RankHealth.model_validate_json(found.model_dump_json()) == found


def batches(answer, count: int = 200):
    draw = np.random.default_rng(3)
    sets = [tuple(draw.permutation([f"p{number}" for number in range(12)])[:5]) for _ in range(count // 2)]
    shown = [tuple(draw.permutation(batch).tolist()) for batch in (*sets, *sets)]
    return [(batch, answer(batch, draw)) for batch in shown]


def guess(shown, draw):
    return tuple(draw.permutation(shown).tolist())


def test_a_steady_judge_gets_no_warning() -> None:
    assert health(batches(lambda shown, _: tuple(sorted(shown)))).warnings == ()


def test_a_judge_that_answers_in_the_order_shown_is_found_out() -> None:
    warnings = health(batches(lambda shown, _: shown)).warnings
    assert any("shown first wins 100%" in warning for warning in warnings)
    assert any("change order" in warning for warning in warnings)


def test_a_judge_that_guesses_is_found_out() -> None:
    assert any("change order" in warning for warning in health(batches(guess, 800)).warnings)


def test_a_judge_that_often_fails_is_found_out() -> None:
    warnings = health(batches(lambda shown, draw: None if draw.random() < 0.2 else tuple(sorted(shown)))).warnings
    assert any("have no order" in warning for warning in warnings)


def test_what_the_engine_found_out_is_averaged_over_the_queries_that_tell() -> None:
    told = dict.fromkeys(ESTIMATES, 2.0), dict.fromkeys(ESTIMATES, 4.0)
    silent = {"expected_inversions": 3.0, "echo": 0.1}
    found = health(*[{**query, "echo": 0.1} for query in told], silent)
    assert (found.sharpness, found.position_bias, found.expected_inversions, found.echo) == (3.0, 3.0, 3.0, 0.1)
    assert found.warnings == ()
    assert health().sharpness is None


def test_a_judge_that_repeats_its_errors_is_found_out() -> None:
    assert any(
        "repeats its own errors (test-retest error correlation 0.70)" in warning
        for warning in health({"echo": 0.7}).warnings
    )


@pytest.mark.parametrize(("sharpness", "warned"), [(3.0, False), (1.2, True)])
def test_pairs_that_flip_are_ties_where_the_judge_is_sharp(sharpness: float, warned: bool) -> None:
    found = health(batches(guess, 800), {"sharpness": sharpness})
    assert any("change order" in warning for warning in found.warnings) == warned


@pytest.mark.parametrize(("sharpness", "warned"), [(0.9, True), (1.1, False)])
def test_a_blunt_judge_is_found_out(sharpness: float, warned: bool) -> None:
    warnings = health({"sharpness": sharpness}).warnings
    assert any("the judge is imprecise" in warning for warning in warnings) == warned


def test_how_many_tops_are_settled_and_why_others_are_not() -> None:
    statistics, plain = RankStatistics(), RankStatistics()
    ended = "a further call saves little"
    told = ((ended, 0.97), (ended, 0.95), (ended, 0.7), ("cap", 0.99), ("cap", 0.5), (STOP_NO_RELEVANT, 1.0))
    for number, (reason, agreement) in enumerate(told):
        found = {"qid": f"q{number}", "calls": 4, "skipped": 0, "stop_reason": reason, "expected_inversions": 1.0}
        statistics.see(RankingRecord(**found, agreement=agreement))
        plain.see(RankingRecord(**found))
    assert statistics.counts() == {COUNT_SETTLED: 2, COUNT_NEAR_TIES: 1, "cap": 2, COUNT_NOT_RANKED: 1}
    assert plain.counts() == {COUNT_NOT_RANKED: 1}, "an engine that knows no agreement settles nothing"
