"""Counts over lists that are small enough to be counted by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from raggs.metrics import Qrels, Run
from raggs.metrics.hits import Hits, find_hits
from raggs.stats.retrieval_traits import copies_at, found_alone, missed_length

QRELS = Qrels.of({"q1": {"a": 5, "b": 4, "c": 4, "d": 1}, "q2": {"a": 1}, "q3": {"b": 5}})


def hits(**lists: list[str]) -> Hits:
    return find_hits(QRELS, Run.of(lists))


def test_copies_are_counted_once_for_each_place_below_the_first() -> None:
    facets = QRELS.facets({"a": "x", "b": "x", "c": "x", "d": "d"})
    table = replace(hits(q1=["a", "d", "b", "c"], q3=["z", "b"]), facet=facets)
    assert copies_at(table, 3).tolist()[0] == pytest.approx(1 / 3)
    assert copies_at(table, 4).tolist() == pytest.approx([0.5, math.nan, 0.0], nan_ok=True)


def test_what_only_the_other_found_is_a_share_of_the_relevant() -> None:
    one, other = hits(q1=["a", "d"], q3=["z"]), hits(q1=["b", "a"], q3=["b"])
    assert found_alone(other, one, 10).tolist() == pytest.approx([1 / 3, math.nan, 1.0], nan_ok=True)
    assert found_alone(other, one, 1).tolist()[0] == pytest.approx(1 / 3)


def test_missed_passages_are_longer_by_doublings() -> None:
    letters = np.array(
        [{"a": 100.0, "b": 400.0, "c": 400.0, "d": 1.0}[doc.decode()] for doc in QRELS.docs.take(np.arange(6))]
    )
    assert missed_length(hits(q1=["a"], q3=["b"]), letters, 10).tolist() == pytest.approx(
        [2.0, math.nan, math.nan], nan_ok=True
    )
