"""Exporters by name: one file and one line each (see `base.Exporter`).

Importers by name: golden sets in the formats of others, read as typed ones (see `base.Importer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.golden.formats.base import Exporter, Importer

EXPORTERS: Registry[Exporter] = Registry(
    "exporter",
    "exporters",
    "raggs.golden.formats.base:Exporter",
    {
        "autorag": "raggs.golden.formats.autorag:AutoRagExporter",
        "beir": "raggs.golden.formats.beir:BeirExporter",
        "csv": "raggs.golden.formats.csv:CsvExporter",
        "deepeval": "raggs.golden.formats.deepeval:DeepEvalExporter",
        "hf": "raggs.golden.formats.hf:HfExporter",
        "ir_datasets": "raggs.golden.formats.irdatasets:IrDatasetsExporter",
        "jsonl": "raggs.golden.formats.jsonl:JsonlExporter",
        "langsmith": "raggs.golden.formats.langsmith:LangSmithExporter",
        "promptfoo": "raggs.golden.formats.promptfoo:PromptfooExporter",
        "ragas": "raggs.golden.formats.ragas:RagasExporter",
        "ranx": "raggs.golden.formats.ranx:RanxExporter",
        "trec": "raggs.golden.formats.trec:TrecExporter",
    },
)


IMPORTERS: Registry[Importer] = Registry(
    "importer",
    "importers",
    "raggs.golden.formats.base:Importer",
    {
        "autorag": "raggs.golden.formats.autorag:AutoRagImporter",
        "beir": "raggs.golden.formats.beir:BeirImporter",
        "csv": "raggs.golden.formats.csv:CsvImporter",
        "deepeval": "raggs.golden.formats.deepeval:DeepEvalImporter",
        "hf": "raggs.golden.formats.hf:HfImporter",
        "ir_datasets": "raggs.golden.formats.irdatasets:IrDatasetsImporter",
        "jsonl": "raggs.golden.formats.jsonl:JsonlImporter",
        "langsmith": "raggs.golden.formats.langsmith:LangSmithImporter",
        "ragas": "raggs.golden.formats.ragas:RagasImporter",
        "ranx": "raggs.golden.formats.ranx:RanxImporter",
        "trec": "raggs.golden.formats.trec:TrecImporter",
    },
)
