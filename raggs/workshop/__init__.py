"""Working parts from what names them: a corpus, an embedder, a retriever, a judge, each made when it is asked for.

It knows no run, no run's configuration and no stage: whoever wants a part says which, and owns what comes of it. What
the parts are is said here too, so that who uses them imports this room alone.

Imports: adapters, chunkers, embedders, rerankers, prompts, reviews, indexes, llm, leaves.
"""

from __future__ import annotations

from raggs.askers.base import Asker
from raggs.chunkers.base import Chunker
from raggs.embedders.base import Embedder
from raggs.indexes.passages import Passages
from raggs.judges.base import Calls, Judge, Ordering, Task
from raggs.llm import LLM
from raggs.prompts import Prompt
from raggs.rerankers.base import Reranker
from raggs.retrievers.base import Retriever
from raggs.rewriters.base import Rewriter
from raggs.workshop.corpus import OpenCorpus, place_of
from raggs.workshop.models import judge_prompts
from raggs.workshop.questions import open_numbered, open_queries
from raggs.workshop.workshop import Workshop, read_whole

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
