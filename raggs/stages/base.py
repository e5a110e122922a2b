"""What a stage is: typed records of earlier stages in, an iterator of typed records out.

A stage knows no paths, no environment and no run: the runner reads and writes for it. It never imports another
stage. It states which artifacts it reads (`READS`) and what else of the world its result depends on (`causes`).

What is counted while a stage's records pass, for its lock.

How many queries are graded side by side: as many as keep the judge busy, and few where the money may end.

A query that is graded in full is of use, one in the middle of its pool is of none until somebody pays for the rest.
Whole pools ask for everything at once, and calls are made in the order in which they are asked for, so that at most one
query is in the middle. Walks ask for a little at a time, and so go on side by side: no further one begins while the
money might end before all of them do. In batches they still do: there each round of all walks is one batch.

How the budget of a set was spread over its questions, as counts for the lock.
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
    """So many of a total, with the interval; four digits."""
    low, high = wilson(count, total)
    rate = round(count / total, 4) if total else None
    return WilsonRate(rate=rate, interval=(round(low, 4), round(high, 4)), count=count, total=total)


class Statistics:
    """What a stage's records say about its judge, counted while they pass; this one counts nothing."""

    probed: CanaryHealth | None = None  # what cases of known grade told, which no record tells
    people: HumanAgreement | None = None  # what people's word told, which no record tells either
    label: Callable[[str, str], int | None] | None = None  # gives the grade to which a simulated judge adds noise
    noise: WilsonRate | None = None  # how often that made another grade, which no record tells
    exact = False  # whether the judge answers by rule, so that nothing is to be warned of

    def see(self, record: Record) -> None:
        """Take notice of one record of an artifact, or of the settled journal; all come query by query."""

    def counts(self) -> Mapping[str, int]:
        """What was counted of the stage's own work, for the manifest; empty where there is nothing to tell."""
        return {}

    def health(self) -> Health | None:
        """What was found, for the manifest; None where there is nothing to tell."""
        return None


class Walks:
    """The calls of the queries that are graded.

    Args:
        stop_after: low grades in a row that end a walk; None where there are no walks.
        group: passages in a call.
        samples: calls for each of them.
        members: calls of models that each of these takes at most; 0 where nobody is paid.
        affords: how many more calls there is money for.
    """

    def __init__(
        self, stop_after: int | None, group: int, samples: int, members: float, affords: Callable[[], float]
    ) -> None:
        self._stop_after, self._group, self._samples = stop_after, group, samples
        self._members = members
        self._affords = affords
        self._most = 0.0  # calls of a query, of those that were begun

    def at_once(self, item: tuple[str, Sequence[object]]) -> int:
        """How many calls a query that begins asks for at once; a walk comes down to a few."""
        self._most = max(self._most, self._calls(len(item[1])) * self._members)
        return self._calls(min(len(item[1]), self._stop_after or len(item[1])))

    def tight(self, unfinished: int) -> bool:
        """Whether the money might end in the middle of a query, were one more begun."""
        return self._stop_after is not None and (unfinished + 1) * self._most > self._affords()

    def _calls(self, passages: int) -> int:
        return -(-passages // self._group) * self._samples


R = TypeVar("R", bound=Record)
C = TypeVar("C", bound=Settings)
V = TypeVar("V")


class PassageLookup(Protocol):
    """Whoever can give passages by id."""

    @property
    def file(self) -> Path | None: ...  # from which another process can give the same
    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]: ...


class Journal(Protocol):
    """What the judge has already ordered, and where the next order is noted as it comes."""

    def entries(self, qid: str) -> Iterable[JournalRecord]: ...
    def append(self, record: JournalRecord) -> None: ...
    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        """The entries that the query's final state is the fold of; all others of the query may go."""


class ProgressCallback(Protocol):
    """Who is told how far a stage is: queries done, all of them; calls done, and how many are expected, 0: unknown."""

    def __call__(self, done: int, total: int, calls: int = 0, expected: int = 0) -> None: ...


def ignore_progress(done: int, total: int, calls: int = 0, expected: int = 0) -> None:
    """Is told, and does nothing about it."""


class Grader(Protocol):
    """The half of a judge that gives grades (see `raggs.parts.judges.Judge`)."""

    @property
    def name(self) -> str: ...

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment: ...
    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]: ...
    def apart(self, query: Query, one: Passage, other: Passage) -> bool: ...


class QueryServices(Protocol):
    """What every stage needs."""

    @property
    def queries(self) -> Mapping[str, Query]: ...


class PassageServices(QueryServices, Protocol):
    """For a stage that reads the corpus."""

    @property
    def passages(self) -> PassageLookup: ...


class GradeServices(QueryServices, Protocol):
    """For grading one pool."""

    @property
    def judge(self) -> Grader: ...


class Services(PassageServices, Protocol):
    """The world as a stage sees it; each part is made when it is first used. A stage that needs less asks for less."""

    workspace: Workspace

    @property
    def embedder(self) -> Embedder | None: ...
    @property
    def rewriter(self) -> Rewriter: ...
    @property
    def retrievers(self) -> Mapping[str, Retriever]: ...
    @property
    def deeper(self) -> Mapping[str, Retriever]: ...  # who search once more for some questions; the same names
    @property
    def judge(self) -> Judge: ...

    def causes(self, part: str, task: Task | None = None) -> Any:
        """What of a part can change a result: "queries", "corpus", "embedder", "rewriter", "retrievers" or "judge".

        "prices": what an order costs by each model of the judge (see `raggs.stages.waves.OrderPrices`).

        "orders": of people, which are known before the judge is asked for any; None where there are none.

        "quotes": that searches and rerankers of this machine read typographic quotation marks folded; empty where there
        are none.

        "unreadable": the files of the corpus that could not be read and were skipped; empty where there are none.

        "hygiene": that passages are read otherwise than their server has them; empty where a store's hash says so.
        """
        ...


class StageWork:
    """What one run of a stage works on: the artifacts that it reads, a query at a time, the journal that it keeps, and
    whom it tells how far it is.

    Args:
        readers: by artifact name, a function that opens a stream of its records, sorted by qid.
        journal: of a stage with `JOURNAL`.
        progress: is told how far the stage is.
        spent: the money has ended: whoever is asked for more than is paid for raises `BudgetError`, and the stage makes
            of each query what can be made without.
        done: ids of queries that need not be worked on, since their records are there.
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
        """What the judge has already ordered."""
        if self._journal is None:
            raise TypeError("the stage keeps a journal and does not say so: set JOURNAL")
        return self._journal

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


class StageOf(ABC, Generic[C, V]):
    """One step of a pipeline, in a world of services. Stateless: `run` may be called for any number of runs."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1  # raised when the stage's code changes its artifact
    READS: ClassVar[tuple[str, ...]] = ()
    BESIDE: ClassVar[Mapping[str, type[Record]]] = {}  # artifacts that it writes besides the one of its name
    ASKS: ClassVar[Literal["judge", "asker"] | None] = None  # whom it asks; what such a stage has done is kept
    JOURNAL: ClassVar[str | None] = None  # an artifact that is appended to while the stage runs
    Config: ClassVar[type[Settings]]
    RECORD: ClassVar[type[Record]]

    @abstractmethod
    def causes(self, config: C, services: V) -> Causes:
        """What the result depends on besides `config` and the artifacts in `READS`, by readable name."""

    def by_query(self, config: C) -> bool:
        """Whether queries may be parted among processes: the records of each depend on its own inputs alone."""
        return True

    def walks(self, config: C, services: V) -> Walks | None:
        """How many queries may be in the middle of their work, where the money may end; None: all."""
        return None

    def prepare(self, work: StageWork, services: V) -> None:
        """Put on the disk what many processes will read, before they all find it missing."""

    def asked(self, services: V) -> str | None:
        """Who is asked, as records name it; None where nobody is."""
        return None

    def cut_short(self, record: Record) -> bool:
        """Whether a record says that its query would have been worked on further, had the money not ended."""
        return False

    def failed(self, record: Record) -> bool:
        """Whether a record stands for work that could not be done; such a stage runs again next time."""
        return False

    def probe(self, work: StageWork, config: C, services: V) -> CanaryHealth | None:
        """Put cases of known grade to whom the stage asks; None where that is not wanted."""
        return None

    def label(self, services: V) -> Callable[[str, str], int | None] | None:
        """What gives the grade to which a simulated judge adds noise, by query and passage; None if it asks none."""
        return None

    def statistics(self, config: C) -> Statistics:
        """Who reads the judge's health off the records of one run of the stage."""
        return Statistics()

    @classmethod
    def artifacts(cls) -> dict[str, type[Record]]:
        """The artifacts that `run` gives records of, with the record on their lines."""
        return {cls.NAME: cls.RECORD, **cls.BESIDE}

    @property
    def names_answerers(self) -> bool:
        """Whether its records name the models that answered."""
        return self.JOURNAL is not None or any("answerers" in model.model_fields for model in self.artifacts().values())

    @property
    def code(self) -> str:
        """The stage and its version, as locks name it."""
        return f"{self.NAME}/{self.VERSION}"

    @abstractmethod
    def run(self, work: StageWork, config: C, services: V) -> Iterator[Record]:
        """The records of all of the stage's artifacts, those of each sorted as their model says."""


AnyStage = StageOf[Any, Any]


class Stage(StageOf[C, Services], Generic[C]):
    """A stage of the pipeline that makes golden sets."""

    def asked(self, services: Services) -> str | None:
        return services.judge.name if self.ASKS == "judge" else None


CALL_QUANTILES = {
    "least": 0.0,
    "quarter": 0.25,
    "half": 0.5,
    "three quarters": 0.75,
    "most": 1.0,
}  # quantiles of the calls


def spread(shares: Sequence[int], ended: int) -> dict[str, int]:
    """By what calls each question got; `ended`: questions that ended before the budget did."""
    line = sorted(shares)
    if not line:
        return {}
    levels = {name: line[round(share * (len(line) - 1))] for name, share in CALL_QUANTILES.items()}
    return {COUNT_CALLS: sum(line), COUNT_SHARING: len(line), COUNT_ENDED: ended, **levels}
