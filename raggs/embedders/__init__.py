"""Embedders by name: one file and one line each (see `base.Embedder`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "embedder",
    {
        "litellm": "raggs.embedders.litellm:LiteLLMEmbedder",
        "wordllama": "raggs.embedders.wordllama:WordLlamaEmbedder",
    },
)
