"""Exporters by name: one file and one line each (see `base.Exporter`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "exporter",
    {
        "trec": "raggs.exporters.trec:TrecExporter",
        "beir": "raggs.exporters.beir:BeirExporter",
        "jsonl": "raggs.exporters.jsonl:JsonlExporter",
    },
)
