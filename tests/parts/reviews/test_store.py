"""reviews.jsonl: added to by many at once, torn by a power cut, refused by a disk."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from raggs.base.errors import DataError, ProviderError
from raggs.parts.reviews import REVIEWS_FILE, GradeReview, ReviewStore


def word(who: str, grade: int) -> GradeReview:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return GradeReview(who=who, at=now, qid="q1", query="0" * 32, doc_id="d1", passage="1" * 32, grade=grade)


def _write(folder: Path, who: str) -> None:
    for number in range(50):
        ReviewStore(folder).append(word(who, number % 5 + 1))


def test_nothing_was_said_and_then_something(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "new" / "reviews")
    assert store.read() == []
    assert not store.torn
    store.append(word("ada", 3), word("bo", 4))
    assert store.read() == [word("ada", 3), word("bo", 4)]


def test_two_processes_write_whole_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path, who)) for who in ("ada", "bo")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    said = ReviewStore(tmp_path).read()
    assert sorted(each.who for each in said) == ["ada"] * 50 + ["bo"] * 50


def test_a_torn_line_does_not_count_and_goes_with_the_next_one(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path)
    store.append(word("ada", 3))
    with store.path.open("ab") as file:
        file.write(b'{"v":1,"who":"ad')
    assert store.torn
    assert store.read() == [word("ada", 3)]
    store.append(word("ada", 5))
    assert not store.torn
    assert store.read() == [word("ada", 3), word("ada", 5)]


@pytest.mark.parametrize("line", [b"{}", b'{"kind":"grade","grade":7}', b"\xff", b"[]", b"[" * 100_000])
def test_a_line_that_cannot_be_right_is_named(tmp_path: Path, line: bytes) -> None:
    store = ReviewStore(tmp_path)
    store.append(word("ada", 3))
    with store.path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(DataError, match=REVIEWS_FILE) as caught:
        store.read()
    assert caught.value.line == 2


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProviderError, match="cannot be written"):
        ReviewStore(tmp_path / "file" / "reviews").append(word("ada", 3))
