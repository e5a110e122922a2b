"""What a corpus is: passages from somewhere, and a cheap hash that tells when they changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from raggs.artifacts import Passage


class Corpus(Protocol):
    """A source of passages. Built as ``cls(config)``."""

    def source_hash(self) -> str:
        """A hash of the bytes that the passages are made from; changes whenever a passage could.

        Raises:
            NotFoundError: the source is missing or unreadable.
        """
        ...

    def passages(self) -> Iterator[Passage]:
        """Every passage, in the source's order.

        Raises:
            NotFoundError: the source is missing or unreadable.
            DataError: a passage is malformed; names file and line. Duplicate ids are the store's to find.
        """
        ...
