"""Where people differ, what is decided, and how far they agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reviewpage import make_pool

from raggs.errors import NotFoundError, UsageError
from raggs.reviewing.agreeing import agreed
from raggs.reviewing.deciding import Deciding
from raggs.reviewing.leases import Holder
from raggs.reviewing.session import Session, SessionSettings
from raggs.reviews.folding import fold
from raggs.reviews.store import ReviewStore


def graded(folder: Path, **grades: list[int | None]) -> tuple[Session, list[str]]:
    """A session in which each one has graded the first items, by name; and the items."""
    pool = make_pool(folder)
    at = Session(pool, ReviewStore(folder / "reviews"), SessionSettings(prompt="grade@1"))
    items = ["".join(item.key) for item in pool.items]
    for who, row in grades.items():
        for number, grade in enumerate(row):
            at.grade(Holder(who, "t"), items[number % len(items)], grade, f"{who}'s", number / 10)
    return at, items


def test_the_farthest_apart_come_first_and_a_decision_closes_one(tmp_path: Path) -> None:
    at, items = graded(tmp_path, ada=[3, 1, 2, 4, None], bo=[4, 5, 2, None, 1])
    deciding = Deciding(at.pool, at.store, "grade@1")
    found = deciding.differences()
    assert (found.total, [each.view.item for each in found.first]) == (2, [items[1], items[0]])
    assert [(word.who, word.grade, word.note) for word in found.first[0].words] == [
        ("ada", 1, "ada's"),
        ("bo", 5, "bo's"),
    ]
    after = deciding.settle("cy", items[1], 4, "names the limit")
    assert (after.total, after.first[0].view.item) == (1, items[0])
    key = at.pool.items[1].key
    settled = fold(at.store.read()).settled(key)
    assert settled is not None
    assert (settled.grade, settled.how, settled.by) == (4, "settled", ("ada", "bo", "cy"))
    line = at.store.read()[-1]
    assert (line.blind, line.note, line.prompt) == (False, "names the limit", "grade@1")
    assert after.line is not None
    with pytest.raises(UsageError, match="nothing to take back"):
        deciding.reopen("ada", after.line)
    assert deciding.reopen("cy", after.line).total == 2


def test_what_is_no_decision(tmp_path: Path) -> None:
    at, items = graded(tmp_path, ada=[1], bo=[5])
    deciding = Deciding(at.pool, at.store, "")
    for grade in (None, 0, 7):
        with pytest.raises(UsageError, match=r"a grade in 1\.\.5"):
            deciding.settle("cy", items[0], grade, "")
    with pytest.raises(NotFoundError):
        deciding.settle("cy", "0" * 64, 3, "")
    assert len(at.store.read()) == 2


def test_agreement_of_people_who_agree(tmp_path: Path) -> None:
    row = [1, 2, 3, 4, 5, 1, 2, 3]
    at, _ = graded(tmp_path, ada=[*row], bo=[*row])
    found = agreed(at.pool, at.store.read())
    assert (found.alpha.value, found.alpha.cases) == (1.0, 8)
    (pair,) = found.pairs
    assert (pair.one, pair.other, pair.kappa.value) == ("ada", "bo", 1.0)
    assert [pair.table[place][place] for place in range(5)] == [2, 2, 2, 1, 1]


def test_who_is_lenient_and_who_drifts(tmp_path: Path) -> None:
    first = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]
    again = [2, 2, 3, 4]
    at, _ = graded(tmp_path, ada=[*first, *again], bo=[grade + 1 for grade in first[:8]])
    ada, bo = agreed(at.pool, at.store.read()).people
    assert (ada.graded, ada.again, ada.same, ada.drift) == (12, 4, 3, 0.25)
    assert (bo.lenient, bo.again, bo.drift) == (0.88, 0, None)
    assert ada.lenient == -0.88


def test_nobody_yet_and_one_alone(tmp_path: Path) -> None:
    at, _ = graded(tmp_path)
    assert agreed(at.pool, []).people == ()
    at.grade(Holder("ada", "t"), "".join(at.pool.items[0].key), None, "", None)
    found = agreed(at.pool, at.store.read())
    assert (found.alpha.value, found.pairs, found.people[0].mean, found.people[0].unsure) == (None, (), None, 1)
