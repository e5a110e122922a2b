"""What holds for every registered adapter, whoever wrote it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from raggs.app.catalog import REGISTRIES, catalog, json_schema
from raggs.base.adapter import Adapter, AdapterConfig

METHODS = {
    "corpora": ("source_hash", "passages"),
    "chunkers": ("chunk", "places", "causes", "check"),
    "queries": ("queries",),
    "embedders": ("identity", "causes", "models", "dims", "embed", "embed_queries"),
    "rewriters": ("rewrite", "causes", "models"),
    "retrievers": ("search", "causes", "check", "close"),
    "indexes": ("open", "rescores", "causes", "check"),
    "rerankers": ("rerank", "models", "causes", "check", "close"),
    "judges": ("name", "models", "causes", "grade", "order", "check"),
    "askers": ("name", "models", "kinds", "causes", "ask", "check"),
    "exporters": ("write",),
    "importers": ("read",),
    "executions": ("records", "close"),
    "perturbers": ("bundle", "renamed", "text", "causes"),
    "noises": ("noisy", "causes"),
}
PLAIN = ("exporters", "importers")  # that no configuration names
ADAPTERS = [(kind, name) for kind in METHODS for name in REGISTRIES[kind]]
HEAVY = (
    "litellm",
    "openai",
    "torch",
    "matplotlib",
    "elasticsearch",
    "wordllama",
    "bm25s",
    "scipy",
    "networkx",
    "requests",
    "onnxruntime",
    "tokenizers",
    "dask",
    "distributed",
    "faiss",
    "markdown_it",
    "selectolax",
    "docutils",
    "pypdfium2",
    "tiktoken",
)


def loaded(kind: str, name: str) -> Any:
    return REGISTRIES[kind].load(name)


@pytest.mark.parametrize(("kind", "name"), ADAPTERS)
def test_an_adapter_is_described_and_has_its_methods(kind: str, name: str) -> None:
    adapter = loaded(kind, name)
    assert kind in PLAIN or issubclass(adapter, Adapter)
    summary = (inspect.getdoc(adapter) or "").partition("\n")[0]
    assert 10 < len(summary) <= 100
    assert summary.endswith(".")
    assert [method for method in METHODS[kind] if not hasattr(adapter, method)] == []


@pytest.mark.parametrize(("kind", "name"), [pair for pair in ADAPTERS if pair[0] not in PLAIN])
def test_its_config_bears_its_name_and_describes_its_fields(kind: str, name: str) -> None:
    config = loaded(kind, name).Config
    assert issubclass(config, AdapterConfig)
    assert config.model_fields["type"].default == name
    required = [field for field, info in config.model_fields.items() if info.is_required()]
    assert set(required) <= {"path", "model", "judges", "index", "callable", "dims", "of", "by", "url"}, (
        "only what cannot be guessed is required"
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pair
        for pair in ADAPTERS
        if pair[0] in ("embedders", "rewriters", "retrievers", "rerankers", "chunkers", "perturbers", "noises")
    ],
)
def test_its_causes_are_plain_values_with_its_versions(kind: str, name: str) -> None:
    adapter = loaded(kind, name)
    required = {"path": "none.trec", "model": "openai/x", "index": "passages", "callable": "json:dumps", "dims": 3}
    required |= {
        "url": "http://localhost/search",
        "of": {"type": "bm25"},
        "by": {"type": "python", "callable": "json:dumps"},
    }
    needed = {field: required[field] for field, info in adapter.Config.model_fields.items() if info.is_required()}
    own = adapter.Config.model_validate(needed)
    made = adapter(own) if kind in ("perturbers", "noises") else adapter(own, SimpleNamespace(llm=None))
    causes = made.own_causes()
    assert causes["version"] == adapter.VERSION
    assert set(causes["packages"]) == set(adapter.PACKAGES)
    assert all(causes["packages"].values()), "a package that it names is not installed"


def test_the_catalog_has_a_line_on_everything() -> None:
    for kind, entries in catalog().items():
        assert entries, kind
        for name, entry in entries.items():
            assert entry.usable and entry.summary, f"{kind}: {name} has no summary"


@pytest.mark.parametrize("name", [*catalog()["artifacts"], "manifest", "config"])
def test_every_schema_is_an_object_with_fields(name: str) -> None:
    assert json_schema(name)["properties"]


def test_importing_and_reading_a_configuration_loads_nothing_heavy() -> None:
    script = (
        "import sys, raggs; before = [m for m in ('pydantic', 'numpy') if m in sys.modules]\n"
        "import raggs.cli.app, raggs.config.load, raggs.app.services, raggs.app.catalog\n"
        f"print(before, [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
