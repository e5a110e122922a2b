"""Retrievers by name: one file and one line each (see `base.Retriever`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "retriever",
    {
        "bm25": "raggs.retrievers.bm25:Bm25Retriever",
        "dense": "raggs.retrievers.dense:DenseRetriever",
        "elasticsearch": "raggs.retrievers.elasticsearch:ElasticsearchRetriever",
        "runfile": "raggs.retrievers.runfile:RunFileRetriever",
    },
)
