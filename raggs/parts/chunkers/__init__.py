"""Chunkers by name: each cuts documents into passages with exact places (see `base.Chunker`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.chunkers.base import Chunker

REGISTRY: Registry[Chunker] = Registry(
    "chunker",
    "chunkers",
    "raggs.parts.chunkers.base:Chunker",
    {
        "cluster": "raggs.parts.chunkers.cluster:ClusterChunker",
        "llm": "raggs.parts.chunkers.llm:LlmChunker",
        "markdown": "raggs.parts.chunkers.markdown:MarkdownChunker",
        "paragraphs": "raggs.parts.chunkers.paragraphs:ParagraphsChunker",
        "python": "raggs.parts.chunkers.python:PythonChunker",
        "recursive": "raggs.parts.chunkers.recursive:RecursiveChunker",
        "semantic": "raggs.parts.chunkers.semantic:SemanticChunker",
        "sentence": "raggs.parts.chunkers.sentence:SentenceChunker",
        "token": "raggs.parts.chunkers.token:TokenChunker",
    },
)
