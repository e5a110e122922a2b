"""Embedders by name: one file and one line each (see `base.Embedder`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.embedders.base import Embedder

REGISTRY: Registry[Embedder] = Registry(
    "embedder",
    "embedders",
    "raggs.parts.embedders.base:Embedder",
    {
        "litellm": "raggs.parts.embedders.litellm:LiteLLMEmbedder",
        "onnx": "raggs.parts.embedders.onnx:OnnxEmbedder",
        "python": "raggs.parts.embedders.python:PythonEmbedder",
        "wordllama": "raggs.parts.embedders.wordllama:WordLlamaEmbedder",
    },
)
