"""The six stages in their order. Each is one file; none knows another."""

from __future__ import annotations

from raggs.base.artifacts import ARTIFACTS
from raggs.stages.pipeline import Pipeline

GOLDEN = Pipeline(
    "golden",
    "raggs.stages",
    ("embed", "retrieve", "merge", "judge", "prune", "rank"),
    ARTIFACTS,
    optional=frozenset({"rank"}),
)
