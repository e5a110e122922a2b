"""Working parts from what names them: a corpus, an embedder, a retriever, a judge, each made when it is asked for.

It knows no run, no run's configuration and no stage: whoever wants a part says which, and owns what comes of it.
Imports: adapters, prompts, indexes, llm, leaves.
"""

from __future__ import annotations

from raggs.workshop.corpus import OpenCorpus
from raggs.workshop.folders import make_folder
from raggs.workshop.workshop import Workshop

__all__ = ["OpenCorpus", "Workshop", "make_folder"]
