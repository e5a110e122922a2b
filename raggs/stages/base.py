"""The stage interface: typed records of earlier stages in, an iterator of typed records out.

A stage has no access to paths, the environment or the run; the runner reads and writes for it. It never imports
another stage. It declares the artifacts that it reads (`READS`) and everything else that its result depends on
(`causes`).

`Statistics` collects counts and health statistics while a stage's records are written. The run's lock stores the
result.

`Walks` decides how many queries are graded concurrently: enough to use the allowed concurrency, but few if the budget
may run out.

Only a fully graded query is useful. A partly graded query is unusable until its remaining calls are paid for. Without
`stop_after`, a query requests all its grades at once. The budget admits calls in the order of the requests, so it
usually runs out within a single query. With `stop_after`, a query requests a few grades at a time, so several queries
are partly graded at once. In that case, no further query starts if the budget might not cover all started queries and
the new one.
Batch mode is an exception: in each round, the requests of all started queries form one batch.

`spread` summarises how a shared budget was distributed over the queries, as counts for the lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar

from raggs.base.artifacts import JournalRecord, Passage, Query, Record
from raggs.base.judge_health import (
    COUNT_CALLS,
    COUNT_ENDED,
    COUNT_SHARING,
    CanaryHealth,
    Health,
    HumanAgreement,
    WilsonRate,
)
from raggs.base.settings import Causes, Settings
from raggs.stats.agreement import wilson

if TYPE_CHECKING:
    from raggs.parts.embedders import Embedder
    from raggs.parts.judges import Judge, Judgment, Task
    from raggs.parts.retrievers import Retriever
    from raggs.parts.rewriters import Rewriter
    from raggs.parts.workspace import Workspace


def rate_of(count: int, total: int) -> WilsonRate:
    """Return `count` of `total` as a rate with its Wilson interval, rounded to four digits."""
    low, high = wilson(count, total)
    rate = round(count / total, 4) if total else None
    return WilsonRate(rate=rate, interval=(round(low, 4), round(high, 4)), count=count, total=total)


class Statistics:
    """Statistics of a stage, collected while its records are written. This base class collects nothing."""

    probed: CanaryHealth | None = None  # result of the canaries; not part of any record
    people: HumanAgreement | None = None  # agreement with human labels; not part of any record
    label: Callable[[str, str], int | None] | None = None  # returns the grade to which a simulated judge adds noise
    noise: WilsonRate | None = None  # how often the noise changed the grade; not part of any record
    exact = False  # whether the judge answers by rule, so that warnings do not apply

    def see(self, record: Record) -> None:
        """Process one record of an artifact, or of the settled journal. Records are grouped by query."""

    def counts(self) -> Mapping[str, int]:
        """Return counts about the stage's own work for the manifest; empty if there are none."""
        return {}

    def health(self) -> Health | None:
        """Return the findings for the manifest, or None if there are none."""
        return None


class Walks:
    """Limit on the number of queries that are graded concurrently.

    Args:
        stop_after: number of low grades in a row that ends the grading of a pool, or None for no early stop.
        group: passages per call.
        samples: calls per group of passages.
        members: maximum number of model calls per call of the judge; 0 if its calls are free.
        affords: returns how many more calls the budget covers.
    """

    def __init__(
        self, stop_after: int | None, group: int, samples: int, members: float, affords: Callable[[], float]
    ) -> None:
        self._stop_after, self._group, self._samples = stop_after, group, samples
        self._members = members
        self._affords = affords
        self._most = 0.0  # maximum number of model calls that any started query may need

    def at_once(self, item: tuple[str, Sequence[object]]) -> int:
        """Return how many calls a query requests when it starts; with `stop_after`, it may request more later."""
        self._most = max(self._most, self._calls(len(item[1])) * self._members)
        return self._calls(min(len(item[1]), self._stop_after or len(item[1])))

    def tight(self, unfinished: int) -> bool:
        """Return whether the budget might run out in the middle of a query if one more query started."""
        return self._stop_after is not None and (unfinished + 1) * self._most > self._affords()

    def _calls(self, passages: int) -> int:
        return -(-passages // self._group) * self._samples


R = TypeVar("R", bound=Record)
C = TypeVar("C", bound=Settings)
V = TypeVar("V")


class PassageLookup(Protocol):
    """Access to passages by id."""

    @property
    def file(self) -> Path | None: ...  # file for reading the same passages in another process
    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]: ...


class Journal(Protocol):
    """The orders that the judge has already given. New orders are appended as they arrive."""

    def entries(self, qid: str) -> Iterable[JournalRecord]: ...
    def append(self, record: JournalRecord) -> None: ...
    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        """Record which entries determine the query's final state. The journal may delete all other entries of the
        query.
        """


class ProgressCallback(Protocol):
    """Progress callback: finished queries, all queries, calls made, and calls expected (0 if unknown)."""

    def __call__(self, done: int, total: int, calls: int = 0, expected: int = 0) -> None: ...


def ignore_progress(done: int, total: int, calls: int = 0, expected: int = 0) -> None:
    """Ignore the reported progress."""


class Grader(Protocol):
    """The grading part of a judge (see `raggs.parts.judges.Judge`)."""

    @property
    def name(self) -> str: ...

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment: ...
    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]: ...
    def apart(self, query: Query, one: Passage, other: Passage) -> bool: ...


class QueryServices(Protocol):
    """Services that every stage needs."""

    @property
    def queries(self) -> Mapping[str, Query]: ...


class PassageServices(QueryServices, Protocol):
    """Services of a stage that reads the corpus."""

    @property
    def passages(self) -> PassageLookup: ...


class GradeServices(QueryServices, Protocol):
    """Services for grading one pool."""

    @property
    def judge(self) -> Grader: ...


class Services(PassageServices, Protocol):
    """All services of a stage. Each is created when it is first used. A stage that needs less declares a smaller
    protocol.
    """

    workspace: Workspace

    @property
    def embedder(self) -> Embedder | None: ...
    @property
    def rewriter(self) -> Rewriter: ...
    @property
    def retrievers(self) -> Mapping[str, Retriever]: ...
    @property
    # the retrievers for queries that are searched deeper, under the same names
    def deeper(self) -> Mapping[str, Retriever]: ...
    @property
    def judge(self) -> Judge: ...

    def causes(self, part: str, task: Task | None = None) -> Any:
        """Return everything about a component that can change a result.

        `part` is "queries", "corpus", "embedder", "rewriter", "retrievers" or "judge", or one of the following:

        "prices": cost of an order for each model of the judge (see `raggs.stages.waves.OrderPrices`).

        "orders": human orders that are known before the judge is called; None if there are none.

        "quotes": states that local searches and rerankers normalise typographic quotation marks; empty if there are
        none.

        "unreadable": files of the corpus that were skipped because they could not be read; empty if there are none.

        "hygiene": states that passages are cleaned after they are read from a server; empty if the hash of the store
        covers this.
        """
        ...


class StageWork:
    """Input of one run of a stage: the artifacts that it reads, its journal, and the progress callback.

    Args:
        readers: by artifact name, a function that opens a stream of its records, sorted by qid.
        journal: journal of a stage with `JOURNAL`.
        progress: progress callback of the stage.
        spent: whether the budget is used up. Calls that the budget does not cover raise `BudgetError`, and the stage
            writes the records that need no further calls.
        done: ids of queries that are skipped because their records exist.
    """

    def __init__(
        self,
        readers: Mapping[str, Callable[[], Iterator[Record]]],
        journal: Journal | None = None,
        progress: ProgressCallback = ignore_progress,
        *,
        spent: bool = False,
        done: Collection[str] = (),
    ) -> None:
        self._readers = readers
        self._journal = journal
        self.progress = progress
        self.spent = spent
        self.done = done

    @property
    def journal(self) -> Journal:
        """The journal of the stage."""
        if self._journal is None:
            raise TypeError("the stage uses a journal but does not declare it: set JOURNAL")
        return self._journal

    def read(self, artifact: str, model: type[R]) -> Iterator[R]:
        """Yield all records of an artifact, in its order."""
        for record in self._readers[artifact]():
            if not isinstance(record, model):
                raise TypeError(f"{artifact} holds {type(record).__name__}, not {model.__name__}")
            yield record

    def by_query(self, artifact: str, model: type[R]) -> Iterator[tuple[str, list[R]]]:
        """Yield each query id with all its records."""
        for qid, records in groupby(self.read(artifact, model), key=lambda record: record.qid):
            yield qid, list(records)


class StageOf(ABC, Generic[C, V]):
    """One step of a pipeline. A stage is stateless: `run` can be called for any number of runs."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1  # increased when the stage's code changes its artifact
    READS: ClassVar[tuple[str, ...]] = ()
    BESIDE: ClassVar[Mapping[str, type[Record]]] = {}  # artifacts that the stage writes in addition to its main one
    # which kind of model the stage calls; the results of such a stage are kept
    ASKS: ClassVar[Literal["judge", "asker"] | None] = None
    JOURNAL: ClassVar[str | None] = None  # an artifact that the stage appends to while it runs
    Config: ClassVar[type[Settings]]
    RECORD: ClassVar[type[Record]]

    @abstractmethod
    def causes(self, config: C, services: V) -> Causes:
        """Return everything that the result depends on except `config` and the artifacts in `READS`, by readable
        name.
        """

    def by_query(self, config: C) -> bool:
        """Return whether queries can be distributed over processes, because the records of a query depend only on
        its inputs.
        """
        return True

    def walks(self, config: C, services: V) -> Walks | None:
        """Return the limit on concurrent queries when the budget may run out; None for no limit."""
        return None

    def prepare(self, work: StageWork, services: V) -> None:
        """Write files that many processes will read, before each of them finds the files missing and creates them."""

    def asked(self, services: V) -> str | None:
        """Return the name of the stage's judge or question generator, as in records; None if the stage has neither."""
        return None

    def cut_short(self, record: Record) -> bool:
        """Return whether the record shows that work on its query stopped early because the budget was used up."""
        return False

    def failed(self, record: Record) -> bool:
        """Return whether a record reports a failure. The next run repeats a stage that has failed records."""
        return False

    def probe(self, work: StageWork, config: C, services: V) -> CanaryHealth | None:
        """Have the stage's judge grade hidden control items (canaries). Return None if the run has no canaries."""
        return None

    def label(self, services: V) -> Callable[[str, str], int | None] | None:
        """Return a function from query and passage to the label that a simulated judge adds noise to. Return None for
        other judges.
        """
        return None

    def statistics(self, config: C) -> Statistics:
        """Return an object that collects statistics from the records of one run of the stage."""
        return Statistics()

    @classmethod
    def artifacts(cls) -> dict[str, type[Record]]:
        """Return the artifacts that `run` yields records of, with their record types."""
        return {cls.NAME: cls.RECORD, **cls.BESIDE}

    @property
    def names_answerers(self) -> bool:
        """Whether the records name the models that answered."""
        return self.JOURNAL is not None or any("answerers" in model.model_fields for model in self.artifacts().values())

    @property
    def code(self) -> str:
        """The stage and its version, as stored in locks."""
        return f"{self.NAME}/{self.VERSION}"

    @abstractmethod
    def run(self, work: StageWork, config: C, services: V) -> Iterator[Record]:
        """Yield the records of all artifacts of the stage. Records of one artifact are sorted as their model
        specifies.
        """


AnyStage = StageOf[Any, Any]


class Stage(StageOf[C, Services], Generic[C]):
    """A stage of the pipeline that makes golden sets."""

    def asked(self, services: Services) -> str | None:
        return services.judge.name if self.ASKS == "judge" else None


# quantile levels of the calls per query
CALL_QUANTILES = {"least": 0.0, "quarter": 0.25, "half": 0.5, "three quarters": 0.75, "most": 1.0}


def spread(shares: Sequence[int], ended: int) -> dict[str, int]:
    """Return the calls, the queries, the `ended` queries, and quantiles of the calls per query; empty without queries.
    `ended` is the number of queries that ended before the budget did.
    """
    line = sorted(shares)
    if not line:
        return {}
    levels = {name: line[round(share * (len(line) - 1))] for name, share in CALL_QUANTILES.items()}
    return {COUNT_CALLS: sum(line), COUNT_SHARING: len(line), COUNT_ENDED: ended, **levels}
