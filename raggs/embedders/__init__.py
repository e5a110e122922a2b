"""Embedders by name: one file and one line each (see `base.Embedder`).

Imports: localmodels, llm, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.embedders.base import Embedder

REGISTRY: Registry[Embedder] = Registry(
    "embedder",
    "embedders",
    "raggs.embedders.base:Embedder",
    {
        "litellm": "raggs.embedders.litellm:LiteLLMEmbedder",
        "onnx": "raggs.embedders.onnx:OnnxEmbedder",
        "python": "raggs.embedders.python:PythonEmbedder",
        "wordllama": "raggs.embedders.wordllama:WordLlamaEmbedder",
    },
)
