"""Windows of so many tokens, whatever they hold: the plainest way to cut, and a yardstick for the others.

The text becomes tokens once; a chunk begins where its first token does and ends where the next one begins, so that
nothing is lost between two chunks. A character of several tokens is not cut: it belongs to the chunk of its first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from raggs.parts.chunkers.base import Document, Place
from raggs.parts.chunkers.sizes import OverlappingConfig, SizedChunker


class TokenChunker(SizedChunker):
    """Windows of a number of tokens or characters, with or without overlap; sentences and words are torn."""

    class Config(OverlappingConfig):
        type: Literal["token"] = "token"

    config: Config

    def places(self, document: Document) -> Iterator[Place]:
        text = document.text
        borders = [0, *self.ruler.borders(text)[1:], len(text)]
        last, step = len(borders) - 1, self.config.size - self.config.overlap
        reached = 0
        for first in range(0, last, step):
            end = min(first + self.config.size, last)
            if borders[end] > reached:
                yield borders[first], borders[end]
                reached = borders[end]
            if end == last:
                return
