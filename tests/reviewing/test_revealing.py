"""The model's word after one's own: only then, and the grade from before stays as the blind one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reviewpage import judge_run, write_run

from raggs.base.errors import DataError, UsageError
from raggs.parts.reviews import GradeReview, ReviewStore, fold_reviews
from raggs.reviewing.deciding import ModelLabelReveal
from raggs.reviewing.pool import ModelJudges, open_pool
from raggs.reviewing.session import LeaseHolder, Session, SessionSettings
from raggs.runs.manifests.open_run import open_run

ADA = LeaseHolder("ada", "t")


def revealing(folder: Path, *, allowed: bool = True) -> tuple[Session, ModelLabelReveal, str]:
    runs = [open_run(judge_run(write_run(folder / "runs" / "demo"), lambda each: 2))]
    pool = open_pool(runs).sampled(6, seed=1)
    session = Session(pool, ReviewStore(folder / "reviews"), SessionSettings(overlap=0, repeats=1))
    return session, ModelLabelReveal(session, ModelJudges(runs, pool), allowed), session.upcoming(ADA).ahead[0].item


def test_only_after_ones_own_grade_and_only_where_it_is_allowed(tmp_path: Path) -> None:
    session, at, item = revealing(tmp_path / "one")
    for asked in (item, None):
        with pytest.raises(UsageError, match="grade the passage first"):
            at.reveal("ada", asked)
    session.grade(ADA, item, 4, "", 1.0)
    with pytest.raises(UsageError, match="grade the passage first"):
        at.reveal("bo", item)
    found = at.reveal("ada", None)
    assert (found.view.item, found.own.grade) == (item, 4)
    assert [(word.grade, word.model, word.note.startswith("because")) for word in found.words] == [(2, True, True)]
    session.grade(LeaseHolder("bo", "t"), item, 1, "", 1.0)
    assert at.reveal("ada", item) == found
    assert at.reveal("bo", item).own.grade == 1, "one's own line among others'"
    session, at, item = revealing(tmp_path / "two", allowed=False)
    session.grade(ADA, item, 4, "", 1.0)
    session.show("ada", session.number(item))  # where it was decided
    for act in (lambda: at.reveal("ada", item), lambda: at.change("ada", item, 2, "")):
        with pytest.raises(UsageError, match="model grades are hidden"):
            act()
    assert len(session.store.read()) == 1


def test_a_broken_line_is_told_before_anybody_works(tmp_path: Path) -> None:
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews" / "shown.jsonl").write_text('{"v": 1}\n')
    with pytest.raises(DataError, match="who: Field required"):
        revealing(tmp_path)


def test_a_change_takes_the_place_of_the_blind_grade_and_both_are_kept(tmp_path: Path) -> None:
    session, at, item = revealing(tmp_path)
    first = session.grade(ADA, item, 4, "so I think", 1.0).line
    with pytest.raises(UsageError, match="was not shown"):
        at.change("ada", item, 2, "")
    at.reveal("ada", item)
    found = at.change("ada", item, 2, "")
    assert found == at.change("ada", item, 2, ""), "sent twice, noted once"
    blind, changed = session.store.read()
    assert isinstance(changed, GradeReview)
    assert (changed.replaces, changed.blind, changed.grade, changed.chance) == (first, False, 2, 0.5)
    assert (blind.blind, found.line, found.own.note) == (True, changed.id, "so I think")
    held = fold_reviews(session.store.read())
    key = session.pool.items[session.number(item)].key
    assert (held.grades[key]["ada"].grade, held.blind[key]["ada"].grade) == (2, 4)
    assert session.undo(ADA, changed.id).last == first
    assert fold_reviews(session.store.read()).grades[key]["ada"].grade == 4, "the change taken back"
    session.grade(ADA, item, 5, "", 2.0)
    assert not session.store.read()[-1].blind, "who has seen it is not blind again"


def test_what_was_revealed_does_not_come_again(tmp_path: Path) -> None:
    runs = [open_run(judge_run(write_run(tmp_path / "runs" / "demo", 3, 20), lambda each: 2))]
    pool = open_pool(runs)
    session = Session(pool, ReviewStore(tmp_path / "reviews"), SessionSettings(overlap=0, repeats=1))
    at, shown, asked = ModelLabelReveal(session, ModelJudges(runs, pool), allowed=True), set[str](), list[str]()
    while ahead := session.upcoming(ADA).ahead:
        assert ahead[0].item not in shown
        asked.append(ahead[0].item)
        session.grade(ADA, ahead[0].item, 3, "", len(asked) / 10)
        if len(asked) % 2:
            shown.add(at.reveal("ada", ahead[0].item).view.item)
    assert len(asked) > len(set(asked)), "others do"
