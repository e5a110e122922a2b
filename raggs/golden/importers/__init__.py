"""Importers by name: golden sets in the formats of others, read as typed ones (see `base.Importer`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.golden.importers.base import Importer

REGISTRY: Registry[Importer] = Registry(
    "importer",
    "importers",
    "raggs.golden.importers.base:Importer",
    {
        "autorag": "raggs.golden.importers.autorag:AutoRagImporter",
        "beir": "raggs.golden.importers.beir:BeirImporter",
        "csv": "raggs.golden.importers.csv:CsvImporter",
        "deepeval": "raggs.golden.importers.deepeval:DeepEvalImporter",
        "hf": "raggs.golden.importers.hf:HfImporter",
        "ir_datasets": "raggs.golden.importers.irdatasets:IrDatasetsImporter",
        "jsonl": "raggs.golden.importers.jsonl:JsonlImporter",
        "langsmith": "raggs.golden.importers.langsmith:LangSmithImporter",
        "ragas": "raggs.golden.importers.ragas:RagasImporter",
        "ranx": "raggs.golden.importers.ranx:RanxImporter",
        "trec": "raggs.golden.importers.trec:TrecImporter",
    },
)
