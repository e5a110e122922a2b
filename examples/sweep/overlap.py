"""A reranker of one's own: the share of the question's words that a passage holds."""

from __future__ import annotations

from collections.abc import Sequence


def words(text: str) -> set[str]:
    """Longer words, in small letters."""
    return {word.strip(".,;:()`\"'?") for word in text.lower().split() if len(word) > 3}


def rerank(query: str, passages: Sequence[str]) -> list[float]:
    """A score for each passage, higher is better."""
    asked = words(query)
    return [len(asked & words(passage)) / max(len(asked), 1) for passage in passages]
