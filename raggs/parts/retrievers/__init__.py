"""Retrievers by name: one file and one line each (see `base.Retriever`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.retrievers.base import Retriever

REGISTRY: Registry[Retriever] = Registry(
    "retriever",
    "retrievers",
    "raggs.parts.retrievers.base:Retriever",
    {
        "bm25": "raggs.parts.retrievers.bm25:Bm25Retriever",
        "dense": "raggs.parts.retrievers.dense:DenseRetriever",
        "elasticsearch": "raggs.parts.retrievers.elasticsearch:ElasticsearchRetriever",
        "python": "raggs.parts.retrievers.python:PythonRetriever",
        "reranked": "raggs.parts.retrievers.reranked:RerankedRetriever",
        "runfile": "raggs.parts.retrievers.runfile:RunFileRetriever",
    },
)
