"""What searching needs on disk: the passages of a corpus, their vectors, and indexes over these.

The indexes over vectors have names (see `base.Index`).

Imports: leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.indexes.base import Index

REGISTRY: Registry[Index] = Registry(
    "index",
    "indexes",
    "raggs.indexes.base:Index",
    {
        "flat": "raggs.indexes.flat:FlatIndex",
        "hnsw": "raggs.indexes.hnsw:HnswIndex",
        "ivf": "raggs.indexes.ivf:IvfIndex",
    },
)
