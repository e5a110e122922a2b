"""The records that stages hand to each other: what each line of each artifact means.

Every record is frozen, versioned (`v`) and complete in itself; a reader needs nothing but the line. A run's
artifacts are sorted by query id, then as the record says, so equal inputs give equal bytes. An identifier is
any non-empty text without white space, since TREC files separate columns by it.

What all records and all that is handed on as JSON have in common: they are values.

Imports: no room.

What is believed of a judge before it is asked, as records hold it.

Imports: no room.

What calls to language models took: one value, from the call itself to the lock of a stage and the sums of a run.

Values add and subtract: `after - before` is what lies between. Nothing here knows prices, files or providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import not_
from pathlib import PurePath
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from raggs.base.document import Column
from raggs.base.text import clean_passage


class Frozen(BaseModel):
    """A value: unchangeable, no unknown fields, no NaN and no infinity."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )


MIN_STANDARD_ERROR = 0.001  # doubt: with less, no answer could shake what is believed


class JudgeProfile(Frozen):
    """What the lists of a few questions taught of the judge, as the ranking of every question takes it in."""

    questions: int = Field(ge=1, description="whose lists of several lengths it was learned from")
    sharpness: float = Field(gt=0, le=1000, description="for lists of five: 3 tells a grade apart 19 times in 20")
    doubt: float = Field(ge=MIN_STANDARD_ERROR, description="standard error of its logarithm")
    left: tuple[float, ...] = Field((), description="what is left of its care at each pick of a list; empty: all")
    strain: float = Field(
        0.0, ge=0, le=10, description="what a long list costs it: (5 / length)^strain of its care is left"
    )
    overhead: float = Field(0.0, ge=0, description="what a call costs beside its passages, in passages")
    sigma: float = Field(0.5, gt=0, description="how far utilities spread around the grade deserved, in grades")
    slip: float = Field(0.25, ge=0, le=0.9, description="share of the grades that are one off the deserved one")
    favour: tuple[float, ...] = Field(
        (),
        exclude_if=not_,
        description="what places from the first of a list to the last add to the log-odds of being picked; empty: "
        "nothing",
    )
    favour_doubt: float | None = Field(
        None,
        ge=MIN_STANDARD_ERROR,
        exclude_if=not_,
        description="standard error of each of these; null: nothing was learned of them",
    )
    echo: float = Field(
        0.0, ge=0, le=0.9, exclude_if=not_, description="correlation of its errors when it meets a pair again"
    )


MIN_GRADE, MAX_GRADE = 1, 5

Identifier = Annotated[str, StringConstraints(min_length=1, pattern=r"^\S+$")]
Grade = Annotated[int, Field(ge=MIN_GRADE, le=MAX_GRADE, strict=True)]
Rank = Annotated[int, Field(ge=1)]
Groups = tuple[tuple[Identifier, ...], ...]
ANSWERERS = "keys of the models that answered; the stage's lock says who they are"
Metadata = Mapping[str, object]  # JSON values, which nothing here interprets


class Span(Frozen):
    """The characters from `start` up to `end` of one document of the corpus."""

    source: str = Field(min_length=1, description="the document, by the name that the corpus gives it")
    start: int = Field(ge=0, strict=True, description="the first character, counted from 0")
    end: int = Field(ge=1, strict=True, description="the first character after it")

    @model_validator(mode="after")
    def _forward(self) -> Span:
        if self.end <= self.start:
            raise ValueError(f"a span from {self.start} to {self.end} holds nothing")
        return self


def span_of(value: object) -> Span | None:
    """The span that a mapping of `source`, `start` and `end` describes; None for any other value.

    Raises:
        ValidationError: it has these three keys, and they describe no place.
    """
    if isinstance(value, Mapping) and value.keys() == Span.model_fields.keys():
        return Span.model_validate(value)
    return None


def names_of(source: str) -> tuple[str, str]:
    """What references may call a document: its name, or its name without the ending of the file."""
    return source, str(PurePath(source).with_suffix(""))


class Nugget(Frozen):
    """One fact that an answer needs. A passage holds it when any of the patterns is found in its text."""

    any: tuple[str, ...] = Field(min_length=1, description="alternative regular expressions, case ignored")
    vital: bool = Field(True, description="vital nuggets weigh 1, others 0.5")


class Reference(Frozen):
    """An excerpt of the corpus that answers a question."""

    text: str = Field(min_length=1, description="the excerpt, word for word")
    doc_id: str | None = Field(None, description="the passage that holds it, where known")
    span: Span | None = Field(None, description="where in the corpus it stands, where known")


class Query(Frozen):
    """A question as its author gave it."""

    qid: Identifier = Field(description="query id")
    text: str = Field(min_length=1, description="the question, character for character as it was read")
    language: str | None = Field(None, description="ISO 639-1 code; detected when absent")
    answer: str | None = Field(None, description="the expected answer")
    references: tuple[Reference, ...] = Field((), description="excerpts of the corpus that answer it")
    nuggets: tuple[Nugget, ...] = Field((), description="facts that an answer needs")
    metadata: Metadata = Field(default_factory=dict, description="whatever else the author wrote")


class Passage(Frozen):
    """A piece of the corpus: what a retriever returns and a judge reads."""

    doc_id: Identifier
    text: str = Field(min_length=1)
    title: str = ""
    span: Span | None = Field(None, description="where in the corpus it stands, where the corpus says so")
    metadata: Metadata = Field(default_factory=dict)

    @property
    def raw(self) -> str:
        """Title and text, character for character as the corpus has them; what `span` counts in."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def content(self) -> str:
        """Title and text after Unicode hygiene, as retrievers index them and judges read them."""
        return clean_passage(self.raw)


# --- artifacts ------------------------------------------------------------------------------------------------


class Record(Frozen):
    """A line of an artifact."""

    ORDER: ClassVar[tuple[str, ...]] = ("qid",)
    v: int = Field(1, ge=1, le=1, strict=True, description="version of the record's form")
    qid: Identifier = Field(description="query id")


class QueryRecord(Query, Record):
    """queries.jsonl: a question as its author gave it, with all that came with it. One line a query."""

    @classmethod
    def of(cls, query: Query) -> QueryRecord:
        """The line that keeps `query`."""
        return cls(**dict(query))


class EmbedRecord(Record):
    """embed.jsonl: a query, cleaned, rewritten and embedded. One line a query."""

    text: str = Field(description="the question after Unicode hygiene")
    rewrite: str = Field(description="what is searched for; equals `text` where nothing was rewritten")
    bm25_text: str = Field(description="the words handed to lexical retrievers")
    language: str = Field(description="ISO 639-1 code")
    embedding: tuple[float, ...] = Field(description="float32 values of the query vector; empty without an embedder")
    embedder: str = Field(description="name, version and dimensions of the embedder; empty without one")


class RetrieveRecord(Record):
    """retrieve.jsonl: one hit of one retriever. Sorted by qid, retriever, rank."""

    ORDER = ("qid", "retriever", "rank")
    retriever: str = Field(description="the retriever's name in the configuration")
    rank: Rank
    doc_id: Identifier
    score: float = Field(description="the retriever's own score, higher is better")
    escalated: tuple[str, ...] = Field((), exclude_if=not_, description="signals that had the query searched deeper")


class Placement(Frozen):
    """Where one retriever placed a passage."""

    rank: Rank
    score: float


class MergeRecord(Record):
    """merge.jsonl: one passage of a query's pool. Sorted by qid, rank."""

    ORDER = ("qid", "rank")
    rank: Rank = Field(description="fused rank, 1 = best")
    doc_id: Identifier
    score: float = Field(description="fused score")
    sources: Mapping[str, Placement] = Field(description="rank and score by retriever")
    duplicate_of: str | None = Field(None, description="the representative of its group of near-duplicates")
    title: str = ""
    text: str
    span: Span | None = Field(None, description="where in the corpus it stands, where the corpus says so")
    metadata: Metadata = Field(default_factory=dict)

    @property
    def passage(self) -> Passage:
        """The passage as the corpus had it."""
        return Passage(doc_id=self.doc_id, title=self.title, text=self.text, span=self.span, metadata=self.metadata)


class JudgeRecord(Record):
    """judge.jsonl: the grade of one passage of the pool. Sorted by qid, rank (fused)."""

    ORDER = ("qid", "rank")
    rank: Rank = Field(description="fused rank in the pool")
    doc_id: Identifier
    grade: Grade | None = Field(description="1 (not relevant) to 5 (answers); null: failed, abstained or not asked")
    grades: tuple[Grade | None, ...] = Field((), description="every sample that the grade is the lower median of")
    votes: Mapping[str, tuple[Grade | None, ...]] = Field(
        default_factory=dict, description="by member of a panel or a cascade that spoke, its grade in each sample"
    )
    reason: str = Field("", description="the judge's words, where it gave any")
    judge: str = Field(description="who judged: name and model, people by name; empty where nobody spoke")
    duplicate_of: str | None = Field(None, description="the representative whose grade this is")
    skipped: str | None = Field(None, description="why nobody was asked, or nobody spoke; no failure")
    error: str | None = Field(None, description="why the first of the missing grades is missing")
    raw: str | None = Field(None, description="the answer that could not be used")
    answerers: tuple[str, ...] = Field((), exclude_if=not_, description=ANSWERERS)

    @property
    def failed(self) -> bool:
        """Whether the judge was asked and gave no grade; a representative stands for its near-duplicates."""
        return self.grade is None and self.skipped is None and self.duplicate_of is None


class PruneRecord(Record):
    """prune.jsonl: what is ranked and what is not, and why. Sorted by qid, rank (fused)."""

    ORDER = ("qid", "rank")
    rank: Rank = Field(description="fused rank in the pool")
    doc_id: Identifier
    grade: Grade | None
    kept: bool
    why: str = Field(description="the rule that kept it or cut it")
    duplicate_of: str | None = None


class RankRecord(Record):
    """rank.jsonl: the golden order of a query. Sorted by qid, rank."""

    ORDER = ("qid", "rank")
    v: int = Field(2, ge=2, le=2, strict=True, description="version of the record's form")
    rank: Rank = Field(description="final rank, 1 = best")
    doc_id: Identifier
    grade: Grade
    score: float = Field(description="the ranker's score, on the grade scale for engines that start from grades")
    sigma: float = Field(ge=0, description="standard error of the score")
    confidence: float = Field(ge=0, le=1, description="probability that it truly stands above the next one")
    rank_low: Rank = Field(description="best plausible rank (95%), near-duplicates not counted")
    rank_high: Rank = Field(description="worst plausible rank (95%), near-duplicates not counted")
    membership: float = Field(ge=0, le=1, description="probability that it truly belongs to the top")
    exposures: int = Field(ge=0, description="in how many judged batches it was shown")
    locks_out: tuple[str, ...] = Field((), description="passages locked below it")
    locks_in: tuple[str, ...] = Field((), description="passages locked above it")
    duplicate_of: str | None = None
    unordered: bool = Field(
        False, exclude_if=not_, description="its place is by grade: below rank.floor or rank.min_best_grade"
    )


class RankingRecord(Record):
    """rank.queries.jsonl: how the ranking of a query went, and what it found out about the judge. One line a query."""

    calls: int = Field(ge=0, description="batches that the judge ordered")
    skipped: int = Field(ge=0, description="batches that it failed on")
    stop_reason: str = Field(description="why nothing more was asked")
    expected_inversions: float = Field(ge=0, description="wrongly ordered pairs expected inside the top")
    expected_loss: float | None = Field(None, ge=0, description="gain-weighted loss expected of the order, in grades")
    agreement: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the top that another ranking with as many answers is expected to have as well",
    )
    sharpness: float | None = Field(
        None, gt=0, description="of the judge on this query, as estimated: 3 tells a grade apart 19 times in 20"
    )
    echo: float | None = Field(
        None, ge=0, le=1, description="of the judge on this query, as estimated: how far it repeats its own errors"
    )
    position_bias: float | None = Field(
        None,
        description="of the judge on this query, as estimated: what a passage gains by being shown first rather than"
        " last, in grades; the order is free of it",
    )


class JournalRecord(Record):
    """rank.journal.jsonl: a batch that the judge ordered or failed on, as it happens; before these, people's orders."""

    ORDER = ("qid", "round", "slot")
    state: str = Field(description="hash of all that the ranking starts from; entries of another state are void")
    engine: str = Field(description="the ranking engine that asked, and its version")
    round: int = Field(ge=0)
    slot: int = Field(ge=0, description="place of the batch in its round")
    shown: tuple[Identifier, ...] = Field(description="in the order of presentation")
    order: tuple[Identifier, ...] | None = Field(description="best first; null where the judge gave none")
    error: str | None = None
    silent: str | None = Field(None, exclude_if=not_, description="why the judge abstained; no failure")
    by: str = Field("", exclude_if=not_, description="who gave the order, where it was not the judge as a whole")
    groups: Groups | None = Field(None, exclude_if=not_, description="people's order: groups of equals, best first")
    sharpness: float | None = Field(None, gt=0, exclude_if=not_, description="of those who gave `groups`")
    profile: JudgeProfile | None = Field(
        None, exclude_if=not_, description="no batch, but what is believed of the judge from here on"
    )
    answerers: tuple[str, ...] = Field((), exclude_if=not_, description=ANSWERERS)

    @property
    def asked(self) -> bool:
        """Whether the judge was asked."""
        return self.groups is None and self.profile is None

    @property
    def failed(self) -> bool:
        """Whether the judge was asked and failed."""
        return self.asked and self.order is None and self.silent is None


ARTIFACTS: dict[str, type[Record]] = {
    "queries": QueryRecord,
    "embed": EmbedRecord,
    "retrieve": RetrieveRecord,
    "merge": MergeRecord,
    "judge": JudgeRecord,
    "prune": PruneRecord,
    "rank": RankRecord,
    "rank.queries": RankingRecord,
    "rank.journal": JournalRecord,
}


def answerers_named(record: Record) -> tuple[str, ...]:
    """The keys of the models whose answers made a record; none of a near-duplicate, whose grade is another record's."""
    if isinstance(record, JournalRecord) or (isinstance(record, JudgeRecord) and record.duplicate_of is None):
        return record.answerers
    return ()


def artifact_file(name: str) -> str:
    """The file name of artifact `name` in a run directory."""
    return f"{name}.jsonl"


class Spending(Frozen):
    """What was spent with providers, and what the cache saved."""

    calls: Annotated[int, Column("calls", text="{:,}")] = Field(
        0, description="requests sent, retries and corrections included"
    )
    cached: Annotated[int, Column("cached", text="{:,}")] = Field(
        0, description="answers that cost nothing: cached, or shared with the same question in flight"
    )
    prompt_tokens: Annotated[int, Column("tokens in", text="{:,}")] = 0
    cached_tokens: int = Field(
        0, exclude_if=not_, description="of `prompt_tokens`, those that providers say they remembered"
    )
    completion_tokens: Annotated[int, Column("tokens out", text="{:,}")] = 0
    usd: Annotated[float, Column("USD", text="{:,.4f}")] = Field(
        0.0, description="at the prices that are known, less `discount_usd`"
    )
    discount_usd: float = Field(
        0.0, exclude_if=not_, description="what the remembered tokens cost less; below 0 where writing them cost more"
    )
    saved_usd: Annotated[float, Column("saved USD", text="{:,.4f}")] = Field(
        0.0, description="what the cached answers had cost"
    )
    own_usd: float = Field(
        0.0, exclude_if=not_, description="of `saved_usd`, answers that this run had paid for itself and read again"
    )
    repaired: int = Field(0, description="answers that became valid only after a corrective message")

    def __add__(self, other: Self) -> Self:
        theirs = other.__dict__
        return type(self)(**{name: mine + theirs[name] for name, mine in self.__dict__.items()})

    def __sub__(self, other: Self) -> Self:
        theirs = other.__dict__
        return type(self)(**{name: mine - theirs[name] for name, mine in self.__dict__.items()})
