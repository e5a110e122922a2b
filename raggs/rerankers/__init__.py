"""Rerankers by name, who read a query with its best passages: one file and one line each (see `base.Reranker`).

Imports: tools, libraries, llm, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.rerankers.base import Reranker

REGISTRY: Registry[Reranker] = Registry(
    "reranker",
    "rerankers",
    "raggs.rerankers.base:Reranker",
    {
        "boosted": "raggs.rerankers.boosted:BoostedReranker",
        "late-interaction": "raggs.rerankers.late:LateReranker",
        "listwise": "raggs.rerankers.listwise:ListwiseReranker",
        "litellm": "raggs.rerankers.litellm:LiteLLMReranker",
        "onnx": "raggs.rerankers.onnx:OnnxReranker",
        "pointwise": "raggs.rerankers.pointwise:PointwiseReranker",
        "python": "raggs.rerankers.python:PythonReranker",
    },
)
