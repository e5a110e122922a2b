"""Draws as they are noted: added once, and counted as far as they were read."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.errors import DataError
from raggs.parts.reviews import Draw, DrawnItem, DrawUnit, Key, completed_draw, latest, note_draw, read_draws


def key(query: int, passage: int) -> Key:
    return f"{query:x}" * 32, f"{passage:x}" * 32


def drawing(*keys: Key, unit: DrawUnit = "passage", chance: float = 0.5) -> Draw:
    items = tuple(DrawnItem(query=query, passage=passage, chance=chance) for query, passage in keys)
    return Draw(unit=unit, seed=1, items=items)


ALL = [key(query, passage) for query in range(1, 4) for passage in range(1, 4)]


def test_a_draw_is_added_once(tmp_path: Path) -> None:
    first, second = drawing(*ALL[:2]), drawing(*ALL[:3])
    assert read_draws(tmp_path) == []
    for each in (first, first, second, second):
        note_draw(tmp_path / "reviews", each)
    assert read_draws(tmp_path / "reviews") == [first, second]


def test_a_torn_line_does_not_count_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    note_draw(tmp_path, drawing(*ALL[:2]))
    path = tmp_path / "draws.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert len(read_draws(tmp_path)) == 1
    note_draw(tmp_path, drawing(*ALL[:3]))
    assert len(read_draws(tmp_path)) == 2
    path.write_bytes(whole.replace(b"0.5", b"1.5"))
    with pytest.raises(DataError, match="chance") as caught:
        read_draws(tmp_path)
    assert caught.value.line == 1


def test_passages_count_once_all_are_read() -> None:
    draw = drawing(*ALL[:4])
    assert completed_draw(draw, ALL, ALL[:3]).chance == {}
    assert completed_draw(draw, ALL, ALL[:3]).unread == 1
    assert completed_draw(draw, ALL, ALL).chance == dict.fromkeys(ALL[:4], 0.5)
    assert completed_draw(draw, ALL, ALL).among == 8
    assert completed_draw(draw, ALL[1:], ALL[1:]).chance == dict.fromkeys(ALL[1:4], 0.5), (
        "what has gone is not waited for"
    )


def test_of_questions_the_first_that_were_read_whole_are_a_smaller_draw() -> None:
    draw = drawing(*ALL, unit="question", chance=0.3)
    found = completed_draw(draw, ALL, [*ALL[:6], ALL[8]])
    assert found.unread == 2
    assert found.chance == pytest.approx(dict.fromkeys(ALL[:6], 0.2))
    assert completed_draw(draw, ALL, ALL[3:]).chance == {}, "what comes after a question that is open says nothing"


def test_the_latest_that_was_read_to_its_end_counts() -> None:
    small, large = drawing(*ALL[:2], chance=0.2), drawing(*ALL[:5], chance=0.5)
    found, unread = latest([small, large], "passage", ALL, ALL[:3])
    assert found is not None
    assert (set(found.chance.values()), unread) == ({0.2}, 2)
    found, unread = latest([small, large], "passage", ALL, ALL[:5])
    assert found is not None
    assert (set(found.chance.values()), unread) == ({0.5}, 0)
    assert latest([small], "question", ALL, ALL) == (None, 0)
    assert latest([drawing(key(9, 9))], "passage", ALL, ALL) == (None, 0), "another run's"
