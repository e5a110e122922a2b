"""Everything that has a name: adapters, engines, prompts, artifacts and their schemas."""

from __future__ import annotations

import inspect
from typing import Any

from raggs import corpora, embedders, execution, exporters, judges, queries, retrievers, rewriters
from raggs.artifacts import ARTIFACTS
from raggs.config.models import RunConfig
from raggs.errors import UsageError
from raggs.fusion import METHODS
from raggs.llm.ledger import FILE as LEDGER
from raggs.llm.ledger import LedgerLine
from raggs.manifests.models import RunManifest
from raggs.manifests.opened import model_of
from raggs.prompts import known_prompts
from raggs.ranking import ENGINES, engine_class
from raggs.stages import ORDER, load_stage
from raggs.text import nearest

REGISTRIES = {
    "corpora": corpora.REGISTRY,
    "queries": queries.REGISTRY,
    "embedders": embedders.REGISTRY,
    "rewriters": rewriters.REGISTRY,
    "retrievers": retrievers.REGISTRY,
    "judges": judges.REGISTRY,
    "exporters": exporters.REGISTRY,
    "executions": execution.REGISTRY,
}


def catalog(kind: str | None = None) -> dict[str, dict[str, str]]:
    """Names and one-line summaries, by kind.

    Raises:
        UsageError: no such kind; the message lists the known ones.
    """
    found = {title: {name: registry.summary(name) for name in registry} for title, registry in REGISTRIES.items()}
    found["fusions"] = {name: method.summary for name, method in METHODS.items()}
    found["engines"] = {name: _first_line(engine_class(name)) for name in ENGINES}
    found["prompts"] = known_prompts()
    found["stages"] = {name: _first_line(inspect.getmodule(type(load_stage(name)))) for name in ORDER}
    found["artifacts"] = {name: _first_line(model) for name, model in ARTIFACTS.items()}
    if kind is None:
        return found
    if kind not in found:
        close = nearest(kind, found)
        hint = f"did you mean {close!r}? " if close else ""
        raise UsageError(f"there is no list of {kind!r}", remedy=f"{hint}known: {', '.join(found)}")
    return {kind: found[kind]}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of an artifact's records, of ``manifest``, of ``llm.ledger`` or of ``config``.

    Raises:
        UsageError: no such name.
    """
    name = name.removesuffix(".jsonl").removesuffix(".json")
    if name == "manifest":
        return RunManifest.model_json_schema()
    if name == LEDGER.removesuffix(".jsonl"):
        return LedgerLine.model_json_schema()
    if name == "config":
        return RunConfig.model_json_schema()
    return model_of(name).model_json_schema()


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]
