"""Where a workspace keeps what can be made, or bought, again: one folder a cache, named here and nowhere else.

Everything below `.cache` may be deleted at any time; the price is in `NOTES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NOTES: Mapping[str, str] = {
    "llm": "paid answers: clearing them means paying again",
    "corpora": "passages as read; made again from the corpus",
    "cuts": "where paid chunkers cut; made again from the paid answers",
    "vectors": "embeddings of passages and indexes over them; made again by the embedder",
    "rerank": "scores of rerankers of this machine; made again by the model",
    "bm25": "lexical indexes; made again from the passages",
    "sweeps": "lists of the parts of sweeps; made again by searching",
    "diagnoses": "parts of diagnoses; made again by measuring",
}


@dataclass(frozen=True)
class Places:
    """The folders of one workspace's caches. None of them need exist."""

    root: Path

    @classmethod
    def of(cls, workspace: Path) -> Places:
        """The caches of the runs in `workspace`."""
        return cls(workspace / ".cache")

    def folder(self, name: str) -> Path:
        """The folder of a cache that `NOTES` names."""
        return self.root / name

    @property
    def llm(self) -> Path:
        """Answers of language models."""
        return self.folder("llm")

    @property
    def corpora(self) -> Path:
        """Passage stores, one file each."""
        return self.folder("corpora")

    @property
    def cuts(self) -> Path:
        """Where chunkers cut that ask models, one file for each way of cutting."""
        return self.folder("cuts")

    @property
    def vectors(self) -> Path:
        """Vectors of passages, a folder for each corpus and embedder, with the indexes over them."""
        return self.folder("vectors")

    @property
    def rerank(self) -> Path:
        """What rerankers of this machine gave for pairs of query and passage."""
        return self.folder("rerank")

    @property
    def bm25(self) -> Path:
        """Lexical indexes, a folder for each corpus and parameters."""
        return self.folder("bm25")

    @property
    def sweeps(self) -> Path:
        """Lists that systems of sweeps share."""
        return self.folder("sweeps")

    @property
    def diagnoses(self) -> Path:
        """What diagnoses have measured so far."""
        return self.folder("diagnoses")
