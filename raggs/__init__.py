"""raggs builds golden sets for retrieval-augmented generation, and scores retrieval against them."""

from __future__ import annotations

__version__ = "0.1.0"
