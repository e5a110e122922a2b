"""What a retriever is: embedded queries in, the best k passages of each out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from raggs.arrays import Vectors
from raggs.artifacts import EmbedRecord
from raggs.indexes.passages import Passages, PassageStore
from raggs.registry import Adapter
from raggs.settings import Settings


class Hit(NamedTuple):
    """A passage and the retriever's score for it, higher is better."""

    doc_id: str
    score: float


def name_of(config: Settings) -> str:
    """The name of a configured retriever in records and weights: its `name`, else its `type`."""
    return str(getattr(config, "name", None) or getattr(config, "type"))  # noqa: B009 - every Config has it


@dataclass(frozen=True)
class RetrieverContext:
    """What a retriever may use: the passages, the queries' ids, the embedder, a folder for indexes."""

    passages: Passages
    queries: Collection[str]  # the ids of all queries of the run
    embed: Callable[[Sequence[str]], Vectors]
    embedder: str
    dims: int
    cache: Path
    progress: Callable[[str, int, int], None]  # what is being built, done, of

    @property
    def store(self) -> PassageStore:
        """The whole corpus on this disk, for retrievers with `WHOLE_CORPUS`."""
        if not isinstance(self.passages, PassageStore):
            raise TypeError("a retriever reads the whole corpus and does not say so: set WHOLE_CORPUS")
        return self.passages


class RetrieverAdapter(Adapter):
    """What every retriever inherits."""

    WHOLE_CORPUS: ClassVar[bool] = False  # whether it reads passages by position, and so all of them

    def state(self) -> Mapping[str, Any]:
        """What besides its settings and the corpus can change its hits, as it is now: say, an index on a server.

        Asked for before anything is paid for, so a retriever that cannot work says so here.
        """
        return {}

    def close(self) -> None:
        """Let go of what is open. May be called twice."""


class Retriever(Protocol):
    """Searches the corpus. Built as ``cls(config, context)``; builds or opens its index at first search."""

    def state(self) -> Mapping[str, Any]: ...
    def close(self) -> None: ...

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """For each query its hits, best first: score descending, then doc_id ascending; at most `k`.

        Raises:
            DataError: a score is NaN, or a query's vector does not fit the index.
        """
        ...
