"""Query readers by name: one file and one line each (see `base.QueryReader`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.queries.base import QueryReader

REGISTRY: Registry[QueryReader] = Registry(
    "query format",
    "queries",
    "raggs.parts.queries.base:QueryReader",
    {
        "csv": "raggs.parts.queries.csv:CsvQueries",
        "jsonl": "raggs.parts.queries.jsonl:JsonlQueries",
        "yaml": "raggs.parts.queries.yaml:YamlQueries",
    },
)
