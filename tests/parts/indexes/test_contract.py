"""What holds for every index, whatever it is built of."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from support.contracts import cases, settings_of
from support.vectors import clusters, unit, vectors_of

from raggs.base.cache import Cache
from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes import REGISTRY, approximate
from raggs.parts.indexes.vectors import VectorIndex

ROWS, DIMS = 2000, 32
LEAST = 0.9  # recall of the exact ten
ROUGH = 0.5  # with scores of less than 32 bits that nothing mends


@pytest.fixture(params=cases("indexes", REGISTRY))
def recipe(request, tmp_path):
    name, variant = request.param
    index = REGISTRY.load(name)
    return index(index.Config(**{**settings_of("indexes", name, tmp_path / "case", request), **variant}))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    with vectors_of(tmp_path_factory.mktemp("vectors"), clusters(ROWS, DIMS)) as found:
        yield found


def opened(recipe, vectors, scoring=None, progress=None):
    return recipe.open(vectors, progress, scoring or PrecisionSettings())


def pairs(neighbours):
    return [
        [(p, s) for p, s in zip(*row, strict=True) if p >= 0]
        for row in zip(neighbours.positions.tolist(), neighbours.scores.tolist(), strict=True)
    ]


def test_it_finds_what_an_exact_search_finds(recipe, vectors):
    queries = clusters(100, DIMS, seed=1)
    found, truth = opened(recipe, vectors).search(queries, 10), vectors.search(queries, 10)
    both = zip(found.positions.tolist(), truth.positions.tolist(), strict=True)
    assert np.mean([len({*mine} & {*known}) for mine, known in both]) / 10 >= (LEAST if recipe.rescores else ROUGH)
    assert found.positions.dtype == np.int64 and found.scores.dtype == np.float32


def test_scores_are_the_exact_ones_to_the_last_bit(recipe, vectors):
    queries = clusters(20, DIMS, seed=2)
    truth = pairs(vectors.search(queries, ROWS))
    for mine, known in zip(pairs(opened(recipe, vectors).search(queries, 10)), truth, strict=True):
        exact = dict(known)
        if recipe.rescores:
            assert [score for _, score in mine] == [exact[position] for position, _ in mine]
        else:
            assert [score for _, score in mine] == pytest.approx([exact[p] for p, _ in mine], abs=0.05)


def test_best_first_and_ties_by_doc_id(recipe, tmp_path):
    matrix = np.repeat(clusters(10, 8), 3, axis=0)
    ids = [f"d{number:02}" for number in reversed(range(30))]
    with vectors_of(tmp_path, matrix, ids) as vectors:
        hits = pairs(opened(recipe, vectors).search(matrix[:1], 8))[0]
        assert [(-score, ids[place]) for place, score in hits] == sorted((-score, ids[p]) for p, score in hits)
        assert [ids[place] for place, _ in hits][:3] == ["d27", "d28", "d29"]
        assert [ids[p] for p, _ in pairs(opened(recipe, vectors).search(matrix[:1], 2))[0]] == ["d27", "d28"]


def test_more_than_there_are(recipe, tmp_path):
    with vectors_of(tmp_path, clusters(20, 8)) as vectors:
        (hits,) = pairs(opened(recipe, vectors).search(clusters(1, 8, seed=1), 50))
        assert sorted(place for place, _ in hits) == [*range(20)]


def test_one_row(recipe, tmp_path):
    with vectors_of(tmp_path, clusters(1, 8)) as vectors:
        (hits,) = pairs(opened(recipe, vectors).search(clusters(1, 8), 3))
        assert [place for place, _ in hits] == [0]


def test_queries_of_zeros_and_none(recipe, vectors):
    index = opened(recipe, vectors)
    queries = np.vstack([np.zeros(DIMS), clusters(1, DIMS)[0]]).astype(np.float32)
    zero, other = pairs(index.search(queries, 3))
    assert zero == [] and len(other) == 3
    assert index.search(np.empty((0, DIMS), np.float32), 3).positions.shape == (0, 3)


def test_rows_of_zeros_are_nearest_to_nobody(recipe, tmp_path):
    matrix = clusters(60, 8)
    matrix[::7] = 0
    with vectors_of(tmp_path, matrix) as vectors:
        for place, ((first, score), *_) in enumerate(pairs(opened(recipe, vectors).search(matrix[1:6], 5)), 1):
            assert first == place and score > 0.9


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_queries_that_are_none(recipe, vectors, value):
    query = clusters(1, DIMS)
    query[0, 3] = value
    with pytest.raises(DataError, match="query vector contains NaN or infinity"):
        opened(recipe, vectors).search(query, 3)
    with pytest.raises(DataError, match="7 dimensions, the index has 32"):
        opened(recipe, vectors).search(np.ones((1, 7), np.float32), 3)


def test_vectors_that_are_none(recipe, tmp_path):
    matrix = clusters(40, 8)
    broken = matrix.copy()
    broken[17, 3] = np.nan
    with pytest.raises(DataError, match="passage vectors contain NaN"):
        opened(recipe, VectorIndex.of(broken, Cache(tmp_path))).search(matrix[:1], 3)


def test_a_result_does_not_depend_on_the_other_queries(recipe, vectors):
    queries = clusters(40, DIMS, seed=3)
    index = opened(recipe, vectors)
    together = pairs(index.search(queries, 7))
    assert [pairs(index.search(queries[row : row + 1], 7))[0] for row in range(40)] == together


def test_it_is_built_once_and_opened_again_with_the_same_hits(recipe, tmp_path):
    told, queries = [], clusters(20, 16, seed=1)
    with vectors_of(tmp_path, clusters(500, 16)) as vectors:
        first = opened(recipe, vectors, progress=lambda *news: told.append(news))
        hits, files = pairs(first.search(queries, 5)), snapshot(tmp_path)
    built = len(told)
    with vectors_of(tmp_path, clusters(500, 16)) as vectors:
        again = opened(recipe, vectors, progress=lambda *news: told.append(news))
        assert pairs(again.search(queries, 5)) == hits
        assert again.facts == first.facts
    assert len(told) == built
    assert snapshot(tmp_path) == files


def test_the_same_vectors_give_the_same_file(recipe, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with vectors_of(tmp_path / name, clusters(500, 16)) as vectors:
            opened(recipe, vectors)
    assert [f.read_bytes() for f in sorted((tmp_path / "a").glob("*/*/index"))] == [
        f.read_bytes() for f in sorted((tmp_path / "b").glob("*/*/index"))
    ]


def snapshot(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def damage(file, how):
    data = bytearray(file.read_bytes())
    if how == "a bit":
        data[len(data) // 2] ^= 1
    elif how == "cut":
        del data[-1:]
    file.unlink() if how == "gone" else file.write_bytes(data)


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("how", ["a bit", "cut", "gone"])
@pytest.mark.parametrize("name", ["index", "entry.json"])
def test_what_was_damaged_is_built_again(recipe, tmp_path, name, how):
    matrix = clusters(300, 16)
    with vectors_of(tmp_path, matrix) as vectors:
        hits = pairs(opened(recipe, vectors).search(matrix[:5], 5))
        for file in [*vectors.cache.folder.glob(f"*/{name}")]:
            damage(file, how)
            assert pairs(opened(recipe, vectors).search(matrix[:5], 5)) == hits
            assert file.exists()


def test_an_index_of_other_vectors_is_not_believed(recipe, tmp_path):
    one, two = clusters(300, 16), clusters(300, 16, seed=5)
    with vectors_of(tmp_path, one) as vectors:
        opened(recipe, vectors)
    for file in tmp_path.glob("*/vectors.f32"):
        file.unlink()
    for file in tmp_path.glob("test*/header.json"):
        file.unlink()
    with vectors_of(tmp_path, two) as vectors:
        hits = pairs(opened(recipe, vectors).search(two[:5], 1))
        assert [row[0][0] for row in hits] == [0, 1, 2, 3, 4]


DYING = """
import os, signal, sys
from pathlib import Path
from support.vectors import clusters, vectors_of
from raggs.parts.indexes import REGISTRY, approximate
from raggs.base.precision import PrecisionSettings
import raggs.parts.indexes.approximate as faisslib

def die(*news):
    os.kill(os.getpid(), signal.SIGKILL)

when, name, settings = sys.argv[2], sys.argv[3], eval(sys.argv[4])
if when == "written":
    write = faisslib.write
    faisslib.write = lambda *given: (write(*given), die())
recipe = REGISTRY.load(name)
with vectors_of(Path(sys.argv[1]), clusters(300, 16)) as vectors:
    recipe(recipe.Config(**settings)).open(vectors, die if when == "rows" else None, PrecisionSettings())
"""


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("when", ["rows", "written"])
def test_a_killed_build_leaves_nothing_half(recipe, tmp_path, when):
    if recipe.config.type == "flat":
        pytest.skip("nothing is built")
    script = [sys.executable, "-c", DYING, tmp_path, when, recipe.config.type, repr(recipe.config.model_dump())]
    done = subprocess.run(script, check=False, cwd="tests", env={"PYTHONPATH": "..:.", "PATH": ""})
    assert done.returncode == -signal.SIGKILL
    with vectors_of(tmp_path, clusters(300, 16)) as vectors:
        index = opened(recipe, vectors)
        assert len(pairs(index.search(clusters(300, 16)[:1], 5))[0]) == 5
        assert index.facts.build_s > 0
        assert [path.name for path in vectors.cache.folder.rglob(".tmp-*")] == []


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("high_precision", [True, False])
def test_scores_of_less_than_32_bits(recipe, vectors, dtype, high_precision):
    if not recipe.rescores:
        pytest.skip("the retriever refuses it")
    scoring, queries = PrecisionSettings(dtype=dtype, high_precision=high_precision), clusters(10, DIMS, seed=4)
    rows, asked = scoring.part(vectors.vectors).astype(np.float64), scoring.part(queries).astype(np.float64)
    wanted = scoring.last((asked @ rows.T).astype(np.float32))
    for query, hits in enumerate(pairs(opened(recipe, vectors, scoring).search(queries, 10))):
        assert [score for _, score in hits] == pytest.approx([wanted[query, place] for place, _ in hits], abs=1e-6)
        assert [(-score, place) for place, score in hits] == sorted((-score, place) for place, score in hits)


def test_its_causes_name_its_library(recipe):
    causes = recipe.causes()
    assert causes["type"] == recipe.config.type
    assert causes["packages"] and all(causes["packages"].values())


def test_a_missing_package_is_named_with_the_line_that_mends_it(recipe, tmp_path, monkeypatch):
    if recipe.config.type == "flat":
        pytest.skip("it needs none")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(approximate, "import_module", missing)
    with pytest.raises(
        PrerequisiteError, match=r'needs faiss-cpu, which is not installed — pip install "\.\[ann\]" in a clone'
    ):
        recipe.check(10, 4, Cache(tmp_path))


def test_it_says_what_it_costs(recipe, vectors):
    facts = opened(recipe, vectors).facts
    assert (facts.rows, facts.dims) == (ROWS, DIMS)
    assert facts.kind.startswith(recipe.config.type)
    assert facts.bytes > 0 and facts.memory > 0 and facts.build_s >= 0


def test_unit_rows_are_what_the_tests_think():
    assert np.allclose(np.linalg.norm(unit(np.ones((2, 3))), axis=1), 1)


def test_effort_is_a_setting_that_changes_the_search_alone(recipe, vectors):
    if not recipe.EFFORT:
        pytest.skip("a search of its own cannot look at more")
    queries, least = clusters(40, DIMS, seed=3), recipe.least_effort(10)
    wider = [type(recipe)(recipe.config.model_copy(update={recipe.EFFORT: effort})) for effort in (least, 8 * least)]
    folders, shares = [], []
    truth = vectors.search(queries, 10).positions
    for each in wider:
        found = opened(each, vectors).search(queries, 10).positions
        shares.append((found[:, :, None] == truth[:, None, :]).any(axis=2).mean())
        folders.append(sorted(path.name for path in vectors.cache.folder.iterdir() if path.is_dir()))
    assert shares[1] >= shares[0]
    assert folders[0] == folders[1]  # nothing was built anew
