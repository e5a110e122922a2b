"""Two runs' configurations, setting by setting, with what the stages made of them and what each cost.

Settings that differ between two runs, and what else their results were made from, stage by stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from raggs.base.artifacts import Frozen
from raggs.base.errors import RaggsError
from raggs.base.hashing import canonical_json
from raggs.base.settings import counts_by_value
from raggs.base.types import as_object, as_text
from raggs.base.version import __version__
from raggs.evaluation.diffs.models import MadePart, SettingPart
from raggs.llm import LLMSettings
from raggs.runs.manifests.costs import Costs, LedgerSum
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.reasons import ABSENT, Changed, differences
from raggs.stages.pipeline import load_pipeline

VALUE: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
LOCATIONS = {"workspace"}  # where a run lies is nothing about it
TOLD = {"config", "inputs"}  # by the settings, and by the stage that wrote them


def settings(old: RunManifest, new: RunManifest) -> tuple[SettingPart, ...]:
    """Every setting that differs, whether or not it can change a result."""
    before, after = ({key: value for key, value in side.config.items() if key not in LOCATIONS} for side in (old, new))
    return tuple(SettingPart(**_values(found)) for found in differences(by_name(before), by_name(after)))


def by_name(value: object) -> object:
    """A tree whose lists of adapters are read by their names, so that one that was added does not shift the others.

    Lists of other things are read by their places.
    """
    if isinstance(value, Mapping):
        return {key: by_name(entry) for key, entry in value.items()}
    if not isinstance(value, list):
        return value
    names = [_label(entry) for entry in value]
    keys = names if all(names) and len(set(names)) == len(names) else map(str, range(len(value)))
    return {key: by_name(entry) for key, entry in zip(keys, value, strict=True)} or value


def _label(entry: object) -> str:
    found = as_object(entry)
    return as_text(found.get("name")) or as_text(found.get("type")) or ""


def made(old: RunManifest, new: RunManifest, told: Iterable[SettingPart]) -> tuple[MadePart, ...]:
    """What differs of all else that the stages' results depend on: code, prompts, corpus, models, packages.

    Args:
        told: the settings that differ, which adapters repeat among what they depend on.
    """
    known = {_sign(part) for part in told}
    parts = [
        MadePart(stage=stage, **_values(found))
        for stage in old.stages
        if stage in new.stages
        for found in differences(by_name(_causes(old, stage)), by_name(_causes(new, stage)))
    ]
    return tuple(part for part in parts if _sign(part) not in known)


def _causes(manifest: RunManifest, stage: str) -> Mapping[str, object]:
    return {key: value for key, value in manifest.stages[stage].components.items() if key not in TOLD}


def _sign(part: SettingPart) -> tuple[str, str]:
    """The last word of its place, and the values."""
    return part.name.rpartition(".")[2], canonical_json([part.old, part.new])


def _values(found: Changed) -> dict[str, JsonValue]:
    old, new = (None if side is ABSENT else VALUE.validate_python(side) for side in (found.old, found.new))
    change = "added" if found.old is ABSENT else "removed" if found.new is ABSENT else "changed"
    return {"name": found.component, "change": change, "old": old, "new": new}


INPUTS = ("corpus", "queries")  # sections of a configuration that count by what they read
OF_CODE = {"version", "identity", "code", "engine", "fusion"}  # components that no setting names
PLACES = {"judge": "judge.judge", "group": "judge.judge", "embedder": "embed.embedder", "rewriter": "embed.rewrite"}
PROMPTS = {  # the settings of the prompts that a component's `prompt` is the hash of
    ("judge", "judge"): ("judge.prompt",),
    ("judge", "group"): ("judge.group_prompt",),
    ("rank", "judge"): ("rank.prompt",),
    ("embed", "rewriter"): ("embed.rewrite.prompt",),
}


class RunSetting(SettingPart):
    """A setting that differs."""

    counts: bool = Field(description="whether it can change results; of a file, whether its content differs")


class SpentPart(Frozen):
    """What a stage, or all of them, cost over all invocations."""

    calls: int
    usd: float


class StagePart(Frozen):
    """One stage of both runs."""

    stage: str
    result: Literal["same", "other", "one only"] = Field(description="whether both wrote the same bytes")
    reasons: tuple[str, ...] = Field(description="what its results were made from that differs, as sentences")
    first: SpentPart
    second: SpentPart


class RunsReport(Frozen):
    """compare.json: two runs."""

    v: Literal[1] = 1
    raggs: str = __version__
    first: str = Field(description="the run directory")
    second: str
    settings: tuple[RunSetting, ...]
    made: tuple[MadePart, ...] = Field(description="what else results were made from: code, prompts, models, corpus")
    stages: tuple[StagePart, ...]
    total: tuple[SpentPart, SpentPart]


def runs_report(
    places: tuple[str, str], manifests: tuple[RunManifest, RunManifest], spent: tuple[Costs, Costs]
) -> RunsReport:
    """Compare two runs of one pipeline by what their manifests and ledgers say."""
    one, two = manifests
    told = settings(one, two)
    counting = set(_counting(one, two))
    stages = dict.fromkeys([*one.stages, *two.stages])
    return RunsReport(
        first=places[0],
        second=places[1],
        settings=tuple(RunSetting(**part.__dict__, counts=_counts(part.name, counting)) for part in told),
        made=made(one, two, told),
        stages=tuple(_stage(name, manifests, spent) for name in stages),
        total=(_spent(spent[0].total), _spent(spent[1].total)),
    )


def _counting(one: RunManifest, two: RunManifest) -> Iterator[str]:
    """Yield the places of the settings that can change a result, and of the sections that count by their content.

    Of a stage that both runs have done, its components say so; of another one, its settings that are no `Effort`.
    """
    order = [name for name in load_pipeline(one.pipeline).order if name in one.config or name in two.config]
    undone = [name for name in order if name not in one.stages or name not in two.stages]
    for stage in order:
        if stage not in undone:
            yield from _by_components(stage, *(side.stages[stage].components for side in (one, two)))
            continue
        sections = [side.config.get(stage) for side in (one, two)]
        if None in sections:
            yield stage  # left out in one of them
        else:
            first, second = (by_name(_causes_in(one.pipeline, stage, section)) for section in sections)
            found = differences(first, second)
            yield from (f"{stage}.{each.component}" for each in found)
    if undone:
        yield from INPUTS
        yield from (f"llm.{each.component}" for each in differences(_of_models(one), _of_models(two)))


def _of_models(manifest: RunManifest) -> object:
    """Return what the settings `llm` hold that can change an answer."""
    section = as_object(manifest.config.get("llm"))
    try:
        return LLMSettings.model_validate(section).causes_for(as_object(section.get("models")))
    except ValidationError:
        return section


def _by_components(stage: str, first: Mapping[str, object], second: Mapping[str, object]) -> Iterator[str]:
    """Yield the places of the settings behind the components of one stage that differ."""
    for each in differences(by_name(first), by_name(second)):
        part, _, rest = each.component.partition(".")
        _, by_model, sent = each.component.partition(".llm.")
        leaf = each.component.rpartition(".")[2]
        if part == "config":
            yield f"{stage}.{rest}" if rest else stage
        elif part in INPUTS:
            yield part
        elif by_model:
            yield f"llm.{sent}"
        elif part == "prices":
            yield "llm.prices"
            yield from (f"llm.models.{model}.prices" for model in _models_of(rest))
        elif leaf == "prompt":
            yield from PROMPTS.get((stage, part), (f"{stage}.prompt",))
        elif leaf not in OF_CODE:
            place = PLACES.get(part) or (f"retrieve.retrievers.{part.partition(' ')[2]}" if " " in part else part)
            yield f"{place}.{rest}" if rest else place
            yield f"{place}.path"  # a file counts by its content, which its component names in its own way


def _models_of(place: str) -> Iterator[str]:
    """Yield the model that a place below the component `prices` is about."""
    found = place.removeprefix("models.").rpartition(".price")[0]
    if found:
        yield found


def _causes_in(pipeline: str, stage: str, section: object) -> object:
    """Return what of a stage's settings can change its result; all of them if they are not valid here."""
    try:
        return counts_by_value(load_pipeline(pipeline).stage(stage).Config.model_validate(section))
    except (ValidationError, RaggsError, OSError):
        return section


def _counts(name: str, counting: set[str]) -> bool:
    """Whether a setting, what holds it, or what it holds is among those that count."""
    parts = name.split(".")
    inside = any(".".join(parts[:count]) in counting for count in range(1, len(parts) + 1))
    return inside or any(place.startswith(f"{name}.") for place in counting)


def _stage(name: str, manifests: tuple[RunManifest, RunManifest], spent: tuple[Costs, Costs]) -> StagePart:
    one, two = (side.stages.get(name) for side in manifests)
    costs = [_spent(side.stage.get(name, LedgerSum())) for side in spent]
    if one is None or two is None:
        return StagePart(stage=name, result="one only", reasons=(), first=costs[0], second=costs[1])
    alike = {file: out.sha256 for file, out in one.outputs.items()} == {f: out.sha256 for f, out in two.outputs.items()}
    return StagePart(
        stage=name,
        result="same" if alike else "other",
        reasons=tuple(_reasons(one.components, two.components)),
        first=costs[0],
        second=costs[1],
    )


def _reasons(one: Mapping[str, object], two: Mapping[str, object]) -> Iterator[str]:
    """Each difference once: adapters repeat their settings among what they depend on."""
    told: set[tuple[str, str, str]] = set()
    for found in differences(by_name(one), by_name(two)):
        sign = found.component.rpartition(".")[2], repr(found.old), repr(found.new)
        if sign not in told:
            yield str(found)
        told.add(sign)


def _spent(found: LedgerSum) -> SpentPart:
    return SpentPart(calls=found.calls, usd=found.usd)
