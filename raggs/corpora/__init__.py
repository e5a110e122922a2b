"""Corpora by name: one file and one line each (see `base.Corpus`).

Imports: chunkers, tools, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.corpora.base import Corpus

REGISTRY: Registry[Corpus] = Registry(
    "corpus",
    "corpora",
    "raggs.corpora.base:Corpus",
    {
        "elasticsearch": "raggs.corpora.elasticsearch:ElasticsearchCorpus",
        "folder": "raggs.corpora.folder:FolderCorpus",
        "jsonl": "raggs.corpora.jsonl:JsonlCorpus",
        "pydoc": "raggs.corpora.pydoc:PydocCorpus",
    },
)
