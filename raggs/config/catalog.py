"""Everything that has a name: adapters, engines, measures, prompts, artifacts and their schemas."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
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
from raggs.metrics.measures import MEASURES
from raggs.prompts import known_prompts
from raggs.ranking import ENGINES, engine_class
from raggs.registry import Registry
from raggs.stages import ORDER, load_stage
from raggs.text import nearest

REGISTRIES: dict[str, Registry[object]] = {
    "corpora": corpora.REGISTRY,
    "queries": queries.REGISTRY,
    "embedders": embedders.REGISTRY,
    "rewriters": rewriters.REGISTRY,
    "retrievers": retrievers.REGISTRY,
    "judges": judges.REGISTRY,
    "exporters": exporters.REGISTRY,
    "executions": execution.REGISTRY,
}


@dataclass(frozen=True)
class MeasureEntry:
    """What is to be said about a measure of retrieval.

    Attributes:
        summary: one line.
        written: its name with its cutoff, in brackets where it may be left out.
        formula, source: the definition, and who gave it.
        range: the least and the largest value; None where there is no bound.
        better: "higher" or "lower".
        parameters: with their usual values; None where the scale of the judgments says.
        aliases: other names.
        grades: whether it needs the grades 1 to 5 of a golden set.
        ties: whether E[...], range[...], bias[...], min[...] and max[...] of it are known.
    """

    summary: str
    written: str
    formula: str
    range: tuple[float | None, float | None]
    source: str
    better: str
    parameters: Mapping[str, float | None]
    aliases: tuple[str, ...]
    grades: bool
    ties: bool


def measure_entries() -> dict[str, MeasureEntry]:
    """All measures by name."""
    return {
        name: MeasureEntry(
            summary=_first_line(measure),
            written=f"{name}@k" if measure.CUTOFF == "needed" else f"{name}[@k]",
            formula=measure.FORMULA,
            range=(_bound(measure.RANGE[0]), _bound(measure.RANGE[1])),
            source=measure.SOURCE,
            better="higher" if measure.HIGHER else "lower",
            parameters=dict(measure.PARAMS),
            aliases=measure.ALIASES,
            grades=measure.GOLDEN,
            ties=measure.TIES,
        )
        for name, measure in MEASURES.items()
    }


def _bound(value: float) -> float | None:
    return value if math.isfinite(value) else None


def catalog(kind: str | None = None) -> dict[str, dict[str, str]]:
    """Names and one-line summaries, by kind.

    Raises:
        UsageError: no such kind; the message lists the known ones.
    """
    found = {title: {name: registry.summary(name) for name in registry} for title, registry in REGISTRIES.items()}
    found["fusions"] = {name: method.summary for name, method in METHODS.items()}
    found["engines"] = {name: _first_line(engine_class(name)) for name in ENGINES}
    found["measures"] = {name: _first_line(measure) for name, measure in MEASURES.items()}
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
