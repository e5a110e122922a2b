"""Exporters by name: one file and one line each (see `base.Exporter`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.golden.exporters.base import Exporter

REGISTRY: Registry[Exporter] = Registry(
    "exporter",
    "exporters",
    "raggs.golden.exporters.base:Exporter",
    {
        "autorag": "raggs.golden.exporters.autorag:AutoRagExporter",
        "beir": "raggs.golden.exporters.beir:BeirExporter",
        "csv": "raggs.golden.exporters.csv:CsvExporter",
        "deepeval": "raggs.golden.exporters.deepeval:DeepEvalExporter",
        "hf": "raggs.golden.exporters.hf:HfExporter",
        "ir_datasets": "raggs.golden.exporters.irdatasets:IrDatasetsExporter",
        "jsonl": "raggs.golden.exporters.jsonl:JsonlExporter",
        "langsmith": "raggs.golden.exporters.langsmith:LangSmithExporter",
        "promptfoo": "raggs.golden.exporters.promptfoo:PromptfooExporter",
        "ragas": "raggs.golden.exporters.ragas:RagasExporter",
        "ranx": "raggs.golden.exporters.ranx:RanxExporter",
        "trec": "raggs.golden.exporters.trec:TrecExporter",
    },
)
