"""The page docs/configuration.md, from the models: every key, its type, its default and what it means.

Used by docs/generate.py. What is said of a setting stands in its `Field`, of an adapter in its docstring's first line,
of an engine's options in the docstring of its class.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from raggs import (
    askers,
    chunkers,
    corpora,
    embedders,
    execution,
    fusion,
    indexes,
    judges,
    queries,
    ranking,
    rerankers,
    retrievers,
    rewriters,
)
from raggs.adapter import Adapter, AdapterConfig, NameOf, OneOf
from raggs.config.models import RunConfig
from raggs.fusion import fusion_options
from raggs.ranking import engine_options
from raggs.registry import Registry
from raggs.settings import EFFORT, PromptName, SourcePath
from raggs.sweeps.config import SweepConfig

HEAD = """# Configuration

<!-- Written by docs/generate.py from the models; edit those instead. -->

Every key that a run's YAML file may hold. What is left out has the default; an unknown key is an error that
names the nearest known one. Only `name`, `corpus`, `queries` and `judge` must be there:

```yaml
name: mine
corpus:  {type: jsonl, path: corpus.jsonl}
queries: {type: jsonl, path: queries.jsonl}
judge:   {judge: {type: litellm, model: openai/gpt-5-mini}}
```

Later sources win: defaults; the file, where `${NAME}` and `${NAME:-default}` expand; variables such as
`RAGGS__RANK__MAX_CALLS=40`; `--set rank.max_calls=40`. The keys below are those that `--set` takes, and
`raggs config show --config raggs.yaml` prints the values in force with their origins. In a list an entry is named by
its number from 0 (`retrieve.retrievers.0.k`), or by its name (`retrieve.retrievers.bm25.k`); `<name>` stands for a name
of yours. Paths are relative to the file that they stand in. Keys of providers stand in no setting: they come from the
environment, or from a `.env` beside the file.

A setting marked ◦ changes how the work is done, never what comes out: no stage runs again for it. A file or a prompt
counts by its content, not by its path.

Where a value is *one of* a list, it is a mapping whose `type` chooses an adapter, and the keys of that adapter stand in
its section below. Packages may add more of them (`raggs list`)."""

SWEEP = """## A sweep

Every key that a sweep's file may hold (`raggs sweep`, [sweep.md](sweep.md)); only `name` and `golden` must be there.
Each of `axes` is a list of levels, and a level's setting that is a list of plain values stands for a level with each of
them. `llm` and `budget` hold the same keys as in a run's file."""
SHARED = {"llm", "budget"}
WRITTEN = {"excluded": "except"}  # keys that Python has no name for

OPTIONS = """## {title}

`{key}` names one of them; its options stand below `{options}`."""

KINDS: tuple[Registry[Any], ...] = (
    corpora.REGISTRY,
    chunkers.REGISTRY,
    queries.REGISTRY,
    embedders.REGISTRY,
    rewriters.REGISTRY,
    retrievers.REGISTRY,
    rerankers.REGISTRY,
    indexes.REGISTRY,
    judges.REGISTRY,
    askers.REGISTRY,
    execution.REGISTRY,
)
ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)
TABLE = "| key | type | default | meaning |\n|---|---|---|---|"


class Row(NamedTuple):
    """One key."""

    key: str
    kind: str
    default: str
    meaning: str

    def __str__(self) -> str:
        cells = (f"`{self.key}`", self.kind, self.default, self.meaning.replace("<", "&lt;"))
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def configuration() -> str:
    """The whole page."""
    fields = RunConfig.model_fields
    sections = {name: model for name, field in fields.items() for _, model in _models(field.annotation)}
    plain = [row for row in rows(RunConfig) if row.key in fields.keys() - sections.keys()]
    parts = [HEAD, "## The file", table(plain)]
    for name, model in sections.items():
        parts += [f"## {name}", inspect.getdoc(model) or "", table(rows(model, f"{name}."))]
    for registry in KINDS:
        parts += [f"## {registry.group}", *_adapters(registry)]
    sweep = [row for row in rows(SweepConfig) if row.key.partition(".")[0] not in SHARED]
    parts += [SWEEP, table(row._replace(key=WRITTEN.get(row.key, row.key)) for row in sweep)]
    parts += [OPTIONS.format(title="engines", key="rank.engine", options="rank.options")]
    parts += [_options(name, ranking.REGISTRY.load(name), engine_options(name)) for name in ranking.REGISTRY.builtin]
    parts += [OPTIONS.format(title="fusions", key="merge.type", options="merge.options")]
    parts += [_options(name, fusion.REGISTRY.load(name), fusion_options(name)) for name in fusion.REGISTRY.builtin]
    return "\n\n".join(parts) + "\n"


def rows(model: type[BaseModel], above: str = "", *, effort: bool = False) -> Iterator[Row]:
    """A row for each key of a model and of the models in it, but for the `type` of an adapter.

    Args:
        above: what stands before each key.
        effort: whether all of them change how the work is done, and nothing else. A model with marks of its own says
            for each of its keys; where it has none, the mark of the key that holds it counts.
    """
    properties = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        if name == "type" and issubclass(model, AdapterConfig):
            continue
        nested = list(_models(field.annotation))
        says_itself = any(_effort(each) for _, inner in nested for each in inner.model_fields.values())
        calm = effort or (_effort(field) and not says_itself)
        if not nested or _optional(field):
            meaning = (field.description or "") + (" ◦" if calm else "")
            yield Row(f"{above}{name}", _type(field, properties[name]), _default(field), meaning)
        for below, inner in nested:
            yield from rows(inner, f"{above}{name}{below}.", effort=calm)


def table(found: Iterable[Row]) -> str:
    """Rows under their head."""
    return "\n".join([TABLE, *map(str, found)])


def _adapters(registry: Registry[Adapter]) -> Iterator[str]:
    for name in registry.builtin:
        yield f"### {registry.kind} `{name}`"
        yield registry.summary(name)
        if found := list(rows(registry.load(name).Config)):
            yield table(found)


def _options(name: str, owner: type, known: list[str]) -> str:
    meanings = {key: " ".join(text.split()).rstrip(".") for key, text in ARGUMENT.findall(inspect.getdoc(owner) or "")}
    usual = {key: inspect.signature(owner).parameters[key].default for key in known}
    kinds = {key: "boolean" if isinstance(value, bool) else "number" for key, value in usual.items()}
    found = [
        Row(key, kinds[key], "*left out*" if value is None else _yaml(value), meanings[key])
        for key, value in usual.items()
    ]
    summary = (inspect.getdoc(owner) or "").partition("\n")[0]
    return f"### `{name}`\n\n{summary}" + (f"\n\n{table(found)}" if found else "")


def _models(annotation: object) -> Iterator[tuple[str, type[BaseModel]]]:
    """The settings inside a type, each with what stands between its key and theirs."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not issubclass(annotation, AdapterConfig):
            yield "", annotation
        return
    between = ".<name>" if get_origin(annotation) in (dict, Mapping) else ""
    for inner in get_args(annotation):
        yield from ((between + below, model) for below, model in _models(inner))


def _optional(field: FieldInfo) -> bool:
    return not isinstance(field.annotation, type)


def _type(field: FieldInfo, schema: dict[str, Any]) -> str:
    choice = next(_choices([field.annotation, *field.metadata]), None)
    if choice is None:
        return kind(schema)
    one = "name of one of" if isinstance(choice, NameOf) else "one of"
    words = "list of" if get_origin(field.annotation) is tuple else one
    return f"{words} [{choice.registry.group}](#{choice.registry.group})"


def _choices(annotations: Iterable[object]) -> Iterator[OneOf[Any] | NameOf]:
    for each in annotations:
        if isinstance(each, (OneOf, NameOf)):
            yield each
        yield from _choices([*get_args(each), *getattr(each, "__metadata__", ())])


def kind(schema: dict[str, Any]) -> str:
    """A JSON Schema in words."""
    if "anyOf" in schema:
        return " or ".join(kind(option) for option in schema["anyOf"])
    if "$ref" in schema:
        return "mapping"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {kind(schema['prefixItems'][0])}"
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"map to {kind(inner)}" if isinstance(inner, dict) else "map"
    name = "path" if schema.get("format") == "path" else str(schema.get("type", "any"))
    return name + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    found = [f"{sign} {schema[name]:g}" for name, sign in signs.items() if name in schema]
    return " " + ", ".join(found) if found else ""


def _default(field: FieldInfo) -> str:
    return "*required*" if field.is_required() else _yaml(field.get_default(call_default_factory=True))


def _yaml(value: object) -> str:
    plain = _plain(value)
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False)
    text = text.removesuffix("...\n").strip()
    return f"`{json.dumps(plain, ensure_ascii=False) if chr(10) in text else text}`"  # JSON is YAML of one line


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _effort(field: FieldInfo) -> bool:
    by_content = any(_marks(name) == field.metadata[:2] for name in (PromptName, SourcePath))
    return any(mark is EFFORT for mark in field.metadata) and not by_content


def _marks(annotated: Any) -> list[object]:
    return list(annotated.__metadata__)
