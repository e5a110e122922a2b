"""Chunkers by name, who cut documents into passages with exact places: one file and one line each (see `base.Chunker`).

Imports: embedders, prompts, documents, llm, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.chunkers.base import Chunker

REGISTRY: Registry[Chunker] = Registry(
    "chunker",
    "chunkers",
    "raggs.chunkers.base:Chunker",
    {
        "cluster": "raggs.chunkers.cluster:ClusterChunker",
        "llm": "raggs.chunkers.llm:LlmChunker",
        "markdown": "raggs.chunkers.markdown:MarkdownChunker",
        "paragraphs": "raggs.chunkers.paragraphs:ParagraphsChunker",
        "python": "raggs.chunkers.python:PythonChunker",
        "recursive": "raggs.chunkers.recursive:RecursiveChunker",
        "semantic": "raggs.chunkers.semantic:SemanticChunker",
        "sentence": "raggs.chunkers.sentence:SentenceChunker",
        "token": "raggs.chunkers.token:TokenChunker",
    },
)
