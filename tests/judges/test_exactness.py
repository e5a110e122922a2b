"""A judge that answers by rule has no errors to be warned of."""

from __future__ import annotations

import pytest

from raggs.artifacts import JournalRecord, RankingRecord
from raggs.health import ECHO
from raggs.judges.exactness import is_exact, may_abstain
from raggs.manifests.explain import Explanation
from raggs.manifests.orderwords import order_lines
from raggs.manifests.words import health_lines
from raggs.ranking import Ranking, make_ranker
from raggs.stages.rankconfig import RankConfig
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


def ordered_ties() -> Ranking:
    """Thirty passages of grade 1 that a judge by rule, asked for them, has in one fixed order."""
    ids = [f"d{number:02}" for number in range(30)]
    ranker = make_ranker("bayes", ids, [1] * len(ids), max_calls=40)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            ranker.observe(sorted(batch))
    return ranker.ranking()


def test_an_order_of_ties_is_told_without_a_word_of_echo() -> None:
    ranking = ordered_ties()
    assert ranking.echo is not None and ranking.echo > ECHO  # what the engine makes of ties that never turn
    for exact in (False, True):
        found = Explanation("q", RankConfig(), ranking, dict.fromkeys(ranking.order, 1), {}, 0, exact=exact)
        told = "\n".join(order_lines(found))
        assert ("repeats its own errors" in told, "answers by rule" in told) == (not exact, exact)


def test_only_people_and_panels_of_them_alone_may_abstain() -> None:
    human, qrels = {"type": "human"}, {"type": "qrels"}
    assert may_abstain(human)
    assert may_abstain({"type": "panel", "judges": [human, human]})
    assert not may_abstain({"type": "panel", "judges": [human, qrels]})
    assert not may_abstain(qrels)
    assert may_abstain({"type": "one of somebody else"})
