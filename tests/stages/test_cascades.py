"""What records tell of a cascade's cheap judge: confusion by grade, what it misses, and when to warn."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from raggs.base.artifacts import JudgeRecord
from raggs.base.judge_health import CascadeHealth
from raggs.parts.judges.composite import CascadeConfig
from raggs.runs.manifests.messages import cascade_words
from raggs.stages.judge_health import CascadeStatistics
from raggs.stats.agreement import wilson

JUDGES = [{"type": "nuggets"}, {"type": "reference"}]


def found(
    *seen: tuple[Sequence[int | None], int | None, int], samples: int = 1, ask_from: int | None = 3
) -> CascadeHealth:
    """Cheap grades, the good one's (0: it failed, None: not asked), and how many passages there are of them."""
    statistics = CascadeStatistics(CascadeConfig(judges=JUDGES, samples=samples, ask_from=ask_from))
    for cheap, good, count in seen:
        votes = {f"small {number}": (grade,) for number, grade in enumerate(cheap)}
        votes |= {} if good is None else {"big": (good or None,)}
        record = JudgeRecord(
            qid="q", rank=1, doc_id="d", grade=None, grades=(cheap[0] if good is None else good or None,), judge="x",
            votes=votes,
        )  # fmt: skip
        for _ in range(count):
            statistics.see(record)
    health = statistics.health()
    assert health is not None
    return health


def test_agreement_by_grade_weighs_those_asked_at_random_for_all_that_were_not_asked() -> None:
    health = found(([4], 4, 6), ([4], 2, 2), ([1], None, 90), ([1], 1, 9), ([1], 2, 1))
    assert (health.asked.count, health.asked.total, health.by_rule, health.by_chance) == (18, 108, 8, 10)
    assert (health.overruled.count, health.overruled.total) == (3, 18)
    four, one = health.grades["4"], health.grades["1"]
    assert (four.given, four.by_rule, four.agree, four.interval) == (8, (0, 2, 0, 6, 0), 0.75, (0.75, 0.75))
    assert (one.given, one.by_chance, one.agree) == (100, (9, 1, 0, 0, 0), 0.9)
    assert one.interval[0] < 0.9 < one.interval[1]


def test_cheap_grades_that_differ_are_known_to_the_last_and_the_rest_by_the_draw() -> None:
    health = found(([2, 3], 2, 30), ([2, 2], 2, 10), ([2, 2], None, 60), samples=2)
    two = health.grades["2"]
    assert (two.given, two.agree) == (100, 1.0)
    assert two.interval[0] == pytest.approx(0.3 + 0.7 * wilson(10, 10)[0], abs=1e-3)


def test_failures_are_no_grades_and_no_agreement() -> None:
    health = found(([4], 0, 2), ([1], 0, 3), ([None], 5, 4), ([1], None, 5))
    assert (health.lost, health.asked.count, health.asked.total) == (9, 0, 5)
    assert health.grades["1"].agree is None
    assert any("is unknown" in text for text, _ in cascade_words(health))


def test_it_warns_where_the_cheap_judge_keeps_what_the_good_one_would_have_wanted() -> None:
    missing = found(([4], 4, 100), ([2], 3, 12), ([2], 2, 48), ([2], None, 900))
    assert (missing.missed.count, missing.missed.total, missing.unseen.share) == (12, 60, round(180 / 292, 4))
    low, high = (900 * bound / (900 * bound + 112) for bound in missing.missed.interval)
    assert missing.unseen.interval == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))
    assert [warning.split(" of the passages")[0] for warning in missing.warnings] == [
        f"the good judge never saw {low:.0%} to {high:.0%}"
    ]
    far = found(([4], 4, 5000), ([1], 3, 12), ([1], 1, 48), ([1], None, 900))
    assert far.warnings == ("the grades of both judges differ by 2 or more on 20% of the passages sent at random",)
    assert found(([4], 4, 50), ([2], 1, 30), ([2], 2, 30), ([1], None, 900)).warnings == (), "1 and 2 are near"
    assert found(([4], 4, 50), ([2], 4, 1), ([2], 2, 10), ([2], None, 90)).warnings == (), "too few to say so"
    assert found(([5], 1, 50)).warnings == (), "where the good judge decides anyway, nothing is lost"


def test_lines_say_how_many_why_and_how_far_both_agree() -> None:
    told = [text for text, _ in cascade_words(found(([4], 4, 6), ([4], 2, 2), ([1], None, 90), ([1], 1, 10)))]
    assert told[0] == (
        "cascade: the good judge graded 18 of 108 passages (17%: 8 because of their cheap grade, 10 at random)"
    )
    assert told[1] == "cascade: the good judge changed 2 of 18 cheap grades (11%)"
    assert told[2].startswith("cascade: agreement by cheap grade: 100% of the 1s (72% to 100%), 75% of the 4s")
    assert told[3] == (
        "cascade: of 10 sent at random, 0 have grade 3 or higher. "
        "Of all such passages, 0% [0%, 81%] were not sent to the good judge"
    )
