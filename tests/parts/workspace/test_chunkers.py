"""What a workspace lends to chunkers."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.parts.chunkers import Document
from raggs.parts.chunkers.semantic import ClusterChunker
from raggs.parts.embedders.vector_cache import KeptEmbedder
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.workspace import Workspace

TEXT = Document(" ".join(f"Sentence {number} speaks of herons, of boats and of the weather." for number in range(80)))


def chunks(workspace: Workspace, size: int) -> list[str]:
    return [chunk.text for chunk in workspace.chunker(ClusterChunker.Config(size=size)).chunk(TEXT)]


def test_chunkers_share_the_vectors_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.parts.embedders.vector_cache.WORTH_S", 0.0)
    workspace = Workspace(tmp_path)
    first = chunks(workspace, 200)
    assert workspace.pieces_found == 0
    chunks(workspace, 400)
    pieces = workspace.pieces_found
    assert pieces > 10
    workspace.close()
    monkeypatch.setattr(WordLlamaEmbedder, "embed", None)
    again = Workspace(tmp_path)
    assert chunks(again, 200) == first
    assert again.pieces_found == pieces
    again.close()


def test_a_worker_keeps_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, keeps_answers=False)
    chunker = workspace.chunker(ClusterChunker.Config())
    assert isinstance(chunker, ClusterChunker) and not isinstance(chunker.embedder, KeptEmbedder)
    workspace.close()
