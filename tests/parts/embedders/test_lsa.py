"""LSA: its vectors against an exact SVD, the same bytes in any process, the cache of the fit, texts without words."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.project import passages

from raggs.base.cache import Cache
from raggs.base.errors import PrerequisiteError
from raggs.parts.embedders import FittingTexts
from raggs.parts.embedders import lsa as module
from raggs.parts.embedders.lsa import LsaEmbedder, WordVectors, _SparseRows, fit, principal_directions

TEXTS = [f"{each['title']} {each['text']}" for each in passages(120)]


def made(texts=TEXTS, cache=None, **options):
    fitting = FittingTexts.of(texts)
    return LsaEmbedder(LsaEmbedder.Config(**options)).fitted(FittingTexts(fitting.key, fitting.texts, cache))


def random_rows(rows, columns, seed=0):
    draw = np.random.default_rng(seed)
    counts = [Counter(map(str, draw.zipf(1.5, 30) % columns)) for _ in range(rows)]
    names = {str(number): number for number in range(columns)}
    return _SparseRows.of(counts, names, np.linspace(1.0, 3.0, columns))


def dense(matrix):
    found = np.zeros((len(matrix.starts) - 1, matrix.width))
    for row, (start, stop) in enumerate(pairwise(matrix.starts)):
        found[row, matrix.columns[start:stop]] = matrix.values[start:stop]
    return found


def test_the_directions_are_those_of_an_exact_svd():
    matrix = random_rows(300, 90)
    found = principal_directions(matrix, 10)
    _, values, exact = np.linalg.svd(dense(matrix), full_matrices=False)
    assert np.abs((found * exact[:10].T).sum(axis=0)) == pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(dense(matrix) @ found, axis=0) == pytest.approx(values[:10], rel=1e-3)
    assert (np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], 0) > 0).all()


def test_the_blocks_multiply_as_the_whole_matrix(monkeypatch):
    matrix, basis = random_rows(130, 40), np.random.default_rng(1).standard_normal((40, 7))
    whole = dense(matrix)
    assert matrix.times_itself(basis) == pytest.approx(whole.T @ (whole @ basis))
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", 1)
    assert matrix.times_itself(basis) == pytest.approx(whole.T @ (whole @ basis))


def test_fewer_texts_than_dimensions_leave_zeros():
    vectors = made(["cats sleep", "dogs bark", "dogs sleep"]).embed(["dogs bark", "cats"])
    assert vectors.shape == (2, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert not vectors[:, 3:].any()


def test_words_that_share_texts_are_near_each_other():
    texts = ["the kitten and the cat", "a cat purrs", "the kitten purrs", "shares and bonds", "bonds and stocks"] * 3
    cat, kitten, bonds = made(texts, dims=2).embed(["cat", "kitten", "bonds"])
    assert cat @ kitten > 0.9 > 0.1 > cat @ bonds


@pytest.mark.parametrize("texts", [[], [""], ["the of and"], ["1"], ["\ud800"]])
def test_texts_without_words_give_zeros(texts):
    assert not made(texts).embed(["cats", "", "the"]).any()


@settings(max_examples=30)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=6))
def test_a_vector_does_not_depend_on_its_batch_and_has_unit_length_or_none(texts):
    embedder = made([*TEXTS[:20], *texts], dims=8)
    together = embedder.embed(texts)
    assert together.tobytes() == b"".join(embedder.embed([text]).tobytes() for text in texts)
    lengths = np.linalg.norm(together, axis=1)
    assert ((np.abs(lengths - 1) < 1e-6) | (lengths == 0)).all()


def test_quotes_and_accents_do_not_matter():
    embedder = made(["l'été à la plage", "the dog's bone", "un chat dort"])
    assert embedder.embed(["the dog’s bone"]).tobytes() == embedder.embed(["the dog's bone"]).tobytes()


PROGRAM = """
import hashlib, sys
from raggs.parts.embedders.lsa import fit
model = fit(sys.stdin.read().splitlines(), 32)
print(hashlib.sha256(model.vectors.tobytes() + " ".join(model.rows).encode()).hexdigest())
"""


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    "environment",
    [{}, {"OPENBLAS_NUM_THREADS": "1"}, {"OPENBLAS_CORETYPE": "Haswell"}, {"PYTHONHASHSEED": "7"}],
    ids=str,
)
def test_another_process_gives_the_same_bytes(environment):
    model = fit(TEXTS, 32)
    here = hashlib.sha256(model.vectors.tobytes() + " ".join(model.rows).encode()).hexdigest()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(TEXTS), capture_output=True, text=True, check=True,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.stdout.strip() == here


def test_components_are_on_a_grid_that_other_libraries_of_algebra_round_to():
    vectors = fit(TEXTS, 32).vectors
    assert vectors.dtype == np.float32 and vectors.any()
    assert (vectors * module.GRID == np.round(vectors * module.GRID)).all()


def test_long_texts_are_read_in_windows(monkeypatch):
    monkeypatch.setattr(module, "WORDS_PER_WINDOW", 4)
    assert list(module._windows(["a b c d e f", "g", ""])) == ["a b c", "d e f", "g", ""]


def test_memory_is_bounded_by_evenly_spaced_windows():
    assert module._spaced(map(str, range(8)), 8) == list("01234567")
    assert module._spaced(map(str, range(9)), 8) == list("02468")
    kept = module._spaced(map(str, range(1000)), 8)
    assert 4 <= len(kept) <= 8 and len({int(b) - int(a) for a, b in pairwise(kept)}) == 1


def test_the_most_frequent_words_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MAX_WORDS", 2)
    assert list(fit(["cat dog", "cat bird", "dog cat"], 4).rows) == ["cat", "dog"]


def test_without_texts_it_says_how_to_get_them():
    with pytest.raises(PrerequisiteError, match="lsa is fitted on a corpus, and none is given"):
        LsaEmbedder(LsaEmbedder.Config()).embed(["word"])


def test_the_identity_depends_on_texts_and_settings_only():
    assert made().identity == made().identity == made(batch=3).identity
    assert len({made().identity, made(dims=64).identity, made(TEXTS[1:]).identity}) == 3
    assert made().causes()["fitted on"] == FittingTexts.of(TEXTS).key()
    first = made()
    assert first.fitted(FittingTexts.of(["others"])) is first


def test_a_fit_is_cached_and_a_damaged_one_is_made_again(tmp_path, monkeypatch):
    told = []
    cache = Cache(tmp_path, told.append)
    before = made(cache=cache).embed(TEXTS[:3])
    with monkeypatch.context() as patch:
        patch.setattr(module, "fit", None)
        assert made(cache=cache).embed(TEXTS[:3]).tobytes() == before.tobytes()
    (file,) = tmp_path.glob("*/vectors.npy")
    file.write_bytes(file.read_bytes()[:-4] + b"\1\2\3\4")
    assert made(cache=cache).embed(TEXTS[:3]).tobytes() == before.tobytes()
    assert "damaged" in told[0]


def test_a_model_is_read_as_it_was_written(tmp_path):
    model = fit(["l'été", "le chat", "les chats dorment"], 4)
    model.write(tmp_path)
    found = WordVectors.read(tmp_path)
    assert (found.languages, found.rows) == (model.languages, model.rows)
    assert found.vectors.tobytes() == model.vectors.tobytes()
