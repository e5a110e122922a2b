"""Corpora by name: one file and one line each (see `base.Corpus`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.corpora.base import Corpus

REGISTRY: Registry[Corpus] = Registry(
    "corpus",
    "corpora",
    "raggs.parts.corpora.base:Corpus",
    {
        "elasticsearch": "raggs.parts.corpora.elasticsearch:ElasticsearchCorpus",
        "folder": "raggs.parts.corpora.folder:FolderCorpus",
        "jsonl": "raggs.parts.corpora.jsonl:JsonlCorpus",
        "pydoc": "raggs.parts.corpora.pydoc:PydocCorpus",
    },
)
