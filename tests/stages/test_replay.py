"""A ranking followed round by round, by whoever has the answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.worlds import make_world

from raggs.base.artifacts import JournalRecord, PruneRecord
from raggs.base.jsonl import dump_line
from raggs.base.judge_health import STOP_BUDGET
from raggs.stages.rank_config import RankConfig
from raggs.stages.rank_health import rank_records
from raggs.stages.replay import Batch, JournalAnswers, KeptPool, Replay, kept_pool, replay

WORLD = make_world(5, 12)
POOL = KeptPool("q1", tuple(WORLD.ids), tuple(int(grade) for grade in WORLD.grades.values()), {WORLD.ids[0]: ("twin",)})
CONFIG = RankConfig(max_calls=10, top=5, parallel=3, options={"saving": 0})  # makes every call


def entry(batch: Batch, order: tuple[str, ...] | None) -> JournalRecord:
    return JournalRecord(qid="q1", state="s", engine="e", **batch._asdict(), order=order)


@pytest.fixture
def played() -> tuple[list[JournalRecord], object]:
    """All answers of a ranking of which the second round failed, and where it leads."""
    course, judge, entries = CONFIG.course(POOL), WORLD.judge(3.0), []
    while batches := course.next_round():
        answers = [entry(batch, tuple(judge(batch.shown))) for batch in batches]
        answers = [each.model_copy(update={"order": None}) if len(entries) == 3 else each for each in answers]
        course.learn(answers)
        entries += answers
    return entries, course.ranking()


def test_a_replay_leads_where_the_ranking_led_whatever_order_the_answers_came_in(played):
    entries, ranking = played
    assert len(entries) == 10
    assert ranking.skipped == 3
    found = replay(CONFIG.course(POOL), JournalAnswers(reversed(entries)))
    assert (found.ranking, found.problem) == (ranking, None)


def test_what_a_journal_lacks_or_has_too_much_is_named(played):
    entries, ranking = played
    lacking = replay(CONFIG.course(POOL), JournalAnswers(entries[:4] + entries[5:]))
    assert (lacking.ranking, lacking.problem) == (None, "round 1, slot 1 is missing")
    other = entries[4].model_copy(update={"shown": entries[4].shown[::-1]})
    shuffled = replay(CONFIG.course(POOL), JournalAnswers([*entries[:4], other, *entries[5:]]))
    assert shuffled.problem == "round 1, slot 1 shows other passages than the ranker requested"
    extra = replay(CONFIG.course(POOL), JournalAnswers([*entries, entry(Batch(99, 0, ("a", "b")), None)]))
    assert (extra.ranking, extra.problem) == (ranking, "1 entries after the end")


def test_an_empty_pool_has_no_ranking_and_no_entries(played):
    empty = replace(POOL, ids=(), grades=())
    assert CONFIG.course(empty) is None
    assert replay(None, JournalAnswers([])).problem is None
    assert replay(None, JournalAnswers(played[0])).problem == "10 entries for an empty pool"
    assert list(rank_records(empty, None)) == []


def test_near_duplicates_follow_their_representative(played):
    about, *records = rank_records(POOL, played[1])
    assert (about.qid, about.calls, about.skipped) == ("q1", 7, 3)
    assert [record.rank for record in records] == list(range(1, 14))
    at = next(number for number, record in enumerate(records) if record.doc_id == "twin")
    assert records[at].duplicate_of == records[at - 1].doc_id == WORLD.ids[0]
    assert records[at].score == records[at - 1].score


def test_what_pruning_kept_is_ranked():
    def pruned(rank: int, doc_id: str, grade: int | None, kept: bool = True, twin_of: str | None = None) -> PruneRecord:
        return PruneRecord(qid="q", rank=rank, doc_id=doc_id, grade=grade, kept=kept, why="", duplicate_of=twin_of)

    pool = kept_pool(
        "q", [pruned(1, "a", 4), pruned(2, "b", 2, kept=False), pruned(3, "c", 4, twin_of="a"), pruned(4, "d", 3)]
    )
    assert (pool.ids, pool.grades, pool.followers) == (("a", "d"), (4, 3), {"a": ("c",)})


def told(slot: int, *groups: tuple[str, ...]) -> JournalRecord:
    shown = tuple(doc_id for group in groups for doc_id in group)
    said = {"groups": groups, "sharpness": 4.5, "by": "human: ada"}
    return JournalRecord(qid="q1", state="s", engine="e", round=0, slot=slot, shown=shown, order=None, **said)


def test_orders_from_before_are_a_round_of_their_own_which_the_journal_gives_back():
    first, second, third = WORLD.ids[:3]
    known = [told(0, (first,), (second, third)), told(1, (third,), (second,))]
    course, judge, entries = CONFIG.course(POOL), WORLD.judge(3.0), list(known)
    course.inform(known)
    while batches := course.next_round():
        answers = [entry(batch, tuple(judge(batch.shown))) for batch in batches]
        course.learn(answers)
        entries += answers
    assert {each.round for each in entries if not each.groups} == set(range(1, 1 + max(each.round for each in entries)))
    found = replay(CONFIG.course(POOL), JournalAnswers(reversed(entries)))
    assert (found.ranking, found.problem) == (course.ranking(), None)
    assert found.ranking.calls == len(entries) - 2
    strange = replay(CONFIG.course(POOL), JournalAnswers([told(0, ("nobody",), (first,)), *entries[2:]]))
    assert strange.problem == "round 0 contains an invalid order: not in the pool: nobody"


def test_where_nobody_speaks_on_a_whole_round_the_ranking_ends_by_grade_and_fused_rank():
    course, entries = CONFIG.course(POOL), []
    while batches := course.next_round():
        answers = [entry(batch, None).model_copy(update={"silent": "nobody"}) for batch in batches]
        course.learn(answers)
        entries += answers
    ranking = course.ranking()
    assert (len(entries), ranking.calls, ranking.skipped, ranking.stop_reason) == (3, 0, 0, "nobody ordered them")
    fused = {doc_id: place for place, doc_id in enumerate(POOL.ids)}
    assert list(ranking.order) == sorted(POOL.ids, key=lambda each: (-WORLD.grades[each], fused[each]))
    assert not any(each.failed for each in entries)
    assert replay(CONFIG.course(POOL), JournalAnswers(entries)) == Replay(ranking)


def test_a_round_in_which_one_spoke_is_followed_by_another():
    course, judge = CONFIG.course(POOL), WORLD.judge(3.0)
    batches = course.next_round()
    first = entry(batches[0], tuple(judge(batches[0].shown)))
    course.learn([first, *(entry(each, None).model_copy(update={"silent": "nobody"}) for each in batches[1:])])
    assert course.next_round()
    assert (course.ranking().calls, course.ranking().skipped) == (1, 0)


def test_lines_of_journals_from_before_keep_their_bytes():
    line = (
        b'{"v":1,"qid":"q1","state":"s","engine":"bayes/5","round":0,"slot":1,"shown":["a","b"],"order":["b","a"],'
        b'"error":null}\n'
    )
    record = JournalRecord.model_validate_json(line)
    assert dump_line(record) == line
    assert b"groups" in dump_line(told(0, ("a",), ("b",)))


def test_a_round_of_which_not_all_is_paid_for_ends_the_ranking_with_what_there_is(played):
    entries, _ = played
    course = CONFIG.course(POOL)
    course.next_round()
    course.learn(entries[:3])
    batches = course.next_round()
    answered = entry(batches[1], batches[1].shown[::-1])
    course.cut(batches, [answered, entries[5]])  # the third failed
    found = course.ranking()
    assert (found.calls, found.skipped, found.stop_reason, course.asked) == (4, 1, STOP_BUDGET, 5)
    assert not course.next_round()
    there = JournalAnswers([*entries[:3], answered, entries[5]])
    assert replay(CONFIG.course(POOL), there, spent=True) == Replay(found)
    nothing = replay(CONFIG.course(POOL), JournalAnswers([]), spent=True).ranking
    assert nothing is not None and nothing.calls == 0
    assert nothing.order == CONFIG.course(POOL).ids, "by grade and fused rank"
