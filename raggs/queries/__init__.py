"""Query readers by name: one file and one line each (see `base.QueryReader`).

Imports: leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.queries.base import QueryReader

REGISTRY: Registry[QueryReader] = Registry(
    "query format",
    "queries",
    "raggs.queries.base:QueryReader",
    {
        "csv": "raggs.queries.csv:CsvQueries",
        "jsonl": "raggs.queries.jsonl:JsonlQueries",
        "yaml": "raggs.queries.yaml:YamlQueries",
    },
)
