"""Exporters by name: one file and one line each (see `base.Exporter`).

Imports: golden, queries, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.exporters.base import Exporter

REGISTRY: Registry[Exporter] = Registry(
    "exporter",
    "exporters",
    "raggs.exporters.base:Exporter",
    {
        "beir": "raggs.exporters.beir:BeirExporter",
        "jsonl": "raggs.exporters.jsonl:JsonlExporter",
        "trec": "raggs.exporters.trec:TrecExporter",
    },
)
