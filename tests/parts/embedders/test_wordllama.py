"""The default embedder: its vectors, their independence of the batch, and what it costs to ask its name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from raggs.base.errors import ProviderError
from raggs.parts.embedders import wordllama as module
from raggs.parts.embedders.wordllama import TOKENS_PER_BLOCK, WordLlamaEmbedder


@pytest.fixture(scope="module")
def embedder():
    return WordLlamaEmbedder(WordLlamaEmbedder.Config())


def test_unit_vectors_in_float32(embedder):
    vectors = embedder.embed(["boundary layer", "le chat dort", "x" * 500])
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)


def test_nothing_gives_zeros(embedder):
    vectors = embedder.embed(["", "word"])
    assert not vectors[0].any()
    assert vectors[1].any()
    assert embedder.embed([]).shape == (0, 256)


def test_meaning_is_nearer_than_noise(embedder):
    query, near, far = embedder.embed(["how do cats sleep", "a cat is sleeping", "stock market crash of 1929"])
    assert query @ near > query @ far + 0.2


def test_it_agrees_with_the_package(embedder):
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ["one", "a longer text about wings", "été"]
    assert embedder.embed(texts) == pytest.approx(model.embed(texts, norm=True), abs=1e-6)


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=6))
def test_a_vector_does_not_depend_on_its_batch(embedder, texts):
    together = embedder.embed(texts)
    small = WordLlamaEmbedder(WordLlamaEmbedder.Config(batch=1))
    small._model = embedder._model
    assert together.tobytes() == small.embed(texts).tobytes()
    assert embedder.embed(texts[-1:]).tobytes() == together[-1:].tobytes()


def test_a_text_longer_than_a_block(embedder):
    short, long = embedder.embed(["word", "word " * (TOKENS_PER_BLOCK + 10)])
    assert short @ long == pytest.approx(1, abs=0.05)


def test_a_table_that_was_widened_gives_the_same_bits():
    module._read.cache_clear()  # what another embedder of the process widened stays so
    fresh = WordLlamaEmbedder(WordLlamaEmbedder.Config(batch=1))
    texts = ["boundary layer", "le chat dort"]
    before = fresh.embed(texts)
    assert fresh._model.embedding.dtype == np.float16
    fresh.embed(["word " * (len(fresh._model.embedding) + 1)])
    assert fresh._model.embedding.dtype == np.float32
    assert fresh.embed(texts).tobytes() == before.tobytes()


@pytest.mark.parametrize("dims", [64, 128])
def test_shorter_vectors_are_the_leading_dimensions(embedder, dims):
    short = WordLlamaEmbedder(WordLlamaEmbedder.Config(dims=dims))
    head = embedder.embed(["a wing in a slipstream"])[:, :dims]
    assert short.embed(["a wing in a slipstream"]) == pytest.approx(head / np.linalg.norm(head), abs=1e-6)
    assert short.identity.endswith(f"_{dims}")


def test_dimensions_that_the_package_does_not_hold():
    with pytest.raises(ValidationError, match="64, 128 or 256"):
        WordLlamaEmbedder.Config(dims=512)


def test_a_table_with_nan_is_refused(embedder):
    broken = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    broken._model = replace(embedder._model, embedding=np.full_like(embedder._model.embedding, np.nan))
    with pytest.raises(ProviderError, match="not finite"):
        broken.embed(["word"])


@pytest.mark.parametrize("damage", ["absent", "empty", "garbage"])
def test_files_that_cannot_be_read_are_one_sentence(damage, tmp_path, monkeypatch):
    for name in ("tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors"):
        (tmp_path / name).parent.mkdir()
        if damage != "absent":
            (tmp_path / name).write_bytes(b"" if damage == "empty" else b"\0" * 100)
    monkeypatch.setattr("raggs.parts.embedders.wordllama._folder", lambda: tmp_path)
    with pytest.raises(ProviderError, match=r"weights cannot be loaded .* reinstall wordllama"):
        WordLlamaEmbedder(WordLlamaEmbedder.Config()).embed(["word"])


def test_its_identity_loads_no_model():
    code = (
        "import sys; from raggs.parts.embedders.wordllama import WordLlamaEmbedder as E; e = E(E.Config());"
        "print(e.identity, e.dims, 'wordllama' in sys.modules)"
    )
    root = Path(__file__).parents[3]
    answer = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [f"wordllama/{version('wordllama')}/l2_supercat_256", "256", "False"]


def test_a_question_has_one_vector_whoever_typed_its_apostrophes():
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    plain, typed = embedder.embed(["Qu'est-ce que l'eau d'une \"source\" ?", "Qu’est-ce que l’eau d’une “source” ?"])
    assert plain.tobytes() == typed.tobytes()
