"""Retrievers by name: one file and one line each (see `base.Retriever`).

Imports: rerankers, indexes, elastic, probes, fusion, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.retrievers.base import Retriever

REGISTRY: Registry[Retriever] = Registry(
    "retriever",
    "retrievers",
    "raggs.retrievers.base:Retriever",
    {
        "bm25": "raggs.retrievers.bm25:Bm25Retriever",
        "dense": "raggs.retrievers.dense:DenseRetriever",
        "elasticsearch": "raggs.retrievers.elasticsearch:ElasticsearchRetriever",
        "python": "raggs.retrievers.python:PythonRetriever",
        "reranked": "raggs.retrievers.reranked:RerankedRetriever",
        "runfile": "raggs.retrievers.runfile:RunFileRetriever",
    },
)
