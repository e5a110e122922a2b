"""Windows: every part has its turn, by length, at white space, the longer order begins with the shorter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.question_filters import TextWindow, stratified_windows

TEXTS = st.lists(st.text(alphabet="ab \n", max_size=120), min_size=1, max_size=6)


def words(count: int) -> str:
    return " ".join(f"word{number}" for number in range(count))


def one_round(texts: list[str], seed: int, size: int) -> list[TextWindow]:
    """Windows up to the first that shows a character again."""
    shown: set[tuple[int, int]] = set()
    found = []
    for window in stratified_windows(texts, sum(map(len, texts)) + 1, seed, size=size):
        places = {(window.document, place) for place in range(window.start, window.end)}
        if shown & places:
            break
        shown |= places
        found.append(window)
    return found


@given(texts=TEXTS, seed=st.integers(0, 9), size=st.integers(10, 60))
def test_every_word_has_its_turn_before_any_comes_again(texts: list[str], seed: int, size: int) -> None:
    shown = {(each.document, place) for each in one_round(texts, seed, size) for place in range(each.start, each.end)}
    wanted = {(number, place) for number, text in enumerate(texts) for place, char in enumerate(text) if char.strip()}
    assert wanted <= shown


@given(texts=TEXTS, seed=st.integers(0, 9), count=st.integers(0, 20), more=st.integers(0, 9))
def test_asking_for_more_changes_nothing_that_was_asked(texts: list[str], seed: int, count: int, more: int) -> None:
    few = stratified_windows(texts, count, seed, size=30)
    assert stratified_windows(texts, count + more, seed, size=30)[:count] == few
    assert len(few) == (count if any(text.strip() for text in texts) else 0)


@given(lengths=st.lists(st.integers(0, 12), min_size=1, max_size=60), seed=st.integers(0, 9), count=st.integers(1, 30))
def test_no_window_begins_or_ends_in_a_word(lengths: list[int], seed: int, count: int) -> None:
    text = " ".join("x" * length for length in lengths)
    for window in stratified_windows([text], count, seed, size=30):
        assert text[window.start - 1 : window.start].strip() == ""
        assert text[window.end : window.end + 1].strip() == ""
        held = text[window.start : window.end]
        assert held and held == held.strip()


@given(seed=st.integers(0, 30), count=st.integers(1, 60))
def test_documents_have_windows_by_their_lengths_to_within_one(seed: int, count: int) -> None:
    texts = [words(3000), words(1500), words(700), *[words(4)] * 50]
    lengths = np.array([len(text) for text in texts])
    shown = np.bincount([each.document for each in stratified_windows(texts, count, seed, size=400)], minlength=53)
    # Of the large ones to within one of their share; of the small ones together, chance decides.
    assert (np.abs(shown[:3] - count * lengths[:3] / lengths.sum()) < 2.5).all()
    assert shown.max(initial=0) <= count and shown[3:].sum() <= 8


def test_windows_of_one_document_lie_evenly_over_it() -> None:
    text = words(20_000)
    for count in (5, 10, 20):
        starts = sorted(each.start for each in stratified_windows([text], count, 3, size=1000))
        gaps = np.diff(starts)
        assert gaps.max() < 3 * len(text) / count
        assert starts[0] < 2 * len(text) / count


def test_windows_are_of_about_the_size_asked_for() -> None:
    text = words(20_000)
    lengths = [each.end - each.start for each in stratified_windows([text], 30, 0, size=4000)]
    assert min(lengths) > 3900 and max(lengths) < 4020


def test_a_cut_prefers_a_blank_line_that_is_near() -> None:
    text = f"{words(60)}\n\n{words(66)}"
    ends = sorted(window.end for window in stratified_windows([text], 2, 0, size=500))
    assert ends == [text.index("\n\n"), len(text)]


def test_a_text_without_white_space_is_cut_where_it_falls() -> None:
    found = sorted(stratified_windows(["字" * 100], 4, 0, size=25))
    assert [(each.start, each.end) for each in found] == [(0, 25), (25, 50), (50, 75), (75, 100)]


def test_another_seed_asks_about_other_parts_first() -> None:
    text = words(20_000)
    assert stratified_windows([text], 5, 0) != stratified_windows([text], 5, 1)


@pytest.mark.parametrize(("count", "size"), [(-1, 10), (1, 0)])
def test_what_is_no_window_is_refused(count: int, size: int) -> None:
    with pytest.raises(ValueError, match="must be at least 0 and their size at least 1"):
        stratified_windows(["a"], count, 0, size=size)
