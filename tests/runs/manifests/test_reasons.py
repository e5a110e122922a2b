"""Reasons: each difference by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raggs.runs.manifests.reasons import ABSENT, ComponentChanged, FailuresLeft, OutputEdited, differences

trees = st.recursive(
    st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.text(min_size=1, max_size=3), inner),
    max_leaves=8,
)


def test_leaves_are_named_by_their_path() -> None:
    old = {"config": {"k": 60, "weights": None}, "code": "merge/1"}
    new = {"config": {"k": 61, "weights": None, "x": 1}, "code": "merge/1"}
    assert list(differences(old, new)) == [
        ComponentChanged("config.k", 60, 61),
        ComponentChanged("config.x", ABSENT, 1),
    ]


def test_sentences() -> None:
    assert str(ComponentChanged("config.k", 60, 61)) == "config.k changed (60 -> 61)"
    assert str(ComponentChanged("corpus", "a" * 64, "b" * 64)) == "corpus changed (aaaaaaaa -> bbbbbbbb)"
    assert str(OutputEdited("judge.jsonl")) == "judge.jsonl was edited manually"
    assert str(FailuresLeft(2)) == "2 judgments failed last time and will be retried"


@given(trees, trees)
def test_no_difference_means_equal(old: object, new: object) -> None:
    assert (not list(differences(old, new))) == (old == new)
