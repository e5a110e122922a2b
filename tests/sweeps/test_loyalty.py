"""Leave-one-out over the pool: the fall is that of scoring against labels from which the system's own are taken out."""

from __future__ import annotations

import pytest

from raggs.metrics.columns import Qrels, Run
from raggs.metrics.evaluate import evaluate
from raggs.metrics.hits import find_hits
from raggs.sweeps.deriving import unique_contributions
from raggs.sweeps.models import SystemRow

LABELS = {"a": {"d1": 5, "d2": 4, "d3": 2, "d4": 5}, "b": {"d1": 4, "d5": 3, "d6": 5}}
LISTS = {
    "dense+k5": {"a": ["d1", "d2", "x"], "b": ["d6", "d1"]},
    "dense+k9": {"a": ["d1", "d3", "d2", "x"], "b": ["d6", "d1"]},
    "lexical": {"a": ["d4", "d1"], "b": ["d5", "d1"]},
}


def row(name: str) -> SystemRow:
    mode, _, k = name.partition("+k")
    return SystemRow(name=name, levels={"mode": mode, "k": k}, fingerprint="", file="x", k=int(k or 5), questions=2)


def test_the_fall_is_that_of_scoring_without_its_own_passages() -> None:
    qrels = Qrels.of(LABELS)
    hits = {name: find_hits(qrels, Run.of(lists)) for name, lists in LISTS.items()}
    found = {part.system: part for part in unique_contributions([row(name) for name in LISTS], hits, "ndcg@5", 10)}
    dense = {"a": {"d1": 5, "d4": 5}, "b": {"d1": 4, "d5": 3}}  # d2, d3, d6 are its own
    lexical = {"a": {"d1": 5, "d2": 4, "d3": 2}, "b": {"d1": 4, "d6": 5}}
    for name, left in (("dense+k5", dense), ("dense+k9", dense), ("lexical", lexical)):
        scale = Qrels.of(left, qrels.scale)
        assert found[name].without == pytest.approx(evaluate(scale, LISTS[name], ["ndcg@5"]).mean["ndcg@5"])
        assert found[name].score == pytest.approx(evaluate(qrels, LISTS[name], ["ndcg@5"]).mean["ndcg@5"])
    assert [found[name].alone for name in LISTS] == [3, 3, 2]


def test_nothing_listed_nothing_owed() -> None:
    assert unique_contributions([], {}, "ndcg@5", 10) == ()
