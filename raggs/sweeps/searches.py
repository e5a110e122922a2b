"""The searches that a system is made of, as values: equal ones are made once for all systems.

Exact searches go to the greatest depth that any system needs, since their 200 best hold their 50 best; an approximate
index may look harder when more is asked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raggs.base.adapter import AdapterConfig
from raggs.parts.chunkers.base import ChunkerConfig
from raggs.parts.embedders.base import EmbedderConfig
from raggs.parts.retrievers.base import RetrieverConfig
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.sweeps.config import Hybrid
from raggs.sweeps.grid import System

EXACT = "flat"


@dataclass(frozen=True)
class Search:
    """One retriever of a system: its settings, what its questions are, and how its passages are cut."""

    retriever: RetrieverConfig
    rewrite: AdapterConfig
    embedder: EmbedderConfig | None
    chunker: ChunkerConfig | None = None


def searches_of(system: System, systems: Sequence[System], hybrid: Hybrid) -> tuple[Search, ...]:
    """The retrievers of a system, each as deep as it is searched.

    Args:
        systems: all of them, which decides how deep exact searches are.
        hybrid: how the modes lexical and hybrid search.
    """
    match system.mode:
        case "dense":
            return (_dense(system, _deepest(system, systems)),)
        case "lexical":
            return (_plain(system, hybrid.lexical.model_copy(update={"k": _deepest(system, systems)})),)
        case "hybrid":
            lexical = hybrid.lexical.model_copy(update={"k": hybrid.depth})
            return (_dense(system, hybrid.depth), _plain(system, lexical))
    own = system.own or hybrid.lexical
    retriever = own.model_copy(update={"k": system.k})
    return (Search(retriever, system.rewrite, system.embedder, system.chunker),)


def _dense(system: System, depth: int) -> Search:
    spec: dict[str, object] = {"type": "dense", "k": depth}
    if system.index is not None and system.index.type != EXACT:
        spec["index"] = system.index
    retriever = DenseRetriever.Config.model_validate(spec)
    return Search(retriever, system.rewrite, system.embedder, system.chunker)


def _plain(system: System, retriever: RetrieverConfig) -> Search:
    return Search(retriever, system.rewrite, None, system.chunker)


def _deepest(system: System, systems: Sequence[System]) -> int:
    """The greatest k of the systems that search alike; its own where k changes how an index is searched."""
    if system.index is not None and system.index.type != EXACT:
        return system.k
    return max(each.k for each in systems if _alike(each) == _alike(system))


def _alike(system: System) -> tuple[object, ...]:
    """What systems share that search alike."""
    return system.mode, system.rewrite, system.embedder, system.index, system.chunker
