"""Rerankers by name, who read a query with its best passages: one file and one line each (see `base.Reranker`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.rerankers.base import Reranker

REGISTRY: Registry[Reranker] = Registry(
    "reranker",
    "rerankers",
    "raggs.parts.rerankers.base:Reranker",
    {
        "boosted": "raggs.parts.rerankers.boosted:BoostedReranker",
        "late-interaction": "raggs.parts.rerankers.late:LateReranker",
        "listwise": "raggs.parts.rerankers.listwise:ListwiseReranker",
        "litellm": "raggs.parts.rerankers.litellm:LiteLLMReranker",
        "onnx": "raggs.parts.rerankers.onnx:OnnxReranker",
        "pointwise": "raggs.parts.rerankers.pointwise:PointwiseReranker",
        "python": "raggs.parts.rerankers.python:PythonReranker",
    },
)
