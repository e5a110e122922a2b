"""A rule speaks where its evidence does, and not where chance could."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.stats.retrieval_traits import TraitRule, findings

FALLS = TraitRule("falls", "falls", "turn", below={"nDCG": 0.0}, above={"recall": -0.02}, beside=("map",))


def test_a_rule_speaks_where_all_its_quantities_do_and_shows_them() -> None:
    rng = np.random.default_rng(1)
    measured = {
        "b against a": {"nDCG": rng.normal(-0.2, 0.1, 50), "recall": np.zeros(50), "map": rng.normal(size=50)},
        "c against a": {"nDCG": rng.normal(-0.2, 0.1, 50), "recall": rng.normal(-0.2, 0.1, 50)},
        "d against a": {"nDCG": rng.normal(-0.2, 0.1, 50)},
    }
    (found,) = findings([FALLS], measured, seed=1)
    assert found.about == "b against a" and [each.quantity for each in found.evidence] == ["recall", "nDCG", "map"]
    assert found.evidence[1].low < found.evidence[1].mean < found.evidence[1].high < 0


def test_few_questions_are_no_evidence() -> None:
    assert not findings([FALLS], {"b": {"nDCG": np.full(5, -0.3), "recall": np.zeros(5)}}, seed=1)
    assert findings([FALLS], {"b": {"nDCG": np.full(6, -0.3), "recall": np.zeros(6)}}, seed=1)


def test_of_worlds_without_a_difference_few_are_found() -> None:
    rule = TraitRule("any", "", "", above={"x": 0.0})
    rng = np.random.default_rng(7)
    worlds = ({f"s{n}": {"x": rng.normal(size=40)} for n in range(3)} for _ in range(200))
    share = np.mean([bool(findings([rule], world, seed=1)) for world in worlds])
    assert share <= 0.025 + 2 * np.sqrt(0.025 * 0.975 / 200)  # one side of a two-sided interval
    assert share > 0


@pytest.mark.parametrize("values", [np.full(9, np.nan), np.zeros(0)])
def test_what_is_not_defined_is_no_evidence(values: np.ndarray) -> None:
    assert not findings([TraitRule("any", "", "", above={"x": -1.0})], {"s": {"x": values}}, seed=1)
