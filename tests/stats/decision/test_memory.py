"""The memory arithmetic: the published orders of magnitude, and a real index beside it."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.stats.front import IndexMemory, flat_memory, hnsw_memory, measured_memory

MILLION = 1_000_000


def test_the_published_vectors():
    """Section 5.3, d = 1024."""
    assert flat_memory(MILLION, 1024).gib == pytest.approx(3.8, abs=0.05)
    assert flat_memory(MILLION, 1024, "int8").gib == pytest.approx(0.95, abs=0.005)
    assert flat_memory(10 * MILLION, 1024).gib == pytest.approx(38, abs=0.5)
    assert flat_memory(10 * MILLION, 1024, "int8").gib == pytest.approx(9.5, abs=0.05)


@pytest.mark.parametrize(("m", "link_bytes"), [(16, 4), (16, 8), (32, 4), (32, 8)])
def test_the_published_totals(m, link_bytes):
    """Ten million: 40-44 GiB as float32, 10-15 as int8; the graph .15-.6 GiB a million (.13 at the least)."""
    plain = hnsw_memory(10 * MILLION, 1024, m, link_bytes=link_bytes)
    small = hnsw_memory(10 * MILLION, 1024, m, "int8", link_bytes=link_bytes)
    assert 39.4 < plain.gib < 44 and 10 < small.gib < 15
    assert 0.13 < plain.links / 2**30 / 10 < 0.6
    assert plain.links == small.links, "a graph does not shrink with its vectors"


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("m", [8, 16, 32])
def test_the_graph_is_as_large_as_that_of_faiss(m):
    faiss = pytest.importorskip("faiss", reason="raggs[ann] is not installed")
    count, dims = 3_000, 8
    index = faiss.IndexHNSWFlat(dims, m)
    index.hnsw.efConstruction = 10
    index.add(np.random.default_rng(1).normal(size=(count, dims)).astype(np.float32))
    assert hnsw_memory(count, dims, m).total == pytest.approx(faiss.serialize_index(index).nbytes, rel=0.01)


def test_what_was_measured_grows_in_proportion():
    measured = measured_memory(1_000, 1_200_000, vector_bytes=1024, fixed=10_000)
    assert measured.measured and measured.total == 1_200_000
    later = measured.at(MILLION)
    assert later.total == pytest.approx(1_190_000_000 + 10_000) and later.measured
    assert flat_memory(100, 10).at(0).total == 0


def test_impossible_sizes_are_refused():
    for call, message in (
        (lambda: flat_memory(0, 8), "count must be at least 1, got 0"),
        (lambda: flat_memory(1, 8, "f8"), "unknown element"),
        (lambda: hnsw_memory(1, 8, 1), "M of at least 2"),
        (lambda: measured_memory(10, 5, vector_bytes=1), "exceed the size"),
        (lambda: IndexMemory(0, 0.0).at(10), "cannot extrapolate"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
