"""The run that a router becomes: the configuration that was named, with `retrieve.depth` and retrievers for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from raggs.config.models import RunConfig
from raggs.parts.embedders.base import EmbedderConfig
from raggs.parts.rerankers.base import RerankerConfig
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.depth import NEEDED, RoutedDepth

HEAD = (
    "# {name}: some questions are searched {deep} deep, the others {base}, as `raggs diagnose depth` found worth it.\n"
)
SUFFIX = "-routed"
LONGEST = 120


def routed_config(run: RunConfig, depth: RoutedDepth, embedder: EmbedderConfig, reranker: RerankerConfig | None) -> str:
    """The YAML, with whole paths, so that it may lie anywhere.

    Args:
        run: what was named.
        embedder, reranker: that were measured.
    """
    import yaml

    tree = _plain(run.model_dump(exclude_unset=True))
    if not isinstance(tree, dict):
        raise TypeError("a configuration is a mapping")
    name = f"{run.name[: LONGEST - len(SUFFIX)]}{SUFFIX}"
    embed = {**_section(tree, "embed"), "embedder": _settings(embedder)}
    retrieve = {"retrievers": _retrievers(run, depth, reranker), "depth": _settings(depth)}
    here = {"name": name, "workspace": str(run.workspace.absolute())}  # caches and runs lie where they lay
    found = {**tree, **here, "embed": embed, "retrieve": retrieve}
    RunConfig.model_validate(found)
    head = HEAD.format(name=name, deep=depth.deep, base=depth.base)
    return head + yaml.safe_dump(found, sort_keys=False, allow_unicode=True)


def _retrievers(run: RunConfig, depth: RoutedDepth, reranker: RerankerConfig | None) -> list[dict[str, object]]:
    """Those of the run without a depth of their own, and what the signals are read off where it is not there."""
    found = [_without_k(_settings(spec)) for spec in run.retrieve.retrievers]
    there = {REGISTRY.of(spec).reads(spec) for spec in run.retrieve.retrievers}
    needed = {reads for signal in depth.when.thresholds for reads in NEEDED.get(signal, ())}
    found += [{"type": "dense"}] if "vectors" in needed - there else []
    found += [{"type": "bm25"}] if "words" in needed - there else []
    if "candidates" in needed - there and reranker is not None:
        found.append({"type": "reranked", "of": {"type": "dense"}, "by": _settings(reranker)})
    return found


def _without_k(spec: dict[str, object]) -> dict[str, object]:
    """The settings of a retriever without its depth, nor that of the one whose hits it orders."""
    found = {name: value for name, value in spec.items() if name != "k"}
    inner = found.get("of")
    return {**found, "of": _without_k(inner)} if isinstance(inner, dict) else found


def _settings(part: BaseModel, **more: object) -> dict[str, object]:
    """What was said of a part, and its type."""
    kept = {"type": getattr(part, "type", None), **part.model_dump(exclude_unset=True), **more}
    return {name: _plain(value) for name, value in kept.items()}


def _section(tree: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _plain(value: object) -> object:
    """Plain values; paths whole."""
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value.absolute()) if isinstance(value, Path) else value
