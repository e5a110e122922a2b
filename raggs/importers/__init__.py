"""Importers by name: golden sets in the formats of others, read as typed ones (see `base.Importer`).

Imports: golden, corpora, queries, readers, metrics, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.importers.base import Importer

REGISTRY: Registry[Importer] = Registry(
    "importer",
    "importers",
    "raggs.importers.base:Importer",
    {
        "autorag": "raggs.importers.autorag:AutoRagImporter",
        "beir": "raggs.importers.beir:BeirImporter",
        "csv": "raggs.importers.csv:CsvImporter",
        "deepeval": "raggs.importers.deepeval:DeepEvalImporter",
        "hf": "raggs.importers.hf:HfImporter",
        "ir_datasets": "raggs.importers.irdatasets:IrDatasetsImporter",
        "jsonl": "raggs.importers.jsonl:JsonlImporter",
        "langsmith": "raggs.importers.langsmith:LangSmithImporter",
        "ragas": "raggs.importers.ragas:RagasImporter",
        "ranx": "raggs.importers.ranx:RanxImporter",
        "trec": "raggs.importers.trec:TrecImporter",
    },
)
