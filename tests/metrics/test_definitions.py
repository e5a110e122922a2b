"""What a measure is, in a line: words, parameters, and an example that the code makes."""

from __future__ import annotations

import math

from raggs.metrics.measures import REGISTRY
from raggs.metrics.names import definitions

NEEDS_MORE = {
    "span_recall4",
    "span_precision4",
    "ra_nwg_novel",
    "alpha_ndcg",
    "nrbp",
    "containment",
}  # places, facets or texts


def test_each_measure_has_an_example_by_which_a_change_of_its_code_shows() -> None:
    found = definitions()
    assert set(found) == set(REGISTRY.builtin)
    assert {name for name, line in found.items() if "example " not in line} <= NEEDS_MORE
    shown = {"one": (1, 0, 4), "two": (4, 0, 0), "three": (1, 0, 0)}  # gains; a tie goes to the greater id: x before a
    best = {"one": (4, 3, 3), "two": (4, 3, 2), "three": (3, 1, 0)}
    discount = [1 / math.log2(rank + 2) for rank in range(3)]
    ndcg = sum(
        sum(map(math.prod, zip(shown[qid], discount, strict=True)))
        / sum(map(math.prod, zip(best[qid], discount, strict=True)))
        for qid in best
    )
    assert found["ndcg"].endswith(f"example {ndcg / 3:.6f}")
