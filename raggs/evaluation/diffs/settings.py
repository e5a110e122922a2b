"""Settings that differ between two runs, and what else their results were made from, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue, TypeAdapter

from raggs.base.hashing import canonical_json
from raggs.base.jsontypes import as_object, as_text
from raggs.evaluation.diffs.models import MadePart, SettingPart
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.reasons import ABSENT, Changed, differences

VALUE: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
PLACES = {"workspace"}  # where a run lies is nothing about it
TOLD = {"config", "inputs"}  # by the settings, and by the stage that wrote them


def settings(old: RunManifest, new: RunManifest) -> tuple[SettingPart, ...]:
    """Every setting that differs, whether or not it can change a result."""
    before, after = ({key: value for key, value in side.config.items() if key not in PLACES} for side in (old, new))
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
