"""Exact search against a plain float64 computation, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes import exact
from raggs.parts.indexes.exact import search


def unit(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def vectors(count, dims, seed=0):
    return unit(np.random.default_rng(seed).standard_normal((count, dims)))


def by_definition(matrix, ranks, query, k, scoring):
    matrix, query = scoring.part(matrix), scoring.part(query)
    if not query.any():
        return []
    scores = (matrix.astype(np.float64) * query.astype(np.float64)).sum(axis=1).astype(np.float32)
    scores = scoring.last(scores)
    order = np.lexsort((ranks, -scores))[:k]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))


def found(neighbours, row):
    positions, scores = neighbours.positions[row], neighbours.scores[row]
    return [(p, s) for p, s in zip(positions.tolist(), scores.tolist(), strict=True) if p >= 0]


@given(
    rows=st.integers(1, 60),
    asked=st.integers(1, 7),
    k=st.integers(1, 12),
    chunk=st.sampled_from([1, 3, 16, 64]),
    batch=st.sampled_from([1, 2, 64]),
    levels=st.sampled_from([1, 2, 100]),
    seed=st.integers(0, 1000),
    scoring=st.builds(PrecisionSettings, dtype=st.sampled_from(["f32", "f16", "bf16"]), high_precision=st.booleans()),
)
def test_it_is_the_definition(rows, asked, k, chunk, batch, levels, seed, scoring):
    rng = np.random.default_rng(seed)
    # Few levels make many equal vectors and zeros.
    matrix = unit(rng.integers(-levels, levels + 1, (rows, 5)))
    queries = unit(rng.integers(-levels, levels + 1, (asked, 5)))
    ranks = rng.permutation(rows).astype(np.int32)
    neighbours = search(matrix, ranks, queries, k, scoring=scoring, chunk=chunk, batch=batch)
    assert neighbours.positions.shape == (asked, min(k, rows))
    for row, query in enumerate(queries):
        assert found(neighbours, row) == by_definition(matrix, ranks, query, min(k, rows), scoring)


def test_a_result_does_not_depend_on_the_other_queries():
    matrix, queries = vectors(20_000, 64), vectors(70, 64, seed=1)
    ranks = np.arange(len(matrix), dtype=np.int32)
    together = search(matrix, ranks, queries, 20)
    for row in (0, 33, 69):
        alone = search(matrix, ranks, queries[row : row + 1], 20)
        assert alone.positions[0].tobytes() == together.positions[row].tobytes()
        assert alone.scores[0].tobytes() == together.scores[row].tobytes()
        few = search(matrix, ranks, queries[max(row - 4, 0) : row + 1], 20)
        assert few.scores[-1].tobytes() == together.scores[row].tobytes()


def test_ties_across_chunks_go_by_rank():
    matrix = np.tile(unit(np.ones((1, 4))), (20_000, 1))
    ranks = np.arange(20_000, dtype=np.int32)[::-1].copy()
    positions = search(matrix, ranks, matrix[:1], 5).positions[0]
    assert positions.tolist() == [19_999, 19_998, 19_997, 19_996, 19_995]


def test_a_query_of_zeros_has_no_neighbours():
    queries = np.vstack([np.zeros(8), vectors(1, 8)[0]]).astype(np.float32)
    neighbours = search(vectors(10, 8), np.arange(10, dtype=np.int32), queries, 3)
    assert neighbours.positions[0].tolist() == [-1, -1, -1]
    assert np.isneginf(neighbours.scores[0]).all()
    assert (neighbours.positions[1] >= 0).all()


def test_no_queries():
    assert search(vectors(10, 8), np.arange(10, dtype=np.int32), np.empty((0, 8), np.float32), 3).positions.shape == (
        0,
        3,
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value):
    good, bad = vectors(100, 8), vectors(100, 8)
    bad[57, 3] = value
    ranks = np.arange(100, dtype=np.int32)
    with pytest.raises(DataError, match="passage vectors contain NaN"):
        search(bad, ranks, good[:5], 3)
    with pytest.raises(DataError, match="query vector contains NaN"):
        search(good, ranks, bad, 3)


@pytest.mark.parametrize("asked", [2, 3, 64])
def test_no_product_is_so_large_that_blas_shares_it_out(monkeypatch, asked):
    products, matmul = [], np.matmul

    def spy(rows, queries, out):
        products.append(rows.shape[-2] * rows.shape[-1] * queries.shape[-1])
        return matmul(rows, queries, out=out)

    monkeypatch.setattr(exact.np, "matmul", spy)
    search(vectors(10_000, 64), np.arange(10_000, dtype=np.int32), vectors(asked, 64, seed=1), 5)
    assert 0 < max(products) <= exact.ONE_THREAD


def test_a_map_on_disk_gives_what_memory_does(tmp_path):
    matrix = vectors(9000, 16)
    mapped = np.memmap(tmp_path / "v", np.float32, "w+", shape=matrix.shape)
    mapped[:] = matrix
    ranks, queries = np.arange(9000, dtype=np.int32), vectors(3, 16, seed=1)
    there, here = search(mapped, ranks, queries, 20), search(matrix, ranks, queries, 20)
    assert there.positions.tobytes() == here.positions.tobytes()
    assert there.scores.tobytes() == here.scores.tobytes()
