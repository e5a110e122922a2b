"""Families of indexes: names that the command line reads, efforts that go up, the least one that fits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.chunking.models import parse_spec
from raggs.diagnosis.index.measuring import IndexFamily, bisected, families
from raggs.diagnosis.index.models import IndexDiagnosisConfig
from raggs.parts import indexes
from raggs.parts.indexes import IndexConfig


def of(*names: str, dims: int = 64, **settings: object) -> list[IndexFamily]:
    return families(IndexDiagnosisConfig.model_validate({"indexes": names, **settings}), dims)


def test_a_name_is_read_as_what_it_names() -> None:
    given = of("hnsw:m=8:ef=99", "ivf:pq=16:reorder=0", "hnsw:quantize=int8", vary=["m=16,32", "nprobe=4"])
    names = [family.name for family in given]
    assert names == [
        "hnsw:m=16", "hnsw:m=32", "ivf:pq=16:reorder=0", "hnsw:m=16:quantize=int8", "hnsw:m=32:quantize=int8"
    ]  # fmt: skip
    for family in given:
        assert parse_spec(family.named(48), indexes.REGISTRY, IndexConfig) == family.at(48).config


def test_the_usual_ones_code_a_quarter_of_the_dimensions_where_that_is_whole() -> None:
    assert [family.name for family in of(dims=64)] == ["hnsw", "ivf", "ivf:pq=16"]
    assert [family.name for family in of(dims=30)] == ["hnsw", "ivf"]


@pytest.mark.parametrize("k", [1, 10, 100])
def test_efforts_go_up_from_the_least_that_matters(k: int) -> None:
    graph, lists = of("hnsw", "ivf")
    assert graph.efforts(k)[0] == k
    assert lists.efforts(k)[:4] == [1, 2, 3, 4]
    for family in (graph, lists):
        assert all(low < high <= max(2 * low, low + 1) for low, high in pairwise(family.efforts(k)))
    assert of("hnsw", vary=["ef=640,2,3"])[0].efforts(k) == sorted({640, max(k, 2), max(k, 3)})


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_least_that_fits_is_found(low: int, more: int) -> None:
    for least in range(low + 1, low + more + 1, max(more // 7, 1)):
        assert bisected(low, low + more, lambda effort, least=least: effort >= least) == least
