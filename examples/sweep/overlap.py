"""Rerank by the share of the query's words that a passage contains."""

from __future__ import annotations

from collections.abc import Sequence


def words(text: str) -> set[str]:
    """Return the words of more than three letters, in lower case."""
    return {word.strip(".,;:()`\"'?") for word in text.lower().split() if len(word) > 3}


def rerank(query: str, passages: Sequence[str]) -> list[float]:
    """Return a score for each passage; higher is better."""
    query_words = words(query)
    return [len(query_words & words(passage)) / max(len(query_words), 1) for passage in passages]
