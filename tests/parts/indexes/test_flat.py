"""The index that is none. The search is tested in test_exact."""

from __future__ import annotations

import numpy as np
from support.vectors import clusters, vectors_of

from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes import IndexFacts
from raggs.parts.indexes.exact import FlatIndex


def contract_case(folder, request):
    return {}


def test_it_is_the_vectors_themselves(tmp_path):
    matrix = clusters(50, 8)
    with vectors_of(tmp_path, matrix) as vectors:
        index = FlatIndex(FlatIndex.Config()).open(vectors, None, PrecisionSettings())
        assert index.facts == IndexFacts("flat", 50, 8, 0.0, 1600, 1600)
        found, known = index.search(matrix[:3], 5), vectors.search(matrix[:3], 5)
    assert np.array_equal(found.positions, known.positions)
    assert np.array_equal(found.scores, known.scores)
