"""What a stage is: typed records of earlier stages in, an iterator of typed records out.

A stage knows no paths, no environment and no run: the runner reads and writes for it. It never imports another
stage. It states which artifacts it reads (`READS`) and what else of the world its result depends on (`causes`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from raggs.artifacts import JournalRecord, Passage, Query, Record
from raggs.embedders.base import Embedder
from raggs.judges.base import Judge, Task
from raggs.retrievers.base import Retriever
from raggs.rewriters.base import Rewriter
from raggs.settings import Settings

R = TypeVar("R", bound=Record)
C = TypeVar("C", bound=Settings)
S = TypeVar("S")
T = TypeVar("T")


class Passages(Protocol):
    """Whoever can give passages by id, from a file that other processes may open too."""

    @property
    def path(self) -> Path: ...

    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]: ...


class Journal(Protocol):
    """What the judge has already ordered, and where the next order is noted as it comes."""

    def entries(self, qid: str) -> Iterable[JournalRecord]: ...

    def append(self, record: JournalRecord) -> None: ...

    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        """The entries that the query's final state is the fold of; all others of the query may go."""
        ...


class Services(Protocol):
    """The world as a stage sees it; each part is made when it is first used."""

    @property
    def queries(self) -> Mapping[str, Query]: ...
    @property
    def passages(self) -> Passages: ...
    @property
    def embedder(self) -> Embedder | None: ...
    @property
    def rewriter(self) -> Rewriter: ...
    @property
    def retrievers(self) -> Mapping[str, Retriever]: ...
    @property
    def judge(self) -> Judge: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def loop(self) -> asyncio.Runner: ...
    @property
    def concurrency(self) -> int: ...

    def progress(self, done: int, total: int) -> None: ...

    def causes(self, part: str, task: Task | None = None) -> Any:
        """What of a part can change a result: "queries", "corpus", "embedder", "rewriter", "retrievers" or "judge"."""
        ...


class Inputs:
    """The artifacts that a stage reads, a query at a time.

    Args:
        readers: by artifact name, a function that opens a stream of its records, sorted by qid.
    """

    def __init__(self, readers: Mapping[str, Callable[[], Iterator[Record]]]) -> None:
        self._readers = readers

    def read(self, artifact: str, model: type[R]) -> Iterator[R]:
        """All records of an artifact, in its order."""
        for record in self._readers[artifact]():
            if not isinstance(record, model):
                raise TypeError(f"{artifact} holds {type(record).__name__}, not {model.__name__}")
            yield record

    def by_query(self, artifact: str, model: type[R]) -> Iterator[tuple[str, list[R]]]:
        """Query id and all of its records, query after query."""
        for qid, records in groupby(self.read(artifact, model), key=lambda record: record.qid):
            yield qid, list(records)


class Stage(ABC, Generic[C, R]):
    """One step of the pipeline. Stateless: `run` may be called for any number of runs."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1  # raised when the stage's code changes its artifact
    READS: ClassVar[tuple[str, ...]] = ()
    JOURNAL: ClassVar[str | None] = None  # an artifact that is appended to while the stage runs
    BY_QUERY: ClassVar[bool] = True  # a query's records depend on its own inputs alone, so queries may be parted
    Config: ClassVar[type[Settings]]
    Record: ClassVar[type[Record]]

    @abstractmethod
    def causes(self, config: C, services: Services) -> dict[str, Any]:
        """What the result depends on besides `config` and the artifacts in `READS`, by readable name."""

    def prepare(self, inputs: Inputs, services: Services) -> None:
        """Put on the disk what many processes will read, before they all find it missing."""
        return

    def failed(self, record: R) -> bool:
        """Whether a record stands for work that could not be done; such a stage runs again next time."""
        return False

    def health(self, entries: Iterable[JournalRecord]) -> Mapping[str, Any]:
        """What a finished journal says about the judge; for stages that keep one."""
        return {}

    @abstractmethod
    def run(self, inputs: Inputs, config: C, services: Services) -> Iterator[R]:
        """The stage's records, sorted as their model says."""


def run_ordered(
    services: Services, items: Iterable[S], work: Callable[[S], Awaitable[T]], *, window: int | None = None
) -> Iterator[T]:
    """Work on many items at once and give the results in the items' order.

    At most `window` items (default: four times the allowed concurrency) are begun and not yet given out, so
    memory stays flat however long the stream is. The first error cancels what is still running and is raised.
    """
    limit = window or 4 * services.concurrency
    pending: deque[asyncio.Task[T]] = deque()
    source = iter(items)

    async def advance() -> T:
        # A task is only started by the loop, so the window is filled inside it.
        for item in islice(source, limit - len(pending)):
            pending.append(asyncio.ensure_future(work(item)))
        if not pending:
            raise _Exhausted
        return await pending.popleft()

    try:
        while True:
            try:
                result = services.loop.run(advance())
            except _Exhausted:
                return
            yield result
    finally:
        if pending:
            services.loop.run(_cancel(pending))


class _Exhausted(Exception):
    """All items are given out."""


async def _cancel(tasks: Iterable[asyncio.Task[T]]) -> None:
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
