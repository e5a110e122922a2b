"""Runs that are most alike: the best of all ways to cut, and a change of subject."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from raggs.parts.chunkers import Document
from raggs.parts.chunkers.semantic import ClusterChunker, best_blocks
from raggs.parts.workspace import Workspace


def value(vectors: np.ndarray, cuts: tuple[int, ...]) -> float:
    """What a way to cut is worth, from the whole matrix."""
    similar = (vectors @ vectors.T).astype(float)
    similar -= similar[np.triu_indices(len(vectors), k=1)].mean()
    np.fill_diagonal(similar, 0.0)
    return sum(similar[first:last, first:last].sum() for first, last in pairwise((0, *cuts, len(vectors))))


@pytest.mark.parametrize("seed", range(12))
def test_no_other_way_to_cut_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(9, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[seed % 9] *= seed % 2  # one that knows no word
    most = 2 + seed % 4
    ways = (cuts for number in range(9) for cuts in combinations(range(1, 9), number))
    allowed = [cuts for cuts in ways if max(last - first for first, last in pairwise((0, *cuts, 9))) <= most]
    found = tuple(best_blocks(vectors, most))
    assert found in allowed
    assert value(vectors, found) == pytest.approx(max(value(vectors, cuts) for cuts in allowed), abs=1e-5)


def test_few_pieces() -> None:
    assert best_blocks(np.ones((1, 2), dtype=np.float32), 4) == []
    assert best_blocks(np.eye(3, dtype=np.float32), 1) == [1, 2]


def test_it_cuts_where_the_subject_changes(tmp_path: Path) -> None:
    wings = "The lift of a wing grows with the angle of the wing. " * 3
    bread = "Bread is made of flour and water, and baked as bread. " * 3
    workspace = Workspace(tmp_path)
    try:
        found = list(workspace.chunker(ClusterChunker.Config(size=90, piece=15)).chunk(Document(wings + bread)))
    finally:
        workspace.close()
    assert [chunk.text.strip(" .") for chunk in found] == [wings.strip(" ."), bread.strip(" .")]


def test_pieces_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"piece \(50\) must not exceed size \(30\)"):
        ClusterChunker.Config(size=30)


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [{"size": 30, "piece": 10}, {"size": 25, "piece": 5, "unit": "characters"}]
