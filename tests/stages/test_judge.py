"""The judge stage: how deep it walks, what it makes of samples, what it tells of the judge."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pooled import NUGGETS, Stating, judged, pool

from raggs.base.judge_health import PairAgreement
from raggs.parts.judges import Judgment
from raggs.runs.manifests.derive import regraded
from raggs.runs.manifests.messages import health_lines
from raggs.stages.base import StageWork
from raggs.stages.judge import MAX_LOW_GRADE, STAGE, JudgeConfig, combine

Grades = Sequence[int | None]


def depth(grades: Grades, stop_after: int) -> int:
    """How many passages a walk judges, one after the other."""
    low = 0
    for place, grade in enumerate(grades):
        if grade is not None:
            low = low + 1 if grade <= MAX_LOW_GRADE else 0
        if low == stop_after:
            return place + 1
    return len(grades)


POOLS = st.lists(st.tuples(st.sampled_from([1, 1, 2, 3, 5, None]), st.integers(0, 4)), min_size=1, max_size=30)


@given(st.lists(POOLS, min_size=1, max_size=3), st.integers(1, 6))
def test_a_walk_asks_exactly_what_one_by_one_would_whatever_the_timing(
    drawn: list[list[tuple[int | None, int]]], stop_after: int
) -> None:
    pools = [
        pool(f"q{number}", ["-" if grade is None else str(grade) for grade, _ in each], [delay for _, delay in each])
        for number, each in enumerate(drawn)
    ]
    found, who, health = judged(pools, stop_after=stop_after)
    expected = [
        (f"q{number}", f"d{place}", 0)
        for number, each in enumerate(drawn)
        for place in range(depth([grade for grade, _ in each], stop_after))
    ]
    assert sorted(who.asked) == sorted(expected)
    asked = {(qid, doc_id) for qid, doc_id, _ in expected}
    for record, (grade, _) in zip(found, (pair for each in drawn for pair in each), strict=True):
        if (record.qid, record.doc_id) in asked:
            assert (record.grade, record.skipped, record.judge) == (grade, None, "listed")
            assert record.failed == (grade is None)
        else:
            assert (record.grade, record.grades, record.error, record.judge) == (None, (), None, "")
            assert record.skipped == f"not judged, after {stop_after} grades of 2 or less in a row"
            assert not record.failed
    assert health.depth.model_dump() == {
        "stop_after": stop_after,
        "asked": len(asked),
        "saved": len(found) - len(asked),
        "stopped": len({record.qid for record in found if record.skipped}),
    }


def test_by_default_all_of_a_pool_is_asked_at_once_and_no_health_is_told() -> None:
    found, who, health = judged([pool("q1", ["1"] * 40, [1] * 40)])
    assert all(record.grade == 1 for record in found)
    assert who.most == 40
    assert health is None


def test_a_walk_asks_as_many_at_once_as_must_be_asked() -> None:
    _, who, _ = judged([pool("q1", ["1"] * 40, [1] * 40)], stop_after=15)
    assert (who.most, len(who.asked)) == (15, 15)


def test_what_failed_and_heals_ends_where_an_undisturbed_walk_does() -> None:
    grades = ["1", "-", "1", "1", "5", "1", "1", "1"]
    sick, _, _ = judged([pool("q1", grades, [0] * 8)], stop_after=3)
    healed, _, _ = judged([pool("q1", ["1" if grade == "-" else grade for grade in grades], [0] * 8)], stop_after=3)
    assert [record.grade for record in sick] == [1, None, 1, 1, None, None, None, None]
    assert [record.grade for record in healed] == [1, 1, 1, None, None, None, None, None]


def test_near_duplicates_are_no_steps_and_share_what_became_of_their_representative() -> None:
    texts = ["1", "5", "1", "1"]
    found, who, _ = judged([pool("q1", texts, [0] * 4, twins=(1,))], stop_after=2)
    assert [doc_id for _, doc_id, _ in who.asked] == ["d0", "d2"]
    assert [(record.grade, record.duplicate_of) for record in found] == [(1, None), (1, "d0"), (1, None), (None, None)]
    lost = pool("q1", ["1", "1", "1"], [0] * 3)
    lost[2] = lost[2].model_copy(update={"duplicate_of": "d1"})
    skipped, _, health = judged([lost], stop_after=1)
    assert [bool(record.skipped) for record in skipped] == [False, True, True]
    assert health.depth.saved == 1


def test_an_abstention_is_neither_a_failure_nor_a_step_of_the_walk_and_has_no_grade() -> None:
    found, who, health = judged([pool("q1", ["1", "~", "1", "5", "1", "1"], [0] * 6)], stop_after=2)
    assert [record.grade for record in found] == [1, None, 1, None, None, None]
    assert (found[1].skipped, found[1].judge, found[1].error, found[1].failed) == (
        "no annotator has labelled it",
        "",
        None,
        False,
    )
    assert len(who.asked) == 3
    assert (health.depth.asked, health.depth.saved, health.depth.stopped, health.silent) == (2, 3, 1, 1)


def test_samples_in_which_the_judge_abstained_are_none() -> None:
    found, _, _ = judged([pool("q1", ["~ 4 ~", "~ - 2", "~ - -"], [0] * 3)], samples=3)
    assert [(record.grade, record.grades) for record in found] == [(4, (4,)), (2, (None, 2)), (None, (None, None))]
    assert [record.failed for record in found] == [False, False, True]


def test_who_decided_is_named() -> None:
    [merged] = pool("q1", ["?"], [0])
    asked = [Judgment(2, by="human: ada"), Judgment(4, "so", by="openai/x"), Judgment(4, by="openai/x")]
    record = combine(merged, asked, "first of human + openai/x")
    assert (record.grade, record.judge, record.reason) == (4, "openai/x", "so")
    assert combine(merged, [Judgment(3)], "nuggets").judge == "nuggets"


def test_peoples_word_counts_once_however_often_it_is_read() -> None:
    record = pool("q1", ["4"], [0])[0]
    word, other = Judgment(5, by="human: ada", votes={"human": Judgment(5)}), Judgment(3, by="model")
    alone = combine(record, [word] * 3, "first of human + model")
    assert (alone.grade, alone.grades, alone.votes, alone.judge) == (5, (5,), {"human": (5,)}, "human: ada")
    assert combine(record, [word, other, word], "x").grades == (5, 3)
    assert combine(record, [other] * 3, "x").grades == (3, 3, 3)


def test_samples_count_in_what_a_walk_saved() -> None:
    _, who, health = judged([pool("q1", ["1"] * 10, [0] * 10)], stop_after=4, samples=3)
    assert len(who.asked) == 12
    assert (health.depth.asked, health.depth.saved) == (12, 18)


def test_self_consistency_is_told() -> None:
    found, _, health = judged([pool("q1", ["3 3 3", "2 4 4", "1 - 1", "- - 5"], [0] * 4)], samples=3)
    assert [record.grade for record in found] == [3, 4, 1, None]
    assert [record.grades for record in found] == [(3, 3, 3), (2, 4, 4), (1, None, 1), (None, None, 5)]
    told = health.samples
    # Of the three passages with two grades or more, two are unanimous; of their 3 + 3 + 1 pairs, 3 + 1 + 1 are equal.
    assert (told.asked, told.passages) == (3, 3)
    assert told.unanimous == pytest.approx(2 / 3, abs=1e-4)
    assert told.exact == pytest.approx(5 / 7, abs=1e-4)
    # Squared disagreement 16 over 14 ordered pairs; by chance, grades 1 2 3 4 come 2 2 6 4 times of 14 on either side.
    by_chance = 2 * (2 * 2 * 1 + 2 * 6 * 4 + 2 * 4 * 9 + 2 * 6 * 1 + 2 * 4 * 4 + 6 * 4 * 1) / 14
    assert told.kappa == pytest.approx(1 - 16 / by_chance, abs=1e-4)


def panel(first: int | None, second: int | None) -> Judgment:
    votes = {
        name: Judgment(grade, error=None if grade else f"{name} is busy")
        for name, grade in (("a", first), ("b", second))
    }
    given_ = [grade for grade in (first, second) if grade is not None]
    return Judgment(min(given_, default=None), error=None if given_ else "a; b", votes=votes)


def test_votes_are_kept_by_member_and_their_agreement_is_told() -> None:
    [merged] = pool("q1", ["?"], [0])
    statistics = STAGE.statistics(JudgeConfig(judge=NUGGETS, samples=2))
    record = combine(merged, [panel(2, 4), panel(3, None)], "panel a + b")
    assert (record.grade, record.grades) == (2, (2, 3))
    assert record.votes == {"a": (2, 3), "b": (4, None)}
    assert (record.error, record.failed) == ("b is busy", False)
    statistics.see(record)
    statistics.see(combine(merged, [panel(5, 5), panel(5, 5)], "panel a + b"))
    told = statistics.health().panel
    assert {name: member.model_dump() for name, member in told.members.items()} == {
        "a": {"mean": 3.75, "given": 4, "missing": 0},
        "b": {"mean": pytest.approx(14 / 3, abs=1e-4), "given": 3, "missing": 1},
    }
    # Squared disagreement 4 / 3; by chance, 2 5 5 against 4 5 5: (4 + 2 * 9 + 2 * 1) / 9 = 24 / 9.
    assert told.agreement == (PairAgreement(judges=("a", "b"), pairs=3, exact=0.6667, kappa=0.5),)
    assert told.warnings == ("b gave no grade in 1 of 4 cases",)


def test_what_two_members_never_disagree_on_is_no_kappa() -> None:
    [merged] = pool("q1", ["?"], [0])
    statistics = STAGE.statistics(JudgeConfig(judge=NUGGETS))
    statistics.see(combine(merged, [panel(3, 3)], "panel a + b"))
    assert statistics.health().panel.agreement == (PairAgreement(judges=("a", "b"), pairs=1, exact=1.0, kappa=None),)


def test_a_near_duplicate_that_the_judge_tells_apart_has_a_grade_of_its_own() -> None:
    found, _, _ = judged([pool("q1", ["5", "5", "2 apart"], [0, 0, 0], twins=[1, 2])])
    assert [(record.grade, record.duplicate_of) for record in found] == [(5, None), (5, "d0"), (2, None)]


ANSWERS = st.sampled_from(["-", "3", *(f"{grade}:{share}" for grade in (1, 3, 5) for share in (0.55, 0.7, 0.9, 0.95))])
SEVERAL = st.lists(st.lists(ANSWERS, min_size=3, max_size=3).map(" ".join), min_size=1, max_size=8)


@given(SEVERAL, st.sampled_from([0.5, 0.7, 0.9, 1.0]), st.integers(2, 3), st.sampled_from([None, 2]))
def test_only_uncertain_grades_get_further_samples_and_the_audit_derives_the_same(
    texts: list[str], limit: float, samples: int, stop_after: int | None
) -> None:
    merged = pool("q1", texts, [0] * len(texts))
    setting = {"samples": samples, "samples_if_below": limit, "stop_after": stop_after}
    found, who, health = judged([merged], Stating(), **setting)
    for record, text in zip(found, texts, strict=True):
        if record.skipped:
            continue
        first, _, share = text.split()[0].partition(":")
        wanted = 1 if share and float(share) >= limit else samples
        assert [sample for _, doc_id, sample in who.asked if doc_id == record.doc_id] == list(range(wanted))
        assert record.grades[0] == (None if first == "-" else int(first))
        stated = [":" in each for each in text.split()[:wanted]]
        kept = [each is not None for each in record.sample_distributions]
        assert kept == (stated if wanted > 1 and any(stated) else [])
    judging = [record for record in found if not record.skipped]
    assert health.samples.judged == len(judging)
    assert health.samples.passages == sum(sum(grade is not None for grade in each.grades) > 1 for each in judging)
    work = StageWork({"merge": lambda: iter(merged), "judge": lambda: iter(found)})
    config = JudgeConfig(judge=NUGGETS, **setting)
    assert list(regraded(work, config)) == found
    for place, record in enumerate(found):  # a further sample that was dropped is found
        if len(record.grades) > 1 and record.sample_distributions and record.grade is not None:
            changes = {"grades": record.grades[:1], "sample_distributions": (), "grade": record.grades[0]}
            changes |= {"distribution": record.sample_distributions[0]}
            forged = [*found[:place], record.model_copy(update=changes), *found[place + 1 :]]
            work = StageWork({"merge": lambda: iter(merged), "judge": lambda forged=forged: iter(forged)})
            assert list(regraded(work, config)) != forged


def test_the_health_says_which_passages_have_several_grades() -> None:
    merged = pool("q1", ["1:0.95 1:0.9", "3:0.6 3:0.7", "4:0.6 5:0.7", "1:0.99 1:0.9"], [0] * 4)
    found, _, health = judged([merged], Stating(), samples=2, samples_if_below=0.9, stop_after=3)
    assert [record.grades for record in found] == [(1,), (3, 3), (4, 5), (1,)]
    assert (health.depth.asked, health.depth.saved) == (4, 0)
    lines = [line.text for line in health_lines(health)]
    assert any(line.startswith("samples: 2 for 2 of 4 passages, the uncertain ones, 50% unanimous") for line in lines)


def test_without_the_setting_samples_leave_no_further_field() -> None:
    found, who, health = judged([pool("q1", ["1:0.95 1:0.9"], [0])], Stating(), samples=2)
    assert (len(who.asked), found[0].sample_distributions, health.samples.judged) == (2, (), None)
    assert not {"sample_distributions", "judged"} & {*found[0].model_dump(), *health.samples.model_dump()}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"samples": 1}, "there is only one"), ({"samples": 2, "group": 4}, "groups have none"), ({"samples": 2}, "")],
)
def test_the_setting_needs_samples_and_single_passages(settings: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem) if problem else nullcontext():
        JudgeConfig.model_validate({"judge": NUGGETS, "samples_if_below": 0.9, **settings})
