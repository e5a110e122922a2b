"""Bytes of a system's vectors and index, as its index states them, and the same at a million and at ten million."""

from __future__ import annotations

from raggs.parts.indexes.base import IndexFacts
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.stats.decision.memory import measured_memory
from raggs.sweeps.grid import System
from raggs.sweeps.models import MemoryPart
from raggs.sweeps.parts import Parts

MILLION = 1_000_000


def memory_of(system: System, parts: Parts) -> MemoryPart | None:
    """What a system holds in memory; None where it searches no vectors of raggs."""
    for search in parts.searches(system):
        retriever = parts.retriever(search)
        if isinstance(retriever, DenseRetriever):
            return _part(retriever.facts)
    return None


def _part(facts: IndexFacts) -> MemoryPart:
    held = measured_memory(facts.rows, facts.memory)
    return MemoryPart(
        kind=facts.kind,
        rows=facts.rows,
        dims=facts.dims,
        bytes=facts.memory,
        million=round(held.at(MILLION).total),
        ten_million=round(held.at(10 * MILLION).total),
        built_s=facts.build_s,
    )
