"""Batches of five that people put in order."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.reviewpage import make_pool

from raggs.base.errors import NotFoundError, UsageError
from raggs.parts.reviews import HEX, OrderReview, ReviewStore, ShownRecord, ShownStore
from raggs.reviewing.ordering import OrderingSession


def ordering(folder: Path, kept: set[tuple[str, str]] | None = None) -> OrderingSession:
    return OrderingSession(make_pool(folder, 2, 8), ReviewStore(folder / "reviews"), kept or set(), seed=0)


def test_batch_after_batch_with_equals(tmp_path: Path) -> None:
    at = ordering(tmp_path)
    sizes, first = [], at.upcoming("ada")
    found = first
    while found.views:
        items = [view.item for view in found.views]
        assert len({view.question for view in found.views}) == 1
        sizes.append(len(items))
        found = at.note("ada", items, [[items[1]], [items[0], *items[2:]]], "", float(len(sizes)))
    assert sorted(sizes) == [3, 3, 5, 5]
    assert (found.done, found.left) == (4, 0)
    lines = ReviewStore(tmp_path / "reviews").read()
    assert isinstance(lines[0], OrderReview)
    assert lines[0].places == (1, 0, *[1] * (sizes[0] - 2))
    assert at.upcoming("bo").left == 4, "another has orders of their own"
    assert found.line is not None
    back = at.undo("ada", found.line)
    assert back.left == 1
    assert [[*group] for group in back.withdrawn] == [[items[1]], [items[0], *items[2:]]]
    assert [view.item for view in back.views] == items
    assert at.upcoming("ada").withdrawn == ()
    assert at.undo("ada").left == 2, "the latest of those that hold"
    with pytest.raises(UsageError, match="no order to undo"):
        at.undo("bo")


def test_an_order_that_is_sent_twice_is_noted_once(tmp_path: Path) -> None:
    at = ordering(tmp_path)
    items = [view.item for view in at.upcoming("ada").views]
    lines = {at.note("ada", items, [[each] for each in items], "", 2.5).line for _ in range(2)}
    assert len(lines) == len(ReviewStore(tmp_path / "reviews").read()) == 1


def test_what_another_server_notes_counts_and_a_file_put_back_is_read_anew(tmp_path: Path) -> None:
    at = ordering(tmp_path)
    other = OrderingSession(at._pool, ReviewStore(tmp_path / "reviews"), set(), seed=0)
    items = [view.item for view in at.upcoming("ada").views]
    line = other.note("ada", items, [items], "", None).line
    assert (at.upcoming("ada").done, at.note("ada", items, [items], "", None).line) == (1, line)
    (tmp_path / "reviews" / "reviews.jsonl").write_text("")
    assert at.upcoming("ada").done == 0


def test_who_was_shown_what_others_said_orders_no_longer_blind(tmp_path: Path) -> None:
    at = ordering(tmp_path)
    items = [view.item for view in at.upcoming("ada").views]
    told = ShownRecord(who="ada", at=datetime.now(UTC), query=items[0][:HEX], passage=items[0][HEX:])
    ShownStore(tmp_path / "reviews").note(told)
    for who in ("ada", "bo"):
        at.note(who, items, [items], "", None)
    assert [line.blind for line in ReviewStore(tmp_path / "reviews").read()] == [False, True]


def test_only_what_the_run_ranks(tmp_path: Path) -> None:
    at = ordering(tmp_path, {("q00001", f"d1-{rank}") for rank in range(3)})
    assert at.upcoming("ada").left == 1
    assert {view.question for view in at.upcoming("ada").views} == {"What of subject 1?"}


def test_what_is_no_order(tmp_path: Path) -> None:
    at = ordering(tmp_path)
    items = [view.item for view in at.upcoming("ada").views]
    pool = make_pool(tmp_path / "other", 2, 8)
    stranger = next("".join(item.key) for item in pool.items if item.key[0] != items[0][:32])
    for shown, order in (
        (items, [items[:-1]]),
        (items, [items, items[:1]]),
        (items, [items, [stranger]]),
        ([*items[:-1], stranger], [[*items[:-1], stranger]]),
    ):
        with pytest.raises(UsageError, match="an order"):
            at.note("ada", shown, order, "", None)
    with pytest.raises(NotFoundError):
        at.note("ada", [items[0], "0" * 64], [[items[0], "0" * 64]], "", None)
    with pytest.raises(UsageError, match="no order to undo"):
        at.undo("ada", "0" * 16)
    assert ReviewStore(tmp_path / "reviews").read() == []
