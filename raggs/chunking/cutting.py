"""All documents cut by one chunker, with the time that took.

A chunk's place is where it was cut. With `compat` it is where its text is found first, as the report's code has it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from raggs.base.errors import DataError
from raggs.chunking.documents import Documents
from raggs.metrics.spans import Spans, locate
from raggs.metrics.spans.columns import Place
from raggs.parts.chunkers.base import Chunk, Chunker


@dataclass(frozen=True)
class Cut:
    """The chunks of all documents.

    Attributes:
        texts: of the chunks.
        spans: their places.
        seconds: that the chunker took.
    """

    texts: tuple[str, ...]
    spans: Spans
    seconds: float


def cut(
    chunker: Chunker, documents: Documents, *, compat: bool = False, tell: Callable[[int], None] = lambda _: None
) -> Cut:
    """Cut all documents.

    Args:
        tell: hears how many are cut.

    Raises:
        RaggsError: as the chunker.
        DataError: no chunk came of them.
    """
    began = time.perf_counter()
    found: list[tuple[int, Chunk]] = []
    for number, document in enumerate(documents.whole):
        found += ((number, chunk) for chunk in chunker.chunk(document))
        tell(number + 1)
    seconds = time.perf_counter() - began
    if not found:
        raise DataError("no chunk came of the documents", where=documents.folder, remedy="choose another chunker")
    spans = Spans.of(
        _places(found, documents) if compat else ((number, each.start, each.end) for number, each in found)
    )
    return Cut(tuple(chunk.text for _, chunk in found), spans, seconds)


def _places(found: list[tuple[int, Chunk]], documents: Documents) -> Iterator[Place]:
    for number, chunk in found:
        start, end = locate(chunk.text, documents.texts[number]) or (chunk.start, chunk.end)
        yield number, start, end
