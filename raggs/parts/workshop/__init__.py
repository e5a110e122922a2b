"""Working parts from what names them: a corpus, an embedder, a retriever, a judge, each made when it is asked for.

It knows no run, no run's configuration and no stage: whoever wants a part says which, and owns what comes of it. What
the parts are is said here too, so that who uses them imports this room alone.
"""

from __future__ import annotations

from raggs.llm import LLM
from raggs.parts.askers.base import Asker
from raggs.parts.chunkers.base import Chunker
from raggs.parts.embedders.base import Embedder
from raggs.parts.indexes.passages import Passages
from raggs.parts.judges.base import Calls, Judge, Ordering, Task
from raggs.parts.rerankers.base import Reranker
from raggs.parts.retrievers.base import Retriever
from raggs.parts.rewriters.base import Rewriter
from raggs.parts.workshop.corpus import OpenCorpus, place_of
from raggs.parts.workshop.models import judge_prompts
from raggs.parts.workshop.questions import open_numbered, open_queries
from raggs.parts.workshop.workshop import Workshop, read_whole
from raggs.prompts import Prompt

__all__ = [
    "LLM",
    "Asker",
    "Calls",
    "Chunker",
    "Embedder",
    "Judge",
    "OpenCorpus",
    "Ordering",
    "Passages",
    "Prompt",
    "Reranker",
    "Retriever",
    "Rewriter",
    "Task",
    "Workshop",
    "judge_prompts",
    "open_numbered",
    "open_queries",
    "place_of",
    "read_whole",
]
