"""Lists: what their settings do, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from support.vectors import clusters, vectors_of

from raggs.base.cache import Cache
from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes import vectors as room
from raggs.parts.indexes.approximate import IvfIndex

CONTRACT_VARIANTS = [{"nprobe": 64}, {"nprobe": 64, "reorder": 0}, {"nprobe": 64, "pq": 8}]


def contract_case(folder, request):
    return {}


def made(**settings):
    return IvfIndex(IvfIndex.Config(**settings))


def opened(vectors, **settings):
    return made(**settings).open(vectors, None, PrecisionSettings())


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    with vectors_of(tmp_path_factory.mktemp("ivf"), clusters(3000, 32)) as found:
        yield found


def recall(vectors, **settings):
    queries = clusters(100, 32, seed=1)
    truth, found = vectors.search(queries, 5), opened(vectors, **settings).search(queries, 5)
    pairs = zip(found.positions.tolist(), truth.positions.tolist(), strict=True)
    return np.mean([len({*row} & {*known}) / 5 for row, known in pairs])


def test_more_lists_read_find_more_and_all_find_all(vectors):
    few, many = recall(vectors, lists=50, nprobe=1), recall(vectors, lists=50, nprobe=50)
    assert few < many == 1


def test_rough_scores_are_mended_by_reordering(vectors):
    rough, mended = (recall(vectors, lists=20, nprobe=20, pq=8, reorder=times) for times in (0, 20))
    assert rough < 0.8 < 0.95 < mended


def test_codes_are_small(vectors):
    facts = opened(vectors, pq=16).facts
    assert facts.kind == "ivf-pq16"
    assert facts.bytes < opened(vectors).facts.bytes / 3


@pytest.mark.parametrize(("rows", "lists"), [(1, 1), (77, 1), (78, 2), (10_000, 256), (500_000, 2828), (10**9, 65_536)])
def test_lists_by_themselves(rows, lists):
    assert made().built_with(rows)["lists"] == lists


def test_more_lists_than_vectors(vectors, tmp_path):
    with pytest.raises(DataError, match=r"more lists \(5,000\) than vectors \(3,000\) .* — set lists: auto"):
        opened(vectors, lists=5000)
    with pytest.raises(DataError, match=r"more lists \(20\) than vectors \(10\)"):
        made(lists=20).check(10, 4, Cache(tmp_path))


def test_parts_of_unequal_length(vectors, tmp_path):
    with pytest.raises(DataError, match=r"pq: 5 does not divide 32 dimensions — set pq to one of 1, 2, 4, 8, 16, 32"):
        opened(vectors, pq=5)
    with pytest.raises(DataError, match="pq: 64"):
        made(pq=64).check(10, 32, Cache(tmp_path))


def test_few_vectors_for_codes_and_lists(tmp_path, capfd):
    for rows in (3, 16, 40):
        (tmp_path / str(rows)).mkdir()
        with vectors_of(tmp_path / str(rows), clusters(rows, 8)) as few:
            found = opened(few, pq=4, lists=3, nprobe=3).search(clusters(rows, 8)[:3], 1)
            assert found.positions[:, 0].tolist() == [0, 1, 2]
    assert capfd.readouterr() == ("", ""), "faiss warns of few rows for a list"


def test_too_large_for_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "available", lambda: 4 << 30)
    with pytest.raises(PrerequisiteError, match=r"ivf-flat of 1,000,000 .*pq: \.\.\. needs .* index: \{type: flat\}"):
        made().check(1_000_000, 1024, Cache(tmp_path))
    made(pq=128).check(1_000_000, 1024, Cache(tmp_path))
