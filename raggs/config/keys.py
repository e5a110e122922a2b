"""Every key that a configuration may hold, in words: its form, its default, what it means.

What is said of a setting stands in its `Field`, of an option of an engine or a fusion in the docstring of its class.
docs/configuration.md and `raggs explain rank.floor` take it from here. Builds nothing; the keys of adapters are those
of their `Config`, which whoever asks for them imports.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from raggs import ranking
from raggs.base.adapter import AdapterConfig, NameOf, OneOf
from raggs.base.settings import EFFORT, PromptName, SourcePath
from raggs.base.types import as_list, as_object
from raggs.config.models import RunConfig
from raggs.ranking import fusion

ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)
SIGNS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


@dataclass(frozen=True)
class Key:
    """One key.

    Attributes:
        name: with dots, as `--set` takes it; `<name>` stands for a name of the user's.
        form: what may stand there, in words.
        group: the registry that `form` names; None where it names none.
        default: as YAML; None where there is none.
        required: whether it must be there.
        effort: whether it changes how the work is done, and never what comes out.
        meaning: what is said of it.
    """

    name: str
    form: str
    group: str | None
    default: str | None
    required: bool
    effort: bool
    meaning: str


def sections(file: type[BaseModel] = RunConfig) -> dict[str, type[BaseModel]]:
    """The sections of a file by name; what is no section stands at its top."""
    return {name: model for name, field in file.model_fields.items() for _, model in _models(field.annotation)}


def keys_of(model: type[BaseModel], above: str = "", *, effort: bool = False) -> Iterator[Key]:
    """The keys of a model and of the models in it, but for the `type` of an adapter.

    Args:
        above: what stands before each key.
        effort: whether all of them change how the work is done, and nothing else. A model with marks of its own says
            for each of its keys; where it has none, the mark of the key that holds it counts.
    """
    properties = as_object(model.model_json_schema()["properties"])
    for name, field in model.model_fields.items():
        if name == "type" and issubclass(model, AdapterConfig):
            continue
        nested = list(_models(field.annotation))
        says_itself = any(_effort(each) for _, inner in nested for each in inner.model_fields.values())
        calm = effort or (_effort(field) and not says_itself)
        if not nested or not isinstance(field.annotation, type):
            form, group = _form(field, as_object(properties[name]))
            default = None if field.is_required() else _yaml(field.get_default(call_default_factory=True))
            yield Key(f"{above}{name}", form, group, default, field.is_required(), calm, field.description or "")
        for below, inner in nested:
            yield from keys_of(inner, f"{above}{name}{below}.", effort=calm)


def engine_keys(name: str) -> list[Key]:
    """The options of an engine of the rank stage, as they stand in `rank.options`."""
    return _options(ranking.REGISTRY.load(name), ranking.engine_options(name))


def fusion_keys(name: str) -> list[Key]:
    """The options of a fusion, as they stand in `merge.options`."""
    return _options(fusion.REGISTRY.load(name), fusion.fusion_options(name))


def run_keys() -> Iterator[Key]:
    """Every key of a run's file but those of adapters; options by the names that `--set` takes."""
    yield from keys_of(RunConfig)
    options = {"rank": (ranking.REGISTRY.builtin, engine_keys), "merge": (fusion.REGISTRY.builtin, fusion_keys)}
    for section, (names, listed) in options.items():
        for name in names:
            for key in listed(name):
                yield replace(key, name=f"{section}.options.{key.name}", meaning=f"of {name}: {key.meaning}")


def _options(owner: type, known: list[str]) -> list[Key]:
    meanings = {key: " ".join(text.split()).rstrip(".") for key, text in ARGUMENT.findall(inspect.getdoc(owner) or "")}
    usual = {key: inspect.signature(owner).parameters[key].default for key in known}
    return [
        Key(
            key,
            "boolean" if isinstance(value, bool) else "number",
            None,
            None if value is None else _yaml(value),
            False,
            False,
            meanings[key],
        )
        for key, value in usual.items()
    ]


def _models(annotation: object) -> Iterator[tuple[str, type[BaseModel]]]:
    """The settings inside a type, each with what stands between its key and theirs."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not issubclass(annotation, AdapterConfig):
            yield "", annotation
        return
    between = ".<name>" if get_origin(annotation) in (dict, Mapping) else ""
    for inner in get_args(annotation):
        yield from ((between + below, model) for below, model in _models(inner))


def _form(field: FieldInfo, schema: Mapping[str, object]) -> tuple[str, str | None]:
    group, named = next(_choices([field.annotation, *field.metadata]), ("", False))
    if not group:
        return form(schema), None
    one = "name of one of" if named else "one of"
    return f"{'list of' if get_origin(field.annotation) is tuple else one} {group}", group


def _choices(annotations: Iterable[object]) -> Iterator[tuple[str, bool]]:
    """The registries that an annotation chooses from, and whether a name alone stands there."""
    for each in annotations:
        if isinstance(each, OneOf | NameOf):
            yield each.registry.group, isinstance(each, NameOf)
        yield from _choices([*get_args(each), *getattr(each, "__metadata__", ())])


def form(schema: Mapping[str, object]) -> str:
    """A JSON Schema in words."""
    if "anyOf" in schema:
        return " or ".join(form(as_object(option)) for option in as_list(schema["anyOf"]))
    if "$ref" in schema:
        return "mapping"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in as_list(schema.get("enum", [schema.get("const")])))
    if "prefixItems" in schema:
        items = as_list(schema["prefixItems"])
        return f"list of {len(items)}: {form(as_object(items[0]))}"
    if schema.get("type") == "array":
        return f"list of {form(as_object(schema.get('items')))}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"map to {form(inner)}" if isinstance(inner, dict) else "map"
    bounds = ", ".join(f"{sign} {schema[name]:g}" for name, sign in SIGNS.items() if name in schema)
    name = "path" if schema.get("format") == "path" else str(schema.get("type", "any"))
    return f"{name} {bounds}".rstrip()


def _yaml(value: object) -> str:
    plain = _plain(value)
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False)
    text = text.removesuffix("...\n").strip()
    return json.dumps(plain, ensure_ascii=False) if "\n" in text else text  # JSON is YAML of one line


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _effort(field: FieldInfo) -> bool:
    marks = tuple(field.metadata[:2])
    by_content = any(getattr(name, "__metadata__", None) == marks for name in (PromptName, SourcePath))
    return any(mark is EFFORT for mark in field.metadata) and not by_content
