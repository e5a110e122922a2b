"""What each reviewer is asked, and what becomes of their words."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from support.reviewpage import make_pool

from raggs.base.errors import NotFoundError, ProviderError, UsageError
from raggs.parts.reviews import GradeReview, PlanItem, ReviewStore, fold_reviews
from raggs.reviewing.pool import terms_of
from raggs.reviewing.session import ITEMS_AHEAD, MINUTES, LeaseHolder, Session, SessionSettings

ADA, ADA2, BO = LeaseHolder("ada", "t1"), LeaseHolder("ada", "t2"), LeaseHolder("bo", "t1")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def session(folder: Path, questions: int = 3, passages: int = 4, **settings: float | str) -> Session:
    chosen = SessionSettings(**{"overlap": 0.0, "repeats": 0.0, **settings})  # type: ignore[arg-type]
    return Session(make_pool(folder, questions, passages), ReviewStore(folder / "reviews"), chosen)


def again(old: Session, **settings: float) -> Session:
    """The same after a restart of the server."""
    return Session(old.pool, ReviewStore(old.store.folder), old.settings)


def work(at: Session, holder: LeaseHolder, most: int = 10_000) -> list[str]:
    """Grade until there is nothing left; the items in their order."""
    found: list[str] = []
    while len(found) < most and (ahead := at.upcoming(holder).ahead):
        found.append(ahead[0].item)
        at.grade(holder, ahead[0].item, len(found) % 5 + 1, "", len(found) / 1000)
    return found


def test_everything_is_asked_once_question_by_question_in_an_order_of_ones_own(tmp_path: Path) -> None:
    asked = work(session(tmp_path / "one"), ADA)
    assert len(asked) == len(set(asked)) == 12
    questions = [item[:32] for item in asked]
    assert sum(here != there for here, there in pairwise(questions)) == 2
    assert asked != work(session(tmp_path / "two"), BO)
    assert asked == work(session(tmp_path / "three"), ADA), "by the seed alone"


def test_by_passage_all_questions_are_mixed_by_the_seed(tmp_path: Path) -> None:
    asked = work(session(tmp_path / "one", 5, 8, by="passage"), ADA)
    questions = [item[:32] for item in asked]
    assert len(set(asked)) == 40
    assert sum(here != there for here, there in pairwise(questions)) > 20
    assert asked == work(session(tmp_path / "two", 5, 8, by="passage"), ADA)
    assert asked != work(session(tmp_path / "three", 5, 8, by="passage"), BO)


def test_what_is_shown_is_blind(tmp_path: Path) -> None:
    said = session(tmp_path).upcoming(ADA).model_dump_json()
    for telling in ("secretsystem", "7.25", "rank", "grade", "d0-", "score"):
        assert telling not in said


def test_a_word_is_on_the_disk_when_it_is_acknowledged(tmp_path: Path) -> None:
    at = session(tmp_path)
    shown = at.upcoming(ADA).ahead
    assert len(shown) == ITEMS_AHEAD
    receipt = at.grade(ADA, shown[0].item, None, "both ways", 4.5)
    (line,) = ReviewStore(tmp_path / "reviews").read()
    assert isinstance(line, GradeReview)
    assert (line.who, line.grade, line.note, line.seconds, line.blind) == ("ada", None, "both ways", 4.5, True)
    assert (line.query + line.passage, line.id) == (shown[0].item, receipt.line)
    assert line.span is not None
    assert receipt.progress.model_dump() == {"done": 1, "left": 11, "pace": 4.5}
    assert receipt.ahead[0] == shown[1]


def test_a_word_that_is_sent_twice_is_noted_once_even_over_a_restart(tmp_path: Path) -> None:
    at = session(tmp_path)
    item = at.upcoming(ADA).ahead[0].item
    first = at.grade(ADA, item, 4, "", 1.5)
    assert at.grade(ADA, item, 4, "", 1.5).line == first.line
    assert again(at).grade(ADA, item, 4, "", 1.5).line == first.line
    assert len(ReviewStore(tmp_path / "reviews").read()) == 1


def test_undo_brings_the_item_back_and_may_be_sent_twice(tmp_path: Path) -> None:
    at = session(tmp_path)
    first, second = (view.item for view in at.upcoming(ADA).ahead[:2])
    line = at.grade(ADA, first, 4, "", 1.0).line
    at.grade(ADA, second, 2, "", 1.0)
    back = at.undo(ADA, None)
    assert (back.ahead[0].item, back.progress.done) == (second, 1)
    for _ in range(2):
        back = at.undo(ADA, line)
        assert (back.ahead[0].item, back.progress.done, back.last) == (first, 0, None)
    assert not fold_reviews(ReviewStore(tmp_path / "reviews").read()).items()
    assert len(ReviewStore(tmp_path / "reviews").read()) == 4
    with pytest.raises(UsageError, match="no label to undo"):
        at.undo(BO, line)
    with pytest.raises(UsageError, match="no label to undo"):
        at.undo(ADA, None)


def test_undo_knows_what_was_said_before_a_restart(tmp_path: Path) -> None:
    at = session(tmp_path)
    done = work(at, ADA, 3)
    assert again(at).undo(ADA, None).ahead[0].item == done[-1]


def test_what_is_skipped_comes_last(tmp_path: Path) -> None:
    at = session(tmp_path)
    first = at.upcoming(ADA).ahead[0].item
    assert at.skip(ADA, first).ahead[0].item != first
    assert work(at, ADA)[-1] == first


def test_a_link_to_a_query_shows_skipped_passages_last(tmp_path: Path) -> None:
    at = session(tmp_path)
    first, second = (view.item for view in at.upcoming(ADA, "q00000").ahead[:2])
    at.skip(ADA, first)
    linked = [view.item for view in at.upcoming(ADA, "q00000").ahead]
    assert linked[0] == second
    assert first not in linked[:-1]


def test_a_reload_shows_the_same(tmp_path: Path) -> None:
    at = session(tmp_path)
    assert at.upcoming(ADA).ahead == at.upcoming(ADA).ahead


def test_two_reviewers_do_not_grade_the_same_unknowingly(tmp_path: Path) -> None:
    at = session(tmp_path)
    mine, yours = at.upcoming(ADA).ahead, at.upcoming(BO).ahead
    assert not {view.item for view in mine} & {view.item for view in yours}
    assert len({*work(at, ADA), *work(at, BO)}) == 12
    assert at.upcoming(ADA).progress.left == at.upcoming(BO).progress.left == 0


def test_a_lease_ends(tmp_path: Path) -> None:
    clock = Clock()
    at = Session(make_pool(tmp_path, 1, 3), ReviewStore(tmp_path / "reviews"), SessionSettings(overlap=0), clock)
    assert len(at.upcoming(ADA).ahead) == 3
    assert not at.upcoming(BO).ahead
    clock.seconds = MINUTES * 60 + 1
    assert len(at.upcoming(BO).ahead) == 3


def test_two_windows_of_one_reviewer_share_the_work(tmp_path: Path) -> None:
    at = session(tmp_path, 2, 2)
    here, there = at.upcoming(ADA).ahead, at.upcoming(ADA2).ahead
    assert len(here) == 3
    assert there[0].item not in {view.item for view in here}
    assert len(work(at, ADA)) == 4, "what a closed window holds comes in the end"


def test_a_share_is_graded_by_two_and_nobody_sees_the_others(tmp_path: Path) -> None:
    at = session(tmp_path, 20, 5, overlap=0.3)
    alone = work(at, ADA)
    second = work(at, BO)
    third = work(at, LeaseHolder("cy", "t"))
    assert (len(alone), third) == (100, [])
    assert 20 <= len(second) <= 40
    assert set(second) <= set(alone)


def test_some_items_come_again_unseen(tmp_path: Path) -> None:
    at = session(tmp_path, 30, 5, repeats=0.2)
    asked = work(at, ADA)
    seen: dict[str, int] = {}
    apart = [place - seen[item] for place, item in enumerate(asked) if item in seen or seen.setdefault(item, place)]
    apart = [gap for gap in apart if gap]
    assert 10 < len(asked) - 150 < 50
    assert len(set(asked)) == 150
    assert min(apart) >= 20
    lines = ReviewStore(tmp_path / "reviews").read()
    assert len(lines) == len(asked), "both words are kept"
    assert at.upcoming(ADA).progress.done == 150


def test_a_repetition_undone_leaves_the_first_word(tmp_path: Path) -> None:
    at = session(tmp_path)
    first = at.upcoming(ADA).ahead[0].item
    line = at.grade(ADA, first, 2, "", 1.0).line
    repeated = at.grade(ADA, first, 5, "", 2.0).line
    back = at.undo(ADA, repeated)
    assert (back.ahead[0].item, back.progress.done, back.last) == (first, 1, line)
    assert [held.grade for held in fold_reviews(at.store.read()).items().values()] == [2]
    assert at.grade(ADA, first, 4, "", 3.0).progress.done == 1


def test_what_others_write_meanwhile_counts(tmp_path: Path) -> None:
    at, other = session(tmp_path), None
    other = again(at)
    done = work(other, BO, 5)
    left = work(at, ADA)
    assert len(left) == 7
    assert not set(done) & set(left)


def test_a_sample_is_drawn_with_a_known_chance(tmp_path: Path) -> None:
    pool = make_pool(tmp_path).sampled(3, seed=4)
    at = Session(pool, ReviewStore(tmp_path / "reviews"), SessionSettings())
    work(at, ADA)
    assert [line.chance for line in ReviewStore(tmp_path / "reviews").read()] == [0.25] * 3
    with pytest.raises(UsageError, match="13 of 12"):
        make_pool(tmp_path / "more").sampled(13, seed=0)


def test_a_plan_is_followed_in_its_order_with_its_chances(tmp_path: Path) -> None:
    pool = make_pool(tmp_path)
    chosen = [(pool.items[place], chance) for place, chance in ((7, None), (2, 0.5), (9, 0.25))]
    plan = [
        PlanItem(
            qid=item.qid,
            query=item.key[0],
            doc_id=item.doc_id,
            passage=item.key[1],
            worth=0.1,
            chance=chance,
            seconds=20,
            why="it may turn a verdict",
        )
        for item, chance in chosen
    ]
    foreign = plan[0].model_copy(update={"passage": "f" * 32})
    at = Session(pool.planned_by([*plan, foreign]), ReviewStore(tmp_path / "reviews"), SessionSettings())
    assert work(at, ADA) == ["".join(item.key) for item, _ in chosen]
    assert [line.chance for line in at.store.read()] == [None, 0.5, 0.25]
    with pytest.raises(UsageError, match="no passage of the plan"):
        pool.planned_by([foreign])


def test_neighbours_are_those_of_the_source(tmp_path: Path) -> None:
    at = session(tmp_path, 1, 3)
    texts = {view.text: view for view in at.upcoming(ADA).ahead}
    around = at.around(texts["Passage 1 on subject 0."].item)
    assert (around.before, around.after) == ("Passage 0 on subject 0.", "Passage 2 on subject 0.")
    assert at.around(texts["Passage 0 on subject 0."].item).before == ""


def test_words_that_carry_grammar_are_not_highlighted() -> None:
    assert terms_of("What is the lift of Élancé wings at Mach 2?") == ("lift", "elance", "wings", "mach", "2")


@pytest.mark.parametrize("grade", [0, 7, -1])
def test_a_grade_that_is_none(tmp_path: Path, grade: int) -> None:
    at = session(tmp_path)
    item = at.upcoming(ADA).ahead[0].item
    with pytest.raises(UsageError, match=f"grade {grade} is outside 1..5"):
        at.grade(ADA, item, grade, "", None)
    with pytest.raises(NotFoundError, match="unknown passage"):
        at.grade(ADA, "0" * 64, 3, "", None)
    assert ReviewStore(tmp_path / "reviews").read() == []


def test_a_disk_that_refuses_acknowledges_nothing(tmp_path: Path) -> None:
    at = session(tmp_path)
    (tmp_path / "reviews").write_text("in the way")
    item = at.upcoming(ADA).ahead[0].item
    with pytest.raises(ProviderError, match="--reviews DIR"):
        at.grade(ADA, item, 3, "", None)
    assert at.upcoming(ADA).ahead[0].item == item


def test_own_labels_latest_first_and_a_correction_replaces(tmp_path: Path) -> None:
    at = session(tmp_path, 2, 40)
    asked = work(at, ADA)
    first = at.own("ada", 0, None, "")
    assert first.total == 80
    assert [label.view.item for label in first.labels] == asked[:-31:-1]
    assert [label.view.item for label in at.own("ada", 75, None, "").labels] == asked[4::-1]
    assert {label.grade for label in at.own("ada", 0, 3, "").labels} == {3}
    assert at.own("ada", 0, None, "SUBJECT 1").total == 40
    assert (at.own("bo", 0, None, "").total, at.own("ada", 0, 0, "").total) == (0, 0)
    for _ in range(2):  # sent twice, stored once
        at.grade(ADA, asked[0], None, "a note", None, correct=True)
    lines = at.store.read()
    assert len(lines) == 81
    assert lines[-1].replaces == lines[0].id
    assert [label.note for label in at.own("ada", 0, 0, "").labels] == ["a note"]
    assert at.own("ada", 0, None, "A NOTE").total == 1
    assert len(again(at).own("ada", 0, None, "").labels) == 30


def test_a_withdrawal_by_item_can_be_sent_again(tmp_path: Path) -> None:
    at = session(tmp_path)
    asked = work(at, ADA, 3)
    for _ in range(2):
        told = at.withdraw(ADA, asked[1])
        assert (told.ahead[0].item, told.progress.done) == (asked[1], 2)
    assert len(at.store.read()) == 4


def test_a_query_can_come_first(tmp_path: Path) -> None:
    at = session(tmp_path)
    told = at.upcoming(ADA)
    other = next(qid for qid in ("q00000", "q00001", "q00002") if qid != told.ahead[0].qid)
    told = at.upcoming(ADA, other)
    assert [view.qid for view in told.ahead[:3]] == [other] * 3
    assert (told.queries[0].done, told.queries[0].left) == (0, 4)
    assert at.upcoming(BO, other).ahead[0].item not in {view.item for view in told.ahead}
    with pytest.raises(NotFoundError, match="unknown query 'q9'"):
        at.upcoming(ADA, "q9")
    work(at, BO)
    while (view := at.upcoming(ADA).ahead[0]).qid == other:
        at.grade(ADA, view.item, 3, "", None)
    with pytest.raises(UsageError, match="no passage left to grade for query"):
        at.upcoming(ADA, other)
