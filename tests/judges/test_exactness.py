"""A judge that answers by rule has no errors to be warned of."""

from __future__ import annotations

import pytest

from raggs.artifacts import JournalRecord, RankingRecord
from raggs.judges.exactness import is_exact, may_abstain
from raggs.manifests.words import health_lines
from raggs.stages.rankhealth import RankStatistics

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
    assert any("echo" in warning for warning in suspect.warnings) and exact.warnings == ()
    assert suspect.model_copy(update={"warnings": ()}) == exact
    told = [line.text for line in health_lines(exact, exact=True)]
    assert len(told) == 1 and "answers by rule" in told[0]
    assert not any(word in told[0] for word in ("echo", "wrongly", "warning"))


def test_only_people_and_panels_of_them_alone_may_abstain() -> None:
    human, qrels = {"type": "human"}, {"type": "qrels"}
    assert may_abstain(human)
    assert may_abstain({"type": "panel", "judges": [human, human]})
    assert not may_abstain({"type": "panel", "judges": [human, qrels]})
    assert not may_abstain(qrels)
    assert may_abstain({"type": "one of somebody else"})
