"""A Python function as a chunker: any way to cut in a few lines, without a package around it.

    def cut(text: str) -> list[tuple[int, int]]: ...   # where each chunk begins and ends, in characters, in order

It may give the chunks' texts instead, word for word: each is looked for from where the one before began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from operator import index
from typing import Literal

from raggs.base.adapter import CallableConfig, UserFunction
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes
from raggs.base.text import shorten
from raggs.parts.chunkers.base import Chunker, ChunkerConfig, Document, Place

UNORDERED = (str, bytes, Mapping, Set)


class PythonChunker(Chunker):
    """A Python function of yours: f(text) gives the places of its chunks, or their texts word for word."""

    class Config(ChunkerConfig, CallableConfig):
        type: Literal["python"] = "python"

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    def check(self) -> None:
        self._function.load()

    def places(self, document: Document) -> Iterator[Place]:
        found = self._function(document.source, document.text)
        if not isinstance(found, Iterable) or isinstance(found, UNORDERED):
            raise self._wrong(f"gave {type(found).__name__}, not a list of places, on {document.source}")
        start = end = 0
        for each in self._function.iterate(document.source, found):
            if isinstance(each, str):
                start, end = self._found(document, each, start, end)
            else:
                start, end = self._place(each, document)
            yield start, end

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _found(self, document: Document, chunk: str, start: int, end: int) -> Place:
        """Where a chunk's text stands: after the one before, or over its end where the two overlap."""
        at = document.text.find(chunk, end)
        overlapping = document.text.find(chunk, start + 1 if end else 0, end + len(chunk)) if end else -1
        at = overlapping if overlapping >= 0 else at
        if at < 0:
            raise self._wrong(f"gave {shorten(repr(chunk), 60)}, which is not in {document.source} after {start}")
        return at, at + len(chunk)

    def _place(self, value: object, document: Document) -> Place:
        if isinstance(value, Sequence) and len(value) == 2:
            try:
                return index(value[0]), index(value[1])
            except TypeError:
                pass
        raise self._wrong(f"gave {shorten(repr(value), 60)}, which is no place, on {document.source}")

    def _wrong(self, problem: str) -> ProviderError:
        return ProviderError(
            f"{self.config.callable} {problem}", remedy="give a pair of start and end in characters for each chunk"
        )
