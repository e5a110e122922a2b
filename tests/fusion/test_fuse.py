"""Fusion: formulas by hand, and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.fusion import METHODS, fuse

A = [("x", 9.0), ("y", 5.0), ("z", 1.0)]
B = [("y", 0.8), ("w", 0.2)]

ids = st.sampled_from([f"d{number}" for number in range(12)])
hits = st.lists(st.tuples(ids, st.floats(-5, 5)), unique_by=lambda hit: hit[0], max_size=10).map(
    lambda found: sorted(found, key=lambda hit: (-hit[1], hit[0]))
)
lists = st.dictionaries(st.sampled_from(["a", "b", "c"]), hits, min_size=1)


def scores(method: str, **options: object) -> dict[str, float]:
    return {item.doc_id: item.score for item in fuse({"a": A, "b": B}, method=method, **options)}  # type: ignore[arg-type]


def test_reciprocal_ranks_add_up() -> None:
    assert scores("rrf", k=60) == pytest.approx({"y": 1 / 62 + 1 / 61, "x": 1 / 61, "w": 1 / 62, "z": 1 / 63})


def test_combsum_adds_scaled_scores_and_combmnz_multiplies_by_the_lists() -> None:
    assert scores("combsum") == pytest.approx({"x": 1.0, "y": 0.5 + 1.0, "z": 0.0, "w": 0.0})
    assert scores("combmnz") == pytest.approx({"x": 1.0, "y": 3.0, "z": 0.0, "w": 0.0})


def test_weights_multiply_and_a_weight_of_zero_adds_no_passage() -> None:
    assert scores("rrf", weights={"a": 2.0})["x"] == pytest.approx(2 / 61)
    assert set(scores("rrf", weights={"b": 0.0})) == {"x", "y", "z"}


def test_each_source_keeps_its_rank_and_score() -> None:
    (first, *_) = fuse({"a": A, "b": B})
    assert (first.doc_id, dict(first.sources)) == ("y", {"a": (2, 5.0), "b": (1, 0.8)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "borda"}, "known: rrf"),
        ({"weights": {"c": 1.0}}, "'c', which is no list; lists: a, b"),
        ({"weights": {"a": -1.0}}, "negative"),
        ({"depth": 0}, "at least 1"),
    ],
)
def test_mistakes(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fuse({"a": A, "b": B}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
@given(given_lists=lists, depth=st.integers(1, 15))
def test_fusion_is_sorted_complete_and_indifferent_to_the_order_of_the_lists(
    method: str, given_lists: dict[str, list[tuple[str, float]]], depth: int
) -> None:
    fused = fuse(given_lists, method=method, depth=depth)
    assert [(-item.score, item.doc_id) for item in fused] == sorted((-item.score, item.doc_id) for item in fused)
    everything = {doc_id for found in given_lists.values() for doc_id, _ in found}
    assert len(fused) == min(depth, len(everything))
    assert fuse(dict(reversed(given_lists.items())), method=method, depth=depth) == fused
