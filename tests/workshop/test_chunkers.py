"""What a workshop lends to chunkers."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.parts.chunkers import Document
from raggs.parts.chunkers.semantic import ClusterChunker
from raggs.parts.embedders.kept import KeptEmbedder
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.workshop import Workshop

TEXT = Document(" ".join(f"Sentence {number} speaks of herons, of boats and of the weather." for number in range(80)))


def chunks(workshop: Workshop, size: int) -> list[str]:
    return [chunk.text for chunk in workshop.chunker(ClusterChunker.Config(size=size)).chunk(TEXT)]


def test_chunkers_share_the_vectors_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.parts.embedders.kept.WORTH_S", 0.0)
    workshop = Workshop(tmp_path)
    first = chunks(workshop, 200)
    assert workshop.pieces_found == 0
    chunks(workshop, 400)
    pieces = workshop.pieces_found
    assert pieces > 10
    workshop.close()
    monkeypatch.setattr(WordLlamaEmbedder, "embed", None)
    again = Workshop(tmp_path)
    assert chunks(again, 200) == first
    assert again.pieces_found == pieces
    again.close()


def test_a_worker_keeps_nothing(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, keeps_answers=False)
    chunker = workshop.chunker(ClusterChunker.Config())
    assert isinstance(chunker, ClusterChunker) and not isinstance(chunker.embedder, KeptEmbedder)
    workshop.close()
