"""The graph: what its settings do, and what it takes."""

from __future__ import annotations

import numpy as np
import pytest
from support.vectors import clusters, vectors_of

from raggs.base.cache import Cache
from raggs.base.errors import PrerequisiteError
from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes import vectors as room
from raggs.parts.indexes.approximate import HnswIndex

CONTRACT_VARIANTS = [{}, {"quantize": "int8"}, {"reorder": False}, {"quantize": "int8", "reorder": False}]


def contract_case(folder, request):
    return {}


def opened(vectors, **settings):
    return HnswIndex(HnswIndex.Config(**settings)).open(vectors, None, PrecisionSettings())


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    with vectors_of(tmp_path_factory.mktemp("hnsw"), clusters(3000, 32)) as found:
        yield found


def recall(vectors, k, **settings):
    queries = clusters(100, 32, seed=1)
    truth, found = vectors.search(queries, k), opened(vectors, **settings).search(queries, k)
    pairs = zip(found.positions.tolist(), truth.positions.tolist(), strict=True)
    return np.mean([len({*row} & {*known}) / k for row, known in pairs])


def test_a_wider_search_finds_more(vectors):
    narrow, wide = (recall(vectors, 5, ef=ef, m=4, ef_construction=20) for ef in (5, 200))
    assert narrow < wide and wide > 0.95


def test_a_search_for_more_than_ef_is_as_wide_as_that(vectors):
    assert recall(vectors, 500, ef=10) > 0.95


def test_only_what_is_built_has_a_file_of_its_own(vectors):
    for settings in ({}, {"ef": 10}, {"reorder": False}):
        opened(vectors, m=5, **settings)
    assert len([*vectors.cache.folder.glob("hnsw-*")]) == len({*vectors.cache.folder.glob("hnsw-*")})
    before = {*vectors.cache.folder.glob("hnsw-*")}
    opened(vectors, m=6)
    opened(vectors, m=6, ef=20)
    assert len({*vectors.cache.folder.glob("hnsw-*")} - before) == 1


def test_bytes_instead_of_floats(vectors):
    full, small = opened(vectors).facts, opened(vectors, quantize="int8").facts
    assert (full.kind, small.kind) == ("hnsw-f32", "hnsw-int8")
    assert full.bytes - small.bytes == pytest.approx(3000 * 32 * 3, rel=0.01)
    assert full.build_s > 0 and full.memory == full.bytes


def test_the_estimate_is_what_is_built(vectors):
    for settings in ({}, {"quantize": "int8"}, {"m": 32}):
        made = opened(vectors, **settings).facts.bytes
        assert HnswIndex(HnswIndex.Config(**settings)).memory(3000, 32) == pytest.approx(made, rel=0.05)


def test_too_large_for_memory_is_said_before_it_is_built(vectors, monkeypatch, tmp_path):
    monkeypatch.setattr(room, "available", lambda: 3 << 30)
    index = HnswIndex(HnswIndex.Config())
    index.check(500_000, 1024, Cache(tmp_path))
    with pytest.raises(PrerequisiteError) as told:
        index.check(1_000_000, 1024, Cache(tmp_path))
    assert "hnsw-f32 of 1,000,000 vectors with 1024 dimensions needs about 4.0 GiB" in str(told.value)
    assert "3.0 GiB are available" in str(told.value)
    assert told.value.remedy.startswith("quantize: int8 needs 1.1 GiB; {type: ivf, pq: ...} needs")
    with pytest.raises(PrerequisiteError, match=r"— \{type: ivf"):
        HnswIndex(HnswIndex.Config(quantize="int8")).check(10_000_000, 1024, Cache(tmp_path))
    monkeypatch.setattr(room, "available", lambda: 1000)
    opened(vectors)  # built before: nothing to refuse
    index.check(3000, 32, vectors.cache)
    with pytest.raises(PrerequisiteError, match="needs about"):
        opened(vectors, m=48)
    monkeypatch.setattr(room, "available", lambda: None)
    index.check(10**9, 1024, Cache(tmp_path))


def test_memory_that_is_gone_while_it_is_built_is_said_the_same_way(vectors, monkeypatch):
    def build(*_):
        raise MemoryError

    monkeypatch.setattr(HnswIndex, "build", build)
    monkeypatch.setattr(room, "available", lambda: None)
    with pytest.raises(PrerequisiteError, match=r"needs about .* but less is available — quantize: int8"):
        opened(vectors, m=40)
    assert not [*vectors.cache.folder.glob("hnsw-*/.tmp-*")]


@pytest.mark.parametrize("settings", [{"m": 1}, {"ef": 0}, {"quantize": "int4"}, {"ef_construction": 0}, {"k": 3}])
def test_settings_that_are_none(settings):
    with pytest.raises(ValueError, match="validation error"):
        HnswIndex.Config(**settings)
