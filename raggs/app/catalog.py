"""Everything that has a name: adapters, engines, measures, prompts, artifacts and their schemas.

The prompts that come with raggs, to be read, and to be begun from with one's own.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raggs import diagnosis, ranking, reporting
from raggs.base.errors import NotFoundError, PrerequisiteError, UsageError
from raggs.base.registry import RAGGS, Registry
from raggs.base.text import did_you_mean
from raggs.config.models import RunConfig
from raggs.evaluation import analyses
from raggs.golden import formats
from raggs.llm.ledger import INTENTS_FILE as INTENTS
from raggs.llm.ledger import LEDGER_FILE as LEDGER
from raggs.llm.ledger import CallIntent, LedgerLine
from raggs.metrics.measure import Measure
from raggs.metrics.measures import REGISTRY as MEASURES
from raggs.parts import (
    askers,
    chunkers,
    corpora,
    documents,
    embedders,
    indexes,
    judges,
    noises,
    perturbers,
    queries,
    rerankers,
    retrievers,
    rewriters,
)
from raggs.prompts import FALLBACK, known_prompts, shipped_prompt
from raggs.ranking import fusion
from raggs.runs import execution
from raggs.runs.manifests.models import RunManifest
from raggs.stages.pipeline import pipelines

REGISTRIES: dict[str, Registry[object]] = {
    "corpora": corpora.REGISTRY,
    "documents": documents.REGISTRY,
    "chunkers": chunkers.REGISTRY,
    "queries": queries.REGISTRY,
    "embedders": embedders.REGISTRY,
    "rewriters": rewriters.REGISTRY,
    "retrievers": retrievers.REGISTRY,
    "rerankers": rerankers.REGISTRY,
    "indexes": indexes.REGISTRY,
    "judges": judges.REGISTRY,
    "askers": askers.REGISTRY,
    "exporters": formats.EXPORTERS,
    "importers": formats.IMPORTERS,
    "executions": execution.REGISTRY,
    "perturbers": perturbers.REGISTRY,
    "noises": noises.REGISTRY,
    "analyses": analyses.REGISTRY,
    "sections": reporting.REGISTRY,
    "diagnoses": diagnosis.REGISTRY,
    "fusions": fusion.REGISTRY,
    "engines": ranking.REGISTRY,
    "measures": MEASURES,
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
        origin: the package that gives it, and its version.
        ties: whether E[...], range[...], range_at_k[...], bias[...], min[...] and max[...] of it are known.
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
    origin: str


def measure_entries() -> dict[str, MeasureEntry]:
    """All measures that can be used, by name."""
    usable = [name for name, entry in _entries("measures").items() if entry.usable]
    return {name: _measure_entry(name, MEASURES.load(name)) for name in usable}


def _measure_entry(name: str, measure: type[Measure]) -> MeasureEntry:
    return MeasureEntry(
        summary=_first_line(measure),
        written=_written(name, measure),
        formula=measure.FORMULA,
        range=(_bound(measure.RANGE[0]), _bound(measure.RANGE[1])),
        source=measure.SOURCE,
        better="higher" if measure.HIGHER else "lower",
        parameters={key: parameter.usual for key, parameter in measure.PARAMS.items()},
        aliases=measure.ALIASES,
        grades=measure.GOLDEN,
        ties=measure.TIES,
        origin=str(MEASURES.origin(name)),
    )


def _written(name: str, measure: type[Measure]) -> str:
    if measure.AT is not None:
        return f"{name}@{measure.AT}"
    return f"{name}@k" if measure.CUTOFF == "needed" else f"{name}[@k]"


def _bound(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Entry:
    """What is to be said about a name: one line, and the package that gives it; `usable` where that can be used."""

    summary: str
    package: str = RAGGS.name
    version: str = RAGGS.version
    usable: bool = True

    @property
    def origin(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"


def catalog(kind: str | None = None) -> dict[str, dict[str, Entry]]:
    """Everything that has a name, by kind; what a package adds and nobody can use is there, with the reason.

    Raises:
        UsageError: no such kind; the message lists the known ones.
    """
    kinds = [*REGISTRIES, *OTHERS]
    if kind is not None and kind not in kinds:
        raise UsageError(f"there is no list of {kind!r}", remedy=did_you_mean(kind, kinds))
    return {title: _entries(title) for title in kinds if kind in (None, title)}


def _entries(title: str) -> dict[str, Entry]:
    if title in OTHERS:
        return {name: Entry(summary) for name, summary in OTHERS[title]().items()}
    registry = REGISTRIES[title]
    found = {name: _entry(registry, name) for name in registry}
    for plugin in registry.shadowed():
        message = f"not used: raggs has a {registry.kind} of this name itself"
        found[f"{plugin.point.name} of {plugin.package.name}"] = Entry(message, *plugin.package, usable=False)
    return found


def _entry(registry: Registry[object], name: str) -> Entry:
    try:
        return Entry(registry.summary(name), *registry.origin(name))
    except PrerequisiteError as error:
        packages = registry.packages(name)
        return Entry(error.message, " and ".join(each.name for each in packages), packages[0].version, usable=False)


OTHERS: dict[str, Callable[[], dict[str, str]]] = {
    "prompts": known_prompts,
    "stages": lambda: {
        name: _first_line(inspect.getmodule(type(each.stage(name)))) for each in pipelines() for name in each.order
    },
    "artifacts": lambda: {name: _first_line(model) for each in pipelines() for name, model in each.artifacts.items()},
}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of an artifact's records, of ``manifest``, ``llm.ledger``, ``config``, or a report's file.

    ``llm.intents`` has one as well. Reports are ``diff``, ``sweep``, ``chunks`` and ``diagnose``.

    Raises:
        UsageError: no such name.
    """
    name = name.removesuffix(".jsonl").removesuffix(".json")
    if name == "manifest":
        return RunManifest.model_json_schema()
    if name == LEDGER.removesuffix(".jsonl"):
        return LedgerLine.model_json_schema()
    if name == INTENTS.removesuffix(".jsonl"):
        return CallIntent.model_json_schema()
    if name == "config":
        return RunConfig.model_json_schema()
    if name == "sweep":
        from raggs.sweeps.models import SweepReport

        return SweepReport.model_json_schema(mode="serialization")
    if name == "diff":
        from raggs.evaluation.diffs.models import DiffReport

        return DiffReport.model_json_schema(mode="serialization")
    if name == "diagnose":
        from raggs.diagnosis.models import report_schema

        return report_schema()
    if name == "chunks":
        from raggs.chunking.models import ChunkReport

        return ChunkReport.model_json_schema(mode="serialization")
    artifacts = {artifact: model for pipeline in pipelines() for artifact, model in pipeline.artifacts.items()}
    if name not in artifacts:
        raise UsageError(f"there is no artifact {name!r}", remedy=did_you_mean(name, artifacts))
    return artifacts[name].model_json_schema()


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


@dataclass(frozen=True)
class PromptPage:
    """One language of a prompt, as its file has it.

    Attributes:
        name, language: which one this is.
        languages: all that there are.
        note: what it is for, in one line of that language.
        sha256: of all that can be sent, over all languages: what answers in the cache depend on.
        markdown: the file, as `judge.prompt` and its like take one.
    """

    name: str
    language: str
    languages: tuple[str, ...]
    note: str
    sha256: str
    markdown: str


def prompt_page(name: str, language: str = FALLBACK) -> PromptPage:
    """A prompt in one of its languages.

    Raises:
        ConfigError: no such prompt.
        NotFoundError: not in that language.
    """
    prompt, files = shipped_prompt(name)
    if language not in files:
        remedy = did_you_mean(language, files)
        raise NotFoundError(f"{name} is not there in {language!r}; questions in it get {FALLBACK!r}", remedy=remedy)
    note, markdown = prompt.template(language).note, files[language].read_text(encoding="utf-8")
    return PromptPage(name, language, tuple(sorted(files)), note, prompt.sha256, markdown)


def prompt_pages() -> list[PromptPage]:
    """All prompts, in the language that others fall back to."""
    return [prompt_page(name) for name in known_prompts()]
