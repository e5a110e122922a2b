"""The settings of a run. Those of the stages are declared next to each stage.

The default and the description of a setting are in its `Field`. The description of an engine or fusion option is in the
docstring of its class. docs/reference/configuration.md and `raggs explain rank.floor` are generated from both. This
module creates no components. Adapters declare their own keys in their `Config`, which is imported on demand.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, get_args, get_origin

import yaml
from pydantic import BaseModel, Field, StringConstraints, model_validator
from pydantic.fields import FieldInfo

from raggs import ranking
from raggs.base.adapter import AdapterConfig, NameOf, OneOf
from raggs.base.settings import EFFORT, AnchoredPath, Effort, PromptName, Settings, SourcePath
from raggs.base.types import as_list, as_object
from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts import corpora, queries
from raggs.parts.elastic import ElasticIndexSettings
from raggs.parts.retrievers import name_of
from raggs.ranking import fusion
from raggs.runs import execution
from raggs.stages.embed import EmbedConfig
from raggs.stages.judge import JudgeConfig
from raggs.stages.merge import MergeConfig
from raggs.stages.prune import PruneConfig
from raggs.stages.questions.ask import AskConfig
from raggs.stages.questions.filter import FilterConfig
from raggs.stages.questions.sample import SampleConfig
from raggs.stages.questions.verify import VerifyConfig
from raggs.stages.rank_config import RankConfig
from raggs.stages.retrieve import RetrieveConfig

CorpusSpec = Annotated[AdapterConfig, OneOf(corpora.REGISTRY)]
QueriesSpec = Annotated[AdapterConfig, OneOf(queries.REGISTRY)]
ExecutionSpec = Annotated[AdapterConfig, OneOf(execution.REGISTRY)]


# A portable name of a folder: letters, digits, dots, dashes and underscores; no leading dot or dash.
RUN_NAME = r"^\w[\w.-]*$"
RunName = Annotated[str, StringConstraints(pattern=RUN_NAME, max_length=120)]


class DocumentsConfig(Settings):
    """The sections of a run's configuration that are needed to read its documents. Other sections are ignored."""

    workspace: AnchoredPath = Field(Path("runs"), validate_default=True, description="folder for runs and caches")
    corpus: CorpusSpec = Field(description="source of the passages")
    budget: BudgetSettings = BudgetSettings()
    llm: LLMSettings = LLMSettings()

    @classmethod
    def sections_not_read(cls) -> frozenset[str]:
        """Return the names of the sections that this model ignores."""
        return frozenset(RunConfig.model_fields.keys() - cls.model_fields.keys())

    @model_validator(mode="before")
    @classmethod
    def _leave_other_sections(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        return {name: value for name, value in values.items() if name not in cls.sections_not_read()}


class QuestionsConfig(Settings):
    """Settings of `raggs questions`, which generates questions from the documents."""

    sample: SampleConfig = SampleConfig()
    ask: AskConfig = AskConfig()
    verify: VerifyConfig = VerifyConfig()
    filter: FilterConfig = FilterConfig()

    def stage_configs(self) -> dict[str, Settings]:
        """Return the configuration of each stage by stage name."""
        return {"sample": self.sample, "ask": self.ask, "verify": self.verify, "filter": self.filter}


class RunConfig(Settings):
    """Settings of a whole run. Paths are relative to the configuration file."""

    name: RunName = Field(description="name of the run; its directory is <workspace>/<name>")
    workspace: AnchoredPath = Field(Path("runs"), validate_default=True, description="folder for runs and caches")
    corpus: CorpusSpec = Field(description="source of the passages")
    queries: QueriesSpec = Field(description="source of the queries")
    query_ids: tuple[str, ...] = Field((), description="ids of the queries to run; empty: all queries")
    embed: EmbedConfig = Field(default_factory=EmbedConfig)
    retrieve: RetrieveConfig = RetrieveConfig()
    merge: MergeConfig = MergeConfig()
    judge: JudgeConfig
    prune: PruneConfig = PruneConfig()
    rank: RankConfig | None = Field(
        RankConfig(), description="settings of the rank stage; null: no ranking, the golden set contains only grades"
    )
    budget: BudgetSettings = BudgetSettings()
    llm: LLMSettings = LLMSettings()
    index: ElasticIndexSettings = Field(
        ElasticIndexSettings(),
        description="settings of the index that `raggs index` builds; no stage uses these settings",
    )
    questions: QuestionsConfig = QuestionsConfig()
    execution: Effort[ExecutionSpec] = Field(
        {"type": "local"}, validate_default=True, description="execution of the work: on this machine or on a cluster"
    )

    @model_validator(mode="after")
    def _weights_have_retrievers(self) -> RunConfig:
        names = [name_of(spec) for spec in self.retrieve.retrievers]
        for name in self.merge.weights or {}:
            if name not in names:
                raise ValueError(
                    f"merge.weights names {name!r}, which is not a retriever; retrievers: {', '.join(names)}"
                )
        if self.merge.weights and not any(self.merge.weights.get(name, 1.0) for name in names):
            raise ValueError(
                "merge.weights: all weights are 0, so pools would be empty; give a retriever a weight above 0"
            )
        return self

    @model_validator(mode="after")
    def _rewrites_can_differ(self) -> RunConfig:
        depth = self.retrieve.depth
        if depth is None or depth.when.rewrite is None:
            return self
        if self.embed.embedder is None:
            raise ValueError(
                "retrieve.depth.when.rewrite compares vectors and needs an embedder, but embed.embedder is null"
            )
        if self.embed.rewrite.type == "none":
            raise ValueError("retrieve.depth.when.rewrite never fires because embed.rewrite is none; remove it")
        return self

    @model_validator(mode="after")
    def _orders_are_there_to_be_held(self) -> RunConfig:
        gate = self.judge.gate
        held = [name for name in ("flips", "position_bias") if getattr(gate, name) is not None]
        if self.rank is None and held:
            raise ValueError(
                f"judge.gate.{held[0]} is measured on rankings, but rank is null; remove one of the two settings"
            )
        return self

    @property
    def ordering(self) -> RankConfig:
        """Settings for ranking a single query.

        If `rank` is null, the defaults apply. A shared budget is replaced by a call limit per query.
        """
        return (self.rank or RankConfig()).alone

    def stage_configs(self) -> dict[str, Settings]:
        """Return the configuration of each stage that runs, by stage name."""
        return {
            "embed": self.embed,
            "retrieve": self.retrieve,
            "merge": self.merge,
            "judge": self.judge,
            "prune": self.prune,
            **({} if self.rank is None else {"rank": self.rank}),
        }


ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)
SIGNS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


@dataclass(frozen=True)
class Key:
    """One key of a configuration file.

    Attributes:
        name: dotted name, as accepted by `--set`. `<name>` stands for a name chosen by the user.
        form: allowed values, as text.
        group: the registry that `form` refers to, or None.
        default: default as YAML, or None.
        required: whether the key is required.
        effort: whether the key affects only how the work is done, never the results.
        meaning: description.
    """

    name: str
    form: str
    group: str | None
    default: str | None
    required: bool
    effort: bool
    meaning: str


def sections(file: type[BaseModel] = RunConfig) -> dict[str, type[BaseModel]]:
    """Return the sections of a file by name. Keys at the top level are not included."""
    return {name: model for name, field in file.model_fields.items() for _, model in _models(field.annotation)}


def keys_of(model: type[BaseModel], above: str = "", *, effort: bool = False) -> Iterator[Key]:
    """Yield the keys of a model and its nested models, except the `type` of an adapter.

    Args:
        above: prefix of each key.
        effort: whether the keys only affect how the work is done, never the results. If a nested model marks fields as
            `Effort`, only these fields count. Otherwise the mark of the field that holds the model applies to all its
            keys.
    """
    properties = as_object(model.model_json_schema()["properties"])
    for name, field in model.model_fields.items():
        if name == "type" and issubclass(model, AdapterConfig):
            continue
        nested = list(_models(field.annotation))
        says_itself = any(_effort(each) for _, inner in nested for each in inner.model_fields.values())
        calm = effort or (_effort(field) and not says_itself)
        if not nested or not isinstance(field.annotation, type):
            form, group = _field_form(field, as_object(properties[name]))
            default = None if field.is_required() else _yaml(field.get_default(call_default_factory=True))
            yield Key(f"{above}{name}", form, group, default, field.is_required(), calm, field.description or "")
        for below, inner in nested:
            yield from keys_of(inner, f"{above}{name}{below}.", effort=calm)


def engine_keys(name: str) -> list[Key]:
    """Return the options of a ranking engine, named as in `rank.options`."""
    return _options(ranking.REGISTRY.load(name), ranking.engine_options(name))


def fusion_keys(name: str) -> list[Key]:
    """Return the options of a fusion method, named as in `merge.options`."""
    return _options(fusion.REGISTRY.load(name), fusion.fusion_options(name))


def run_keys() -> Iterator[Key]:
    """Yield every key of a run's configuration except adapter keys. Options have the names that `--set` accepts."""
    yield from keys_of(RunConfig)
    options = {"rank": (ranking.REGISTRY.builtin, engine_keys), "merge": (fusion.REGISTRY.builtin, fusion_keys)}
    for section, (names, listed) in options.items():
        for name in names:
            for key in listed(name):
                yield replace(key, name=f"{section}.options.{key.name}", meaning=f"option of {name}: {key.meaning}")


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
    """Yield each settings model inside a type, and the part of the key between the field's name and the model's own
    keys.
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not issubclass(annotation, AdapterConfig):
            yield "", annotation
        return
    between = ".<name>" if get_origin(annotation) in (dict, Mapping) else ""
    for inner in get_args(annotation):
        yield from ((between + below, model) for below, model in _models(inner))


def _field_form(field: FieldInfo, schema: Mapping[str, object]) -> tuple[str, str | None]:
    group, named = next(_choices([field.annotation, *field.metadata]), ("", False))
    if not group:
        return describe_schema(schema), None
    one = "name of one of" if named else "one of"
    return f"{'list of' if get_origin(field.annotation) is tuple else one} {group}", group


def _choices(annotations: Iterable[object]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each registry in an annotation, and whether the value must be a name only (no options)."""
    for each in annotations:
        if isinstance(each, OneOf | NameOf):
            yield each.registry.group, isinstance(each, NameOf)
        yield from _choices([*get_args(each), *getattr(each, "__metadata__", ())])


def describe_schema(schema: Mapping[str, object]) -> str:
    """Describe a JSON Schema as text."""
    if "anyOf" in schema:
        return " or ".join(describe_schema(as_object(option)) for option in as_list(schema["anyOf"]))
    if "$ref" in schema:
        return "mapping"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in as_list(schema.get("enum", [schema.get("const")])))
    if "prefixItems" in schema:
        items = as_list(schema["prefixItems"])
        return f"list of {len(items)}: {describe_schema(as_object(items[0]))}"
    if schema.get("type") == "array":
        return f"list of {describe_schema(as_object(schema.get('items')))}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"map to {describe_schema(inner)}" if isinstance(inner, dict) else "map"
    bounds = ", ".join(f"{sign} {schema[name]:g}" for name, sign in SIGNS.items() if name in schema)
    name = "path" if schema.get("format") == "path" else str(schema.get("type", "any"))
    return f"{name} {bounds}".rstrip()


def _yaml(value: object) -> str:
    plain = _plain_value(value)
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False)
    text = text.removesuffix("...\n").strip()
    return json.dumps(plain, ensure_ascii=False) if "\n" in text else text  # JSON is valid YAML and fits on one line


def _plain_value(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _effort(field: FieldInfo) -> bool:
    marks = tuple(field.metadata[:2])
    by_content = any(getattr(name, "__metadata__", None) == marks for name in (PromptName, SourcePath))
    return any(mark is EFFORT for mark in field.metadata) and not by_content
