"""The embedder of a provider, alone and in a whole run."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from support.llm_server import embedding
from support.project import make_project

from raggs.app.run import run
from raggs.base.errors import ConfigError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.embedders import EmbedderContext
from raggs.parts.embedders.litellm import LiteLLMEmbedder

MODEL = "openai/embedder"


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make(server):
    with asyncio.Runner() as loop:
        settings = LLMSettings(api_base=server.url)
        llm = LLM(settings, BudgetSettings(max_usd=None), None)
        yield lambda **config: LiteLLMEmbedder(LiteLLMEmbedder.Config(**config), EmbedderContext(llm, lambda: loop))
        loop.run(llm.close())


def test_vectors_have_unit_length_and_blank_texts_none(make, server):
    found = make(model=MODEL, dims=8).embed(["a", " ", "b"])
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 0, 1], abs=1e-6)
    expected = np.array(embedding("a", 8))
    np.testing.assert_allclose(found[0], expected / np.linalg.norm(expected), atol=1e-6)
    assert server.requests[0]["input"] == ["a", "b"]


def test_the_length_of_a_known_model_is_known_and_a_shorter_one_is_asked_for(make, server):
    assert make(model="openai/text-embedding-3-small").dims == 1536
    assert make(model="openai/text-embedding-3-small", dims=4).embed(["a"]).shape == (1, 4)
    assert server.requests[0]["dimensions"] == 4


def test_an_unknown_length_is_asked_for(make):
    with pytest.raises(ConfigError, match=r"set embed\.embedder\.dims"):
        _ = make(model=MODEL).dims


def test_a_misspelled_model_is_corrected():
    llm = LLM(LLMSettings(), BudgetSettings(max_usd=None), None)
    context = EmbedderContext(llm, asyncio.Runner)
    embedder = LiteLLMEmbedder(LiteLLMEmbedder.Config(model="openai/text-embeding-3-small"), context)
    with pytest.raises(ConfigError) as caught:
        _ = embedder.dims
    assert "use openai/text-embedding-3-small if you meant that" in str(caught.value)


def test_whatever_changes_vectors_changes_the_identity(make):
    configs = [
        {"model": MODEL, "dims": 8},
        {"model": MODEL, "dims": 9},
        {"model": "openai/other", "dims": 8},
        {"model": MODEL, "dims": 8, "parameters": {"input_type": "query"}},
    ]
    assert len({make(**config).identity for config in configs}) == 4
    assert make(**configs[0], batch=1).identity == make(**configs[0]).identity


def test_a_run_with_a_providers_vectors_is_booked_and_pays_once(server, tmp_path):
    project = make_project(tmp_path, queries=3, corpus=12)
    project.change(
        embed={"embedder": {"type": "litellm", "model": MODEL, "dims": 8, "batch": 5}},
        llm={"api_base": server.url, "prices": {MODEL: {"input": 1.0, "output": 0.0}}},
    )
    manifest = run(project.config).manifest
    costs = {name: lock.cost for name, lock in manifest.stages.items()}
    assert (costs["embed"].calls, costs["retrieve"].calls) == (1, 3)
    assert costs["embed"].usd > 0
    lines = [json.loads(line) for line in (project.run / "llm.ledger.jsonl").read_text().splitlines()]
    assert [(line["stage"], line["task"], line["qid"]) for line in lines] == [("embed", "embed", "")] + [
        ("retrieve", "embed", "")
    ] * 3
    run(project.config, force=True)
    assert server.count == 4, "forced again, every vector is there"
