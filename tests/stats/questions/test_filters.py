"""Duplicates and irrelevant excerpts, against looking at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats import question_filters
from raggs.stats.question_filters import (
    OF_EMBEDDERS,
    THRESHOLDS,
    DuplicateQuestion,
    IrrelevantQuestion,
    Thresholds,
    duplicates,
    irrelevant,
    thresholds_for,
)

SEEDS = st.integers(0, 2**32 - 1)


def unit(count: int, seed: int, dims: int = 4) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def naive(vectors: np.ndarray, limits: np.ndarray, groups: np.ndarray) -> list[tuple[int, int]]:
    kept: list[int] = []
    gone = []
    for row in range(len(vectors)):
        near = [(float(vectors[row] @ vectors[each]), each) for each in kept if groups[each] == groups[row]]
        best = max(near, key=lambda pair: pair[0], default=(-2.0, -1))
        if best[0] > limits[row]:
            gone.append((row, best[1]))
        else:
            kept.append(row)
    return gone


@given(count=st.integers(0, 40), seed=SEEDS, threshold=st.floats(0.1, 0.99), split=st.integers(1, 3))
def test_duplicates_are_those_of_looking_at_every_pair(count: int, seed: int, threshold: float, split: int) -> None:
    vectors, groups = unit(count, seed), np.arange(count) % split
    limits = np.where(np.arange(count) % 2, threshold, threshold - 0.05)
    found = duplicates(vectors, limits, groups)
    assert [(gone.row, gone.of) for gone in found] == naive(vectors, limits, groups)
    assert all(gone.cosine > gone.threshold == limits[gone.row] for gone in found)


@given(seed=SEEDS, block=st.integers(1, 7))
def test_the_blocks_do_not_show(seed: int, block: int) -> None:
    vectors = unit(30, seed)
    whole = duplicates(vectors, 0.8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_filters, "QUESTIONS_PER_BLOCK", block)
        parts = duplicates(vectors, 0.8)
    assert [(gone.row, gone.of) for gone in parts] == [(gone.row, gone.of) for gone in whole]


def test_the_earlier_one_stays_and_what_went_makes_nobody_go() -> None:
    angles = np.radians([0, 40, 80])  # neighbours are alike, the first and the last are not
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    (gone,) = duplicates(vectors, 0.7)
    assert (gone.row, gone.of) == (1, 0)
    assert str(gone) == "cosine 0.766 with question 1, above 0.7"


def test_a_question_without_a_known_word_is_nobodys_duplicate() -> None:
    assert duplicates(np.zeros((3, 2), dtype=np.float32), 0.0) == ()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one row of `vectors`"):
        duplicates(unit(3, 0), 0.7, [0, 0])


@given(count=st.integers(0, 12), excerpts=st.integers(0, 30), seed=SEEDS, threshold=st.floats(-1, 1))
def test_irrelevant_is_any_excerpt_below(count: int, excerpts: int, seed: int, threshold: float) -> None:
    excerpts = excerpts if count else 0
    questions, texts = unit(count, seed), unit(excerpts, seed + 1)
    owner = np.random.default_rng(seed).integers(0, max(1, count), excerpts)
    found = irrelevant(questions, texts, owner, threshold)
    for question in range(count):
        own = {row: float(texts[row] @ questions[question]) for row in range(excerpts) if owner[row] == question}
        gone = next((each for each in found if each.row == question), None)
        lowest = min(own, key=own.__getitem__, default=None)
        if lowest is not None and abs(own[lowest] - threshold) > 1e-6:
            assert (gone is not None) == (own[lowest] < threshold)
            assert gone is None or own[gone.excerpt] == pytest.approx(own[lowest], abs=1e-6)
    assert [each.row for each in found] == sorted({each.row for each in found})


def test_reasons_are_said_with_their_numbers() -> None:
    assert str(IrrelevantQuestion(3, 7, 0.3456, 0.41)) == "cosine 0.346 with an excerpt, below 0.41"
    assert str(DuplicateQuestion(3, 0, 0.9, 0.67)) == "cosine 0.900 with question 1, above 0.67"


def test_thresholds_are_the_embedders_then_the_reports_then_the_usual_ones() -> None:
    assert thresholds_for("pubmed") == THRESHOLDS["pubmed"] == Thresholds(0.40, 0.67)
    assert thresholds_for("mine", "onnx") == Thresholds(0.41, 0.70)
    assert thresholds_for("pubmed", "wordllama") == OF_EMBEDDERS["wordllama"]


def test_a_threshold_that_no_cosine_can_have_is_refused() -> None:
    with pytest.raises(ValueError, match="the duplicate threshold must be"):
        Thresholds(duplicate=1.7)


def test_the_thresholds_of_wordllama_keep_what_the_reports_would_take_out() -> None:
    found = OF_EMBEDDERS["wordllama"]
    assert found.excerpt < Thresholds().excerpt and found.duplicate > Thresholds().duplicate
