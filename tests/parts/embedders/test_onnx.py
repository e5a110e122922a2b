"""Embedding models of this machine: the vectors of a small model made here, beside the same sums by NumPy."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from support.onnx_models import DIMS, vectors, write_cross_encoder, write_embedder
from support.project import make_project, raggs

from raggs.base.errors import ConfigError, DataError, NotFoundError, ProviderError
from raggs.parts.embedders.onnx import OnnxEmbedder

TEXTS = ["The lift of a wing.", "A cat sleeps on the mat for most of the day.", "unknown words alone", "wing"]


@pytest.fixture
def tokenizer(tmp_path):
    return write_embedder(tmp_path / "model")


@pytest.fixture
def make(tmp_path):
    return lambda folder=tmp_path / "model", **options: OnnxEmbedder(OnnxEmbedder.Config(path=folder, **options), None)


def expected(tokenizer, texts, pooling="mean", dims=DIMS):
    rows = []
    for text in texts:
        words = vectors().astype(np.float64)[tokenizer.encode(text).ids]
        row = (words[0] if pooling == "cls" else words.mean(axis=0))[:dims]
        rows.append(row / np.linalg.norm(row))
    return np.array(rows)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dims", [None, 5])
def test_a_vector_is_pooled_cut_and_at_unit_length(make, tokenizer, pooling, batch, dims):
    embedder = make(pooling=pooling, batch=batch, dims=dims)
    found = embedder.embed(TEXTS)
    assert found.dtype == np.float32
    assert embedder.dims == (dims or DIMS)
    np.testing.assert_allclose(found, expected(tokenizer, TEXTS, pooling, dims or DIMS), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)


def test_of_a_blank_text_zeros_and_of_none_nothing(make, tokenizer):
    found = make(passage_prefix="passage: ").embed(["wing", "", " \u00a0\n"])
    assert found.any(axis=1).tolist() == [True, False, False]
    assert make().embed([]).shape == (0, DIMS)


def test_questions_and_passages_get_their_own_words_in_front(make, tokenizer):
    embedder = make(query_prefix="query: ", passage_prefix="passage: ")
    asked, held = embedder.embed_queries(["wing"]), embedder.embed(["wing"])
    np.testing.assert_allclose(asked, expected(tokenizer, ["query: wing"]), rtol=1e-5)
    np.testing.assert_allclose(held, expected(tokenizer, ["passage: wing"]), rtol=1e-5)
    assert (make().embed_queries(["wing"]) == make().embed(["wing"])).all()


def test_what_is_too_long_is_cut(make, tokenizer):
    tokenizer.enable_truncation(9)
    np.testing.assert_allclose(
        make(max_length=9).embed(["the wing " * 400]), expected(tokenizer, ["the wing " * 400]), rtol=1e-5
    )


def test_a_model_that_pools_itself_is_taken_at_its_word(make, tmp_path):
    tokenizer = write_embedder(tmp_path / "model", pooled=True)
    np.testing.assert_allclose(make().embed(TEXTS[:1]), expected(tokenizer, TEXTS[:1]), rtol=1e-5)
    assert make().dims == DIMS


def test_its_name_is_its_content_and_how_it_is_read(make, tokenizer, tmp_path):
    first = make()
    assert first.identity.startswith(f"onnx/{DIMS}/")
    moved = make(shutil.copytree(tmp_path / "model", tmp_path / "moved"))
    assert moved.identity == first.identity
    assert moved.causes() == first.causes() == json.loads(json.dumps(first.causes()))
    names = {first.identity, make(threads=1).identity}
    assert len(names) == 1
    for options in ({"pooling": "cls"}, {"dims": 4}, {"max_length": 64}, {"batch": 2}, {"passage_prefix": "a "}):
        names.add(make(**options).identity)
    write_embedder(tmp_path / "moved", seed=2)
    names.add(make(tmp_path / "moved").identity)
    assert len(names) == 7


def test_its_length_is_told_without_loading_it(make, tokenizer, tmp_path):
    (tmp_path / "model" / "model.onnx").write_bytes(b"not loaded")
    (tmp_path / "model" / "config.json").write_text('{"hidden_size": 384}')
    assert make().dims == 384
    (tmp_path / "model" / "config.json").write_text("[" * 9999)
    with pytest.raises(DataError, match="not a model"):
        _ = make().dims


def test_what_cannot_be_is_a_sentence(make, tokenizer, tmp_path):
    with pytest.raises(ConfigError, match="dims is 9, but the model has only 8"):
        make(dims=9).embed(["a"])
    (tmp_path / "model" / "config.json").write_text('{"hidden_size": 16}')
    with pytest.raises(ProviderError, match=r"returned 'last_hidden_state' of shape \(1, 3, 8\), not 16 numbers"):
        make(dims=16).embed(["wing"])
    write_cross_encoder(tmp_path / "pairs")
    with pytest.raises(ProviderError, match="returned 'logits' "):
        make(tmp_path / "pairs").embed(["wing"])
    with pytest.raises(NotFoundError, match="model folder not found"):
        make(tmp_path / "nowhere", dims=4).causes()


@pytest.mark.parametrize("said", [4, 16])
def test_a_config_that_says_another_length_than_the_models_is_refused(make, tokenizer, tmp_path, said):
    (tmp_path / "model" / "config.json").write_text(json.dumps({"hidden_size": said}))
    with pytest.raises(DataError, match=rf"config\.json: contains {said} dimensions, but the model returns 8"):
        make().embed(["wing"])
    (tmp_path / "model" / "config.json").write_text(json.dumps({"hidden_size": 0, "dim": True}))
    assert make().embed(["wing"]).shape == (1, DIMS)


def test_a_run_finds_by_it_and_nothing_is_done_twice(tmp_path):
    embedder = {"type": "onnx", "path": "model", "query_prefix": "query: "}
    project = make_project(
        tmp_path / "demo",
        queries=2,
        corpus=12,
        embed={"embedder": embedder},
        retrieve={"retrievers": [{"type": "dense"}]},
    )
    told = raggs("run", "--config", project.config, "--to", "retrieve")
    assert (told.returncode, "model folder not found" in told.stderr) == (4, True)
    write_embedder(project.folder / "model")
    done = raggs("run", "--config", project.config, "--to", "retrieve")
    assert done.returncode == 0, done.stderr
    assert "Nothing to do" in raggs("run", "--config", project.config, "--to", "retrieve").stdout
