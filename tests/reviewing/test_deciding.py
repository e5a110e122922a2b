"""Where people differ, what is decided, and how far they agree."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.reviewpage import judge_run, write_run

from raggs.base.errors import NotFoundError, UsageError
from raggs.parts.reviews import ReviewStore, fold_reviews
from raggs.reviewing.agreeing import agreed
from raggs.reviewing.deciding import (
    Adjudication,
    DecisiveVerdict,
    Differences,
    Dispute,
    DisputeFilter,
    DisputeWeights,
    Weigh,
    by_size,
)
from raggs.reviewing.pool import ModelJudges, ReviewPool, open_pool
from raggs.reviewing.session import LeaseHolder, Session, SessionSettings
from raggs.runs.manifests.open_run import open_run


@dataclass
class Table:
    """A session in which each one has graded the first items, by name; and whoever decides."""

    session: Session
    deciding: Adjudication
    items: list[str]

    def upcoming(self, who: str = "cy", wanted: DisputeFilter = "all", later: tuple[str, ...] = ()) -> Differences:
        return self.deciding.upcoming(who, wanted, later)

    def first(self, who: str = "cy", wanted: DisputeFilter = "all", later: tuple[str, ...] = ()) -> str | None:
        found = self.upcoming(who, wanted, later).first
        return found and found.view.item


def graded(
    folder: Path,
    machine: int | None = None,
    weigh: Weigh = by_size,
    overlap: float = 0.0,
    **grades: list[int | None],
) -> Table:
    run = write_run(folder / "runs" / "demo")
    if machine is not None:
        judge_run(run, lambda each: machine)
    runs = [open_run(run)]
    pool = open_pool(runs)
    settings = SessionSettings(prompt="grade@1", overlap=overlap, repeats=0)
    at = Session(pool, ReviewStore(folder / "reviews"), settings)
    items = ["".join(item.key) for item in pool.items]
    for who, row in grades.items():
        for number, grade in enumerate(row):
            at.grade(LeaseHolder(who, "t"), items[number % len(items)], grade, f"{who}'s", number / 10)
    return Table(at, Adjudication(at, ModelJudges(runs, pool), weigh), items)


def test_the_farthest_apart_come_first_and_a_decision_closes_one(tmp_path: Path) -> None:
    at = graded(tmp_path, ada=[3, 1, 2, 4, None], bo=[4, 5, 2, None, 1])
    found = at.upcoming()
    assert (found.people, found.model, found.impact) == (2, 0, False)
    assert found.first is not None
    assert (found.first.kind, found.first.view.item) == ("people", at.items[1])
    assert [(word.who, word.grade, word.note) for word in found.first.words] == [
        ("ada", 1, "ada's"),
        ("bo", 5, "bo's"),
    ]
    line = at.deciding.settle("cy", at.items[1], 4, "names the limit")
    assert line == at.deciding.settle("cy", at.items[1], 4, "names the limit"), "sent twice, noted once"
    assert (at.upcoming().people, at.first()) == (1, at.items[0])
    settled = fold_reviews(at.session.store.read()).settled(at.session.pool.items[1].key)
    assert settled is not None
    assert (settled.grade, settled.how, settled.by) == (4, "settled", ("ada", "bo", "cy"))
    noted = at.session.store.read()[-1]
    assert (noted.blind, noted.note, noted.prompt) == (False, "names the limit", "grade@1")
    with pytest.raises(UsageError, match="already adjudicated by cy: 4"):
        at.deciding.settle("dan", at.items[1], 2, "")
    with pytest.raises(UsageError, match="no decision to undo"):
        at.deciding.reopen("ada", line)
    second = at.deciding.settle("cy", at.items[0], 3, "") if at.first() else ""
    assert at.deciding.reopen("cy") == (at.session.pool.items[0].key, ""), "the latest"
    assert second != line
    assert at.deciding.reopen("cy", line) == (at.session.pool.items[1].key, "names the limit")
    assert at.upcoming().people == 2


def test_people_and_a_model_are_told_apart(tmp_path: Path) -> None:
    at = graded(tmp_path, machine=3, ada=[3, 1, 5], bo=[3, None, 4])
    found = at.upcoming()
    assert (found.people, found.model) == (1, 1)
    assert found.first is not None
    assert (found.first.kind, found.first.view.item) == ("model", at.items[1])
    person, unsure, model = found.first.words
    assert (person.who, unsure.grade) == ("ada", None)
    assert (model.who, model.grade, model.note, model.model) == ("litellm openai/x", 3, "because of d0-1", True)
    assert at.first(wanted="people") == at.first(later=(at.items[1],)) == at.items[2]
    assert at.upcoming(wanted="model").people == 1, "both are counted whatever is looked at"
    assert not graded(tmp_path / "own", machine=None, ada=[1]).upcoming().model


def test_grades_of_people_in_a_run_are_no_models(tmp_path: Path) -> None:
    at = graded(tmp_path, machine=3, ada=[1])
    judge_run(tmp_path / "runs" / "demo", lambda each: 3, judge="human: bo")
    assert at.upcoming().first is None


def test_nobody_sees_what_they_may_still_be_asked_to_grade(tmp_path: Path) -> None:
    at = graded(tmp_path, machine=3, overlap=1.0, ada=[1, 2])
    for who, waiting in (("cy", 2), ("ada", 0)):
        found = at.upcoming(who)
        assert (found.waiting, found.first is None) == (waiting, bool(waiting))
    with pytest.raises(UsageError, match="were not shown"):
        at.deciding.settle("cy", at.items[0], 2, "")
    at.session.grade(LeaseHolder("cy", "t"), at.items[0], 5, "", 1.0)
    assert at.first("cy") == at.items[0], "after one's own grade"


def test_who_was_shown_what_others_said_is_not_blind_any_more(tmp_path: Path) -> None:
    at = graded(tmp_path, machine=3, ada=[1])
    assert at.first("ada") == at.first("cy") == at.items[0]
    for session in (at.session, Session(at.session.pool, at.session.store, at.session.settings)):
        for who in ("ada", "cy"):
            session.grade(LeaseHolder(who, "t"), at.items[0], 2, "", float(len(session.store.read())))
            assert not session.store.read()[-1].blind, "also after a restart"
    at.session.grade(LeaseHolder("cy", "t"), at.items[1], 2, "", 1.0)
    assert at.session.store.read()[-1].blind
    assert {
        who: word.grade
        for who, word in fold_reviews(at.session.store.read()).blind[at.session.pool.items[0].key].items()
    } == {"ada": 1}, "what was said before stays"


def test_what_would_move_verdicts_most_comes_first_and_is_weighed_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def weigh(found: tuple[Dispute, ...]) -> DisputeWeights:
        asked.append(len(found))
        worth = {each.key: each.number * 0.1 for each in found}
        pull = DecisiveVerdict(one="a", other="b", measure="ndcg@10", apart=0.1, moves=0.2)
        return DisputeWeights("a, b", impact=True, worth=worth, why={found[-1].key: pull})

    at = graded(tmp_path, weigh=weigh, ada=[1, 2, 2], bo=[5, 3, 3])
    found = at.upcoming()
    assert found.first is not None
    assert (found.impact, found.told, found.first.view.item) == (True, "a, b", at.items[2])
    assert found.first.why is not None
    at.deciding.settle("cy", at.items[2], 2, "")
    assert (at.first(), asked) == (at.items[1], [3])


def test_a_slow_weighing_does_not_delay_the_first_dispute(tmp_path: Path) -> None:
    finish = threading.Event()

    def weigh(found: tuple[Dispute, ...]) -> DisputeWeights:
        finish.wait(20)
        return DisputeWeights("a, b", impact=True, worth={each.key: each.number for each in found})

    at = graded(tmp_path, weigh=weigh, ada=[1, 2, 2], bo=[5, 3, 3])
    found = at.upcoming()
    assert (found.weighing, found.impact, at.first()) == (True, False, at.items[0])
    finish.set()
    deadline = time.monotonic() + 20
    while at.upcoming().weighing:
        assert time.monotonic() < deadline
    assert (at.upcoming().impact, at.first()) == (True, at.items[2])


def test_what_is_no_decision(tmp_path: Path) -> None:
    at = graded(tmp_path, ada=[1], bo=[5])
    for grade in (None, 0, 7):
        with pytest.raises(UsageError, match=r"must be in 1\.\.5"):
            at.deciding.settle("cy", at.items[0], grade, "")
    with pytest.raises(NotFoundError):
        at.deciding.settle("cy", "0" * 64, 3, "")
    assert len(at.session.store.read()) == 2


def test_agreement_of_people_who_agree(tmp_path: Path) -> None:
    row = [1, 2, 3, 4, 5, 1, 2, 3]
    at = graded(tmp_path, ada=[*row], bo=[*row])
    found = agreed(at.session.pool, at.session.store.read())
    assert (found.alpha.value, found.alpha.cases) == (1.0, 8)
    (pair,) = found.pairs
    assert (pair.one, pair.other, pair.kappa.value) == ("ada", "bo", 1.0)
    assert [pair.table[place][place] for place in range(5)] == [2, 2, 2, 1, 1]


def test_who_is_lenient_and_who_drifts(tmp_path: Path) -> None:
    first = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]
    again = [2, 2, 3, 4]
    at = graded(tmp_path, ada=[*first, *again], bo=[grade + 1 for grade in first[:8]])
    ada, bo = agreed(at.session.pool, at.session.store.read()).people
    assert (ada.graded, ada.again, ada.same, ada.drift) == (12, 4, 3, 0.25)
    assert (bo.lenient, bo.again, bo.drift) == (0.88, 0, None)
    assert agreed(at.session.pool, at.session.store.lines()).people == (ada, bo)  # one line at a time
    assert ada.lenient == -0.88


def test_words_on_texts_that_changed_are_counted_and_not_used(tmp_path: Path) -> None:
    at = graded(tmp_path, ada=[1], bo=[5])
    pool, lines = at.session.pool, at.session.store.read()
    changed = [
        replace(item, key=(item.key[0], "f" * 32)) if number == 0 else item for number, item in enumerate(pool.items)
    ]
    other = ReviewPool([], changed, pool.questions, {})
    assert (agreed(pool, lines).stale, agreed(other, lines).stale) == (0, 2)
    assert agreed(other, lines).pairs == ()


def test_nobody_yet_and_one_alone(tmp_path: Path) -> None:
    at = graded(tmp_path)
    assert agreed(at.session.pool, []).people == ()
    at.session.grade(LeaseHolder("ada", "t"), at.items[0], None, "", None)
    found = agreed(at.session.pool, at.session.store.read())
    assert (found.alpha.value, found.pairs, found.people[0].mean, found.people[0].unsure) == (None, (), None, 1)
