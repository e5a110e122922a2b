"""Corpora by name: one file and one line each (see `base.Corpus`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "corpus",
    {
        "elasticsearch": "raggs.corpora.elasticsearch:ElasticsearchCorpus",
        "jsonl": "raggs.corpora.jsonl:JsonlCorpus",
        "folder": "raggs.corpora.folder:FolderCorpus",
        "pydoc": "raggs.corpora.pydoc:PydocCorpus",
    },
)
