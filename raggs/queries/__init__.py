"""Query readers by name: one file and one line each (see `base.QueryReader`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "query format",
    {
        "jsonl": "raggs.queries.jsonl:JsonlQueries",
        "csv": "raggs.queries.csv:CsvQueries",
        "yaml": "raggs.queries.yaml:YamlQueries",
    },
)
