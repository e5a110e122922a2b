"""Flips against an oracle that relabels one passage, and measures all over again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import evaluate
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measures
from raggs.metrics.unjudged import flip_effects

MEASURES = ("ndcg@3", "ra_nwg@3", "recall@2", "mrr@3", "map", "harm@3")
Labels = dict[str, dict[str, int]]
labels = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 5), min_size=1),
    min_size=1,
)


def values(judged: Labels, lists: dict[str, list[str]], qid: str) -> np.ndarray:
    found = evaluate(judged, lists, MEASURES, scale=(1, 5))
    return np.nan_to_num(found.values[:, found.qids.index(qid)])


def effects_of(judged: Labels, systems: list[dict[str, list[str]]], item: list[int] | None = None) -> np.ndarray:
    qrels = Qrels.of(judged, GradeScale.of(1, 5))
    hits = [find_hits(qrels, Run.of(lists)) for lists in systems]
    numbers = np.arange(len(qrels.grade)) if item is None else np.array(item)
    return flip_effects(hits, parse_measures(MEASURES), numbers)


@given(labels, st.permutations("abcdef"), st.permutations("abcdef"))
def test_as_if_each_label_were_changed_and_all_measured_again(judged: Labels, one: list[str], other: list[str]) -> None:
    systems = [dict.fromkeys(judged, one[:4]), dict.fromkeys(judged, other[:4])]
    found = effects_of(judged, systems)
    rows = [(qid, doc) for qid in sorted(judged) for doc in judged[qid]]
    before = {(qid, number): values(judged, lists, qid) for qid in judged for number, lists in enumerate(systems)}
    for row, (qid, doc) in enumerate(rows):
        for grade in range(1, 6):
            flipped = {**judged, qid: {**judged[qid], doc: grade}}
            for number, lists in enumerate(systems):
                expected = values(flipped, lists, qid) - before[qid, number]
                assert found[row, grade - 1, number] == pytest.approx(expected, abs=1e-12)


def test_near_duplicates_change_together_and_others_stay() -> None:
    judged = {"q1": {"a": 1, "b": 1, "c": 4}, "q2": {"a": 2}}
    lists = {"q1": ["a", "b", "c"], "q2": ["a"]}
    found = effects_of(judged, [lists], [0, 0, -1, 1])
    both = {**judged, "q1": {"a": 5, "b": 5, "c": 4}}
    assert found.shape[0] == 2
    assert found[0, 4, 0] == pytest.approx(values(both, lists, "q1") - values(judged, lists, "q1"))
    assert not found[0, 0].any(), "the grade that it has changes nothing"


def test_nothing_to_flip() -> None:
    assert effects_of({"q1": {"a": 4}}, [{"q1": ["a"]}], [-1]).shape == (0, 5, 1, 6)
