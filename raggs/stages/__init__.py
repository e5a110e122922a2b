"""The six stages in their order. Each is one file; none knows another.

Imports: adapters, chunkers, embedders, probes, libraries, llm, health, leaves.
"""

from __future__ import annotations

from raggs.artifacts import ARTIFACTS
from raggs.stages.pipeline import Pipeline

GOLDEN = Pipeline(
    "golden",
    "raggs.stages",
    ("embed", "retrieve", "merge", "judge", "prune", "rank"),
    ARTIFACTS,
    optional=frozenset({"rank"}),
)
