"""Exporters by name: one file and one line each (see `base.Exporter`).

Imports: golden, queries, readers, leaves.
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
        "autorag": "raggs.exporters.autorag:AutoRagExporter",
        "beir": "raggs.exporters.beir:BeirExporter",
        "csv": "raggs.exporters.csv:CsvExporter",
        "deepeval": "raggs.exporters.deepeval:DeepEvalExporter",
        "hf": "raggs.exporters.hf:HfExporter",
        "ir_datasets": "raggs.exporters.irdatasets:IrDatasetsExporter",
        "jsonl": "raggs.exporters.jsonl:JsonlExporter",
        "langsmith": "raggs.exporters.langsmith:LangSmithExporter",
        "promptfoo": "raggs.exporters.promptfoo:PromptfooExporter",
        "ragas": "raggs.exporters.ragas:RagasExporter",
        "ranx": "raggs.exporters.ranx:RanxExporter",
        "trec": "raggs.exporters.trec:TrecExporter",
    },
)
