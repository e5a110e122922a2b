"""What searching needs on disk: the passages of a corpus, their vectors, and indexes over these.

The indexes over vectors have names (see `base.Index`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.indexes.base import Index

REGISTRY: Registry[Index] = Registry(
    "index",
    "indexes",
    "raggs.parts.indexes.base:Index",
    {
        "flat": "raggs.parts.indexes.flat:FlatIndex",
        "hnsw": "raggs.parts.indexes.hnsw:HnswIndex",
        "ivf": "raggs.parts.indexes.ivf:IvfIndex",
    },
)
