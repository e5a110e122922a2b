"""Records that stages pass on: the meaning of each line of each artifact.

Every record is frozen and versioned (`v`), and names its query. A run's artifacts are sorted by query id, then as
defined by the record, so equal inputs give equal bytes. An identifier is a non-empty text without white space, because
TREC files separate columns by white space.

`Frozen` is the base of all records and of most values that are exchanged as JSON. `JudgeProfile` stores the estimated
properties of a judge. `Spending` stores the usage of language models, from a single call to the sums of a run.
`Spending` values can be added and subtracted: `after - before` is the usage between two moments. This module knows no
prices, files or providers, and imports no higher layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from operator import not_
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from raggs.base.document import Column
from raggs.base.text import clean_passage, clean_unicode, one_line
from raggs.base.types import MAX_EVIDENCE_PASSAGES


class Frozen(BaseModel):
    """A value: immutable, without unknown fields, NaN or infinity."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )


MIN_STANDARD_ERROR = 0.001  # below this, new answers could hardly change an estimate


class JudgeProfile(Frozen):
    """Judge profile estimated from the lists of the pilot queries; used for the ranking of every query."""

    questions: int = Field(ge=1, description="number of pilot queries whose lists of several lengths were used")
    sharpness: float = Field(
        gt=0,
        le=1000,
        description="sharpness for lists of five; a judge with sharpness 3 orders passages one grade "
        "apart correctly 19 "
        "times in 20",
    )
    doubt: float = Field(ge=MIN_STANDARD_ERROR, description="standard error of the logarithm of the sharpness")
    left: tuple[float, ...] = Field(
        (), description="precision of each pick of a list, as a share of full precision; empty: full precision"
    )
    strain: float = Field(
        0.0,
        ge=0,
        le=10,
        description="loss of precision in long lists: the factor on the precision is (5 / length)^strain",
    )
    overhead: float = Field(
        0.0, ge=0, description="overhead of a call, as the number of passages that would cost the same"
    )
    sigma: float = Field(
        0.5, gt=0, description="standard deviation of a passage's utility around its true grade, in grades"
    )
    slip: float = Field(0.25, ge=0, le=0.9, description="share of grades that differ by one from the true grade")
    favour: tuple[float, ...] = Field(
        (),
        exclude_if=not_,
        description="position bias: change of the log-odds of being picked, for positions from first to last; empty: "
        "no bias",
    )
    favour_doubt: float | None = Field(
        None,
        ge=MIN_STANDARD_ERROR,
        exclude_if=not_,
        description="standard error of each position bias; null: not estimated",
    )
    echo: float = Field(
        0.0,
        ge=0,
        le=0.9,
        exclude_if=not_,
        description="correlation of the judge's errors when it judges the same pair again",
    )


MIN_GRADE, MAX_GRADE = 1, 5

Identifier = Annotated[str, StringConstraints(min_length=1, pattern=r"^\S+$")]
Grade = Annotated[int, Field(ge=MIN_GRADE, le=MAX_GRADE, strict=True)]
Rank = Annotated[int, Field(ge=1)]
Groups = tuple[tuple[Identifier, ...], ...]
SHARE_UNITS = 10_000  # stored probabilities are multiples of 1 / SHARE_UNITS


def _rounded_shares(shares: tuple[float, ...]) -> tuple[float, ...]:
    units = [round(share * SHARE_UNITS) for share in shares]
    if sum(units) != SHARE_UNITS or any(share != unit / SHARE_UNITS for share, unit in zip(shares, units, strict=True)):
        raise ValueError("probabilities must be multiples of 0.0001 and add up to 1")
    return shares


# Probabilities of the options of a question, as rounded by `raggs.stats.grade_distribution.canonical`.
Shares = Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], AfterValidator(_rounded_shares)]
GradeShares = Annotated[Shares, Field(min_length=MAX_GRADE, max_length=MAX_GRADE)]
ANSWERERS = "keys of the models that answered; their names are in the stage's lock"
Metadata = Mapping[str, object]  # JSON values, which raggs does not interpret


class Span(Frozen):
    """The characters from `start` (included) to `end` (excluded) of one document of the corpus."""

    source: str = Field(min_length=1, description="name of the document in the corpus")
    start: int = Field(ge=0, strict=True, description="position of the first character, counted from 0")
    end: int = Field(ge=1, strict=True, description="position after the last character")

    @model_validator(mode="after")
    def _forward(self) -> Span:
        if self.end <= self.start:
            raise ValueError(f"a span from {self.start} to {self.end} is empty")
        return self


def span_of(value: object) -> Span | None:
    """Return the span described by a mapping of `source`, `start` and `end`, or None for other values.

    Raises:
        ValidationError: the mapping has these keys, but describes no valid span.
    """
    if isinstance(value, Mapping) and value.keys() == Span.model_fields.keys():
        return Span.model_validate(value)
    return None


def names_of(source: str) -> tuple[str, str]:
    """Return the names that references may use for a document: with and without the file extension."""
    return source, str(PurePath(source).with_suffix(""))


class Nugget(Frozen):
    """One fact that an answer needs. A passage contains it if any of the patterns is found in its text."""

    any: tuple[str, ...] = Field(min_length=1, description="alternative regular expressions, case-insensitive")
    vital: bool = Field(True, description="vital nuggets weigh 1, others 0.5")


class Reference(Frozen):
    """An excerpt of the corpus that answers a query."""

    text: str = Field(min_length=1, description="the excerpt, verbatim")
    doc_id: str | None = Field(None, description="id of the passage with the excerpt, if known")
    span: Span | None = Field(None, description="position in the corpus, if known")


def _iso_date(value: object) -> object:
    """Return a date unchanged if it is a date without a time or a text of the form YYYY-MM-DD.

    Raises:
        ValueError: the value is anything else. By default, pydantic also accepts times and numbers of seconds.
    """
    if type(value) is date or (isinstance(value, str) and len(value) == len("2026-01-31")):
        return value
    raise ValueError("must be a date, for example 2026-01-31")


Day = Annotated[date, BeforeValidator(_iso_date)]


class Validity(Frozen):
    """Period in which a query or a label is valid, and documents that it depends on."""

    valid_from: Day | None = Field(
        None, exclude_if=not_, description="first day on which it is valid (YYYY-MM-DD); null: no limit"
    )
    valid_until: Day | None = Field(
        None, exclude_if=not_, description="last day on which it is valid (YYYY-MM-DD); null: no limit"
    )
    depends_on: tuple[Identifier, ...] = Field(
        (), exclude_if=not_, description="ids of documents that must exist unchanged for it to be valid"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.valid_from and self.valid_until and self.valid_until < self.valid_from:
            raise ValueError(f"valid_until {self.valid_until} is before valid_from {self.valid_from}")
        return self

    def valid_on(self, day: date) -> bool:
        """Return whether `day` is in the period; both ends belong to it."""
        return (self.valid_from or day) <= day <= (self.valid_until or day)


MAX_EVIDENCE_SETS = 64


def _minimal_sets(sets: Groups) -> Groups:
    """Return the evidence sets of a query unchanged.

    Raises:
        ValueError: a set is empty, repeats a passage, or contains all passages of another set; or there are too many.
    """
    if not all(sets):
        raise ValueError(f"evidence set {[*map(bool, sets)].index(False) + 1} is empty")
    for number, members in enumerate(sets, start=1):
        if len(set(members)) < len(members):
            raise ValueError(f"evidence set {number} contains a passage twice")
        for other, fewer in enumerate(sets, start=1):
            if other != number and set(fewer) <= set(members):
                raise ValueError(f"evidence set {number} contains all passages of set {other}, which suffice")
    passages = len({doc_id for members in sets for doc_id in members})
    if len(sets) > MAX_EVIDENCE_SETS or passages > MAX_EVIDENCE_PASSAGES:
        raise ValueError(
            f"{len(sets)} evidence sets with {passages} passages; at most {MAX_EVIDENCE_SETS} sets with "
            f"{MAX_EVIDENCE_PASSAGES} passages are allowed"
        )
    return sets


EvidenceSets = Annotated[Groups, AfterValidator(_minimal_sets)]


CarryReason = Literal["unchanged", "moved", "kept", "irrelevant"]


class Origin(Frozen):
    """Origin of a label that was carried over from an earlier version of the golden set (`raggs update`)."""

    version: str = Field(min_length=1, description="first digits of the version that the label is from")
    qid: Identifier | None = Field(
        None, exclude_if=not_, description="id of the query in that version; null if it is the same"
    )
    doc_ids: tuple[Identifier, ...] = Field(
        min_length=1, description="passages of that version that determine the label; the first one has this label"
    )
    how: CarryReason = Field(
        description="`unchanged`: same id and text. `moved`: same text, but another id or place. `kept`: the passage "
        "was edited, but contains the judged text unchanged. `irrelevant`: the judged text has grade 1, and the new "
        "text has no word of the query"
    )


MAX_TURNS = 100
# language -> heading of the earlier turns, and of the query
CONTEXT = {
    "en": ("Earlier turns of the conversation:", "Query (the last turn):"),
    "fr": ("Tours précédents de la conversation :", "Question (le dernier tour) :"),
}


class EarlierTurn(Frozen):
    """An earlier turn of the conversation that a query belongs to."""

    role: Literal["user", "assistant"] = Field("user", description="author of the turn")
    text: str = Field(min_length=1, description="text of the turn, unmodified")


class Query(Validity):
    """A query as its author wrote it."""

    qid: Identifier = Field(description="query id")
    text: str = Field(min_length=1, description="text of the query, unmodified")
    language: str | None = Field(None, description="language (ISO 639-1 code); null: detected")
    answer: str | None = Field(None, description="the expected answer")
    references: tuple[Reference, ...] = Field((), description="excerpts of the corpus that answer it")
    nuggets: tuple[Nugget, ...] = Field((), description="facts that an answer needs")
    evidence: EvidenceSets = Field(
        (), exclude_if=not_, description="minimal sets of passage ids; all passages of one set suffice for an answer"
    )
    history: tuple[EarlierTurn, ...] = Field(
        (),
        exclude_if=not_,
        max_length=MAX_TURNS,
        description="earlier turns of the conversation, oldest first; `text` is the last turn",
    )
    metadata: Metadata = Field(default_factory=dict, description="additional data from the author")

    @property
    def earlier_turns(self) -> str:
        """The earlier turns, one per line with the role; empty if there are none."""
        return "\n".join(f"{turn.role}: {one_line(clean_unicode(turn.text))}" for turn in self.history)

    def in_context(self, language: str = "en") -> str:
        """Return the text of the query with the earlier turns, under headings in `language` or English.

        Without earlier turns, return only the text.
        """
        earlier, last = CONTEXT.get(language, CONTEXT["en"])
        return f"{earlier}\n{self.earlier_turns}\n\n{last}\n{self.text}" if self.history else self.text


# fields of a query that can affect a judge's grades
FIELDS_OF_QUERIES = ("text", "language", "answer", "references", "nuggets", "history")


class Passage(Frozen):
    """A piece of the corpus that a retriever returns and a judge reads."""

    doc_id: Identifier
    text: str = Field(min_length=1)
    title: str = ""
    span: Span | None = Field(None, description="position in the corpus, if known")
    metadata: Metadata = Field(default_factory=dict)

    @property
    def raw(self) -> str:
        """Unmodified title and text. They end with the characters of the document at `span`."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def content(self) -> str:
        """Title and text after Unicode cleaning, as used by retrievers and judges."""
        return clean_passage(self.raw)


# --- artifacts ------------------------------------------------------------------------------------------------


class Record(Frozen):
    """A line of an artifact."""

    ORDER: ClassVar[tuple[str, ...]] = ("qid",)
    v: int = Field(1, ge=1, le=1, strict=True, description="version of the record format")
    qid: Identifier = Field(description="query id")


class QueryRecord(Query, Record):
    """queries.jsonl: a query as its author wrote it, with all its data. One line per query."""

    @classmethod
    def of(cls, query: Query) -> QueryRecord:
        """Return the record of `query`."""
        return cls(**dict(query))


class EmbedRecord(Record):
    """embed.jsonl: a query, cleaned, rewritten and embedded. One line per query."""

    text: str = Field(description="text of the query after Unicode cleaning")
    rewrite: str = Field(description="text to search for; equals `text` if it was not rewritten")
    bm25_text: str = Field(description="words for lexical retrievers")
    variants: tuple[str, ...] = Field(
        (), exclude_if=not_, description="other wordings of the query by a model, which are searched with it"
    )
    hypothetical: tuple[str, ...] = Field(
        (),
        exclude_if=not_,
        description="passages that a model wrote in answer to the query (HyDE), which are searched with it",
    )
    language: str = Field(description="ISO 639-1 code")
    embedding: tuple[float, ...] = Field(
        description="float32 values of the query vector, or of the mean of the vectors of the query and its added "
        "texts; empty if the run has no embedder"
    )
    embedder: str = Field(description="name, version and dimensions of the embedder; empty if the run has no embedder")

    @property
    def searched(self) -> tuple[str, ...]:
        """The texts whose vectors make up the query's vector: the rewritten query and the added texts."""
        return (self.rewrite, *self.variants, *self.hypothetical)

    @property
    def altered(self) -> bool:
        """Whether other or further texts than the query itself are searched for."""
        return self.searched != (self.text,)


class RetrieveRecord(Record):
    """retrieve.jsonl: one hit of one retriever. Sorted by qid, retriever, rank."""

    ORDER = ("qid", "retriever", "rank")
    retriever: str = Field(description="name of the retriever in the configuration")
    rank: Rank
    doc_id: Identifier
    score: float = Field(description="score of the retriever, higher is better")
    escalated: tuple[str, ...] = Field(
        (), exclude_if=not_, description="signals that caused a deeper search for the query"
    )


class Placement(Frozen):
    """Position of a passage in the list of one retriever."""

    rank: Rank
    score: float


class MergeRecord(Record):
    """merge.jsonl: one passage of a query's pool. Sorted by qid, rank."""

    ORDER = ("qid", "rank")
    rank: Rank = Field(description="fused rank, 1 = best")
    doc_id: Identifier
    score: float = Field(description="fused score")
    sources: Mapping[str, Placement] = Field(description="rank and score by retriever")
    duplicate_of: str | None = Field(
        None, description="for a near-duplicate: id of the passage that represents its group"
    )
    title: str = ""
    text: str
    span: Span | None = Field(None, description="position in the corpus, if known")
    metadata: Metadata = Field(default_factory=dict)

    @property
    def passage(self) -> Passage:
        """The passage as in the corpus."""
        return Passage(doc_id=self.doc_id, title=self.title, text=self.text, span=self.span, metadata=self.metadata)


class JudgeRecord(Validity, Record):
    """judge.jsonl: the grade of one passage of the pool. Sorted by qid, rank (fused)."""

    ORDER = ("qid", "rank")
    rank: Rank = Field(description="fused rank in the pool")
    doc_id: Identifier
    grade: Grade | None = Field(
        description="grade from 1 (not relevant) to 5 (answers the query); null: the judge failed, abstained or was "
        "not called"
    )
    grades: tuple[Grade | None, ...] = Field(
        (),
        description="the grades of all samples in which the judge did not abstain; null for a failed sample. `grade` "
        "is their lower median, or null if more than half failed. If there is a `distribution` and no `votes`, `grade` "
        "is its lower median",
    )
    votes: Mapping[str, tuple[Grade | None, ...]] = Field(
        default_factory=dict,
        description="grades of each sample by judge, for the judges of a panel or cascade that answered",
    )
    reason: str = Field("", description="reason given by the judge, if any")
    judge: str = Field(
        description="judge that gave the grade: name and model, or names of the annotators; empty if no judge was "
        "called or every judge abstained"
    )
    duplicate_of: str | None = Field(None, description="for a near-duplicate: id of the passage whose grade it has")
    skipped: str | None = Field(
        None, description="reason why the passage was not judged or every judge abstained; not a failure"
    )
    error: str | None = Field(None, description="reason for the first missing sample")
    raw: str | None = Field(None, description="raw answer that was unusable")
    answerers: tuple[str, ...] = Field((), exclude_if=not_, description=ANSWERERS)
    distribution: GradeShares | None = Field(
        None,
        exclude_if=not_,
        description="probabilities of the grades 1 to 5 that the judge states, as multiples of 0.0001; the mean over "
        "samples and members",
    )
    distribution_source: Literal["logprobs", "decision"] | None = Field(
        None, exclude_if=not_, description="source of `distribution`; missing if the members of a panel have several"
    )
    carried: Origin | None = Field(
        None,
        exclude_if=not_,
        description="origin of a label that `raggs update` carried over; missing for other labels",
    )
    sample_distributions: tuple[GradeShares | None, ...] = Field(
        (),
        exclude_if=not_,
        description="with `judge.samples_if_below`, if the passage was graded several times: the probabilities of each "
        "sample",
    )

    @property
    def failed(self) -> bool:
        """Whether the judge was called and gave no grade. False for near-duplicates, which are not judged
        themselves.
        """
        return self.grade is None and self.skipped is None and self.duplicate_of is None


class PruneRecord(Record):
    """prune.jsonl: which passages are ranked, and why. Sorted by qid, rank (fused)."""

    ORDER = ("qid", "rank")
    rank: Rank = Field(description="fused rank in the pool")
    doc_id: Identifier
    grade: Grade | None
    kept: bool
    why: str = Field(description="rule that kept or removed the passage")
    duplicate_of: str | None = None
    distribution: GradeShares | None = Field(
        None, exclude_if=not_, description="probabilities of the grades 1 to 5, as in judge.jsonl"
    )


class RankRecord(Record):
    """rank.jsonl: the golden order of a query. Sorted by qid, rank."""

    ORDER = ("qid", "rank")
    v: int = Field(2, ge=2, le=2, strict=True, description="version of the record format")
    rank: Rank = Field(description="final rank, 1 = best")
    doc_id: Identifier
    grade: Grade
    score: float = Field(description="score of the ranking engine; on the grade scale if the engine starts from grades")
    sigma: float = Field(ge=0, description="standard error of the score")
    confidence: float = Field(ge=0, le=1, description="probability that the passage is truly better than the next one")
    rank_low: Rank = Field(description="best plausible rank (95%) without counting near-duplicates")
    rank_high: Rank = Field(description="worst plausible rank (95%) without counting near-duplicates")
    membership: float = Field(ge=0, le=1, description="probability that the passage truly belongs to the top positions")
    exposures: int = Field(ge=0, description="number of judged batches with the passage")
    locks_out: tuple[str, ...] = Field((), description="passages whose position below this one is settled")
    locks_in: tuple[str, ...] = Field((), description="passages whose position above this one is settled")
    duplicate_of: str | None = None
    unordered: bool = Field(
        False,
        exclude_if=not_,
        description="whether only the grade determines the position, because of rank.floor or rank.min_best_grade",
    )


class RankingRecord(Record):
    """rank.queries.jsonl: statistics of a query's ranking, and estimates about the judge. One line per query."""

    calls: int = Field(ge=0, description="number of batches that the judge ordered")
    skipped: int = Field(ge=0, description="number of batches on which the judge failed")
    stop_reason: str = Field(description="reason why the ranking ended")
    expected_inversions: float = Field(ge=0, description="expected number of inversions (discordant pairs) in the top")
    expected_loss: float | None = Field(
        None, ge=0, description="expected loss through wrong orders, weighted by gain, in grades"
    )
    agreement: float | None = Field(
        None,
        ge=0,
        le=1,
        description="expected share of top passages that a second ranking with as many answers would have in common",
    )
    sharpness: float | None = Field(
        None,
        gt=0,
        description="estimated sharpness of the judge on this query; 3: orders passages one grade apart correctly 19 "
        "times in 20",
    )
    echo: float | None = Field(
        None, ge=0, le=1, description="estimated correlation of the judge's repeated errors on this query"
    )
    position_bias: float | None = Field(
        None,
        description="estimated position bias of the judge on this query: advantage of being shown first instead of "
        "last, in grades; the order is corrected for it",
    )


class JournalRecord(Record):
    """rank.journal.jsonl: a batch that the judge ordered or failed on, human orders, or the judge profile. Sorted by
    qid, round, slot; in order of arrival until the stage has finished.
    """

    ORDER = ("qid", "round", "slot")
    state: str = Field(
        description="hash of everything that the ranking starts from; entries with another hash are ignored"
    )
    engine: str = Field(description="ranking engine that requested the batch, with its version")
    round: int = Field(ge=0)
    slot: int = Field(ge=0, description="position of the batch in its round")
    shown: tuple[Identifier, ...] = Field(description="passages in the order of presentation")
    order: tuple[Identifier, ...] | None = Field(
        description="order of the passages, best first; null if the judge gave no order"
    )
    error: str | None = None
    silent: str | None = Field(None, exclude_if=not_, description="reason why the judge abstained; not a failure")
    by: str = Field(
        "",
        exclude_if=not_,
        description="source of the order, such as one member of a panel; empty: the judge as a whole",
    )
    groups: Groups | None = Field(
        None, exclude_if=not_, description="human order: groups of equal passages, best first"
    )
    sharpness: float | None = Field(
        None, gt=0, exclude_if=not_, description="sharpness of the annotators who gave `groups`"
    )
    best: Shares | None = Field(
        None,
        exclude_if=not_,
        description="for each passage of `order`, the probability that it is the best of the batch; missing if the "
        "judge states none",
    )
    profile: JudgeProfile | None = Field(
        None, exclude_if=not_, description="judge profile that applies to all later entries; this entry is not a batch"
    )
    answerers: tuple[str, ...] = Field((), exclude_if=not_, description=ANSWERERS)
    carried: str = Field(
        "",
        exclude_if=not_,
        description="first digits of the version that the order is from, if `raggs update` carried it over",
    )

    @property
    def asked(self) -> bool:
        """Whether the judge was called."""
        return self.groups is None and self.profile is None

    @property
    def failed(self) -> bool:
        """Whether the judge was called and gave no order, although it did not abstain."""
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
    """Return the keys of the models whose answers led to a judgment or a journal entry; empty for a near-duplicate and
    for other records.
    """
    if isinstance(record, JournalRecord) or (isinstance(record, JudgeRecord) and record.duplicate_of is None):
        return record.answerers
    return ()


def artifact_file(name: str) -> str:
    """Return the file name of artifact `name` in a run directory."""
    return f"{name}.jsonl"


class Spending(Frozen):
    """Usage of providers, and savings through the cache."""

    calls: Annotated[int, Column("calls", text="{:,}")] = Field(
        0, description="number of requests sent, including retries and corrections"
    )
    cached: Annotated[int, Column("cached", text="{:,}")] = Field(
        0, description="number of free answers: cached, or shared with an identical request in flight"
    )
    prompt_tokens: Annotated[int, Column("tokens in", text="{:,}")] = 0
    cached_tokens: int = Field(
        0, exclude_if=not_, description="part of `prompt_tokens` that providers report as read from their prompt cache"
    )
    completion_tokens: Annotated[int, Column("tokens out", text="{:,}")] = 0
    usd: Annotated[float, Column("USD", text="{:,.4f}")] = Field(
        0.0, description="cost in USD at the known prices, less `discount_usd`"
    )
    discount_usd: float = Field(
        0.0,
        exclude_if=not_,
        description="saving through prompt caching in USD; negative if writing the cache cost more",
    )
    saved_usd: Annotated[float, Column("saved USD", text="{:,.4f}")] = Field(
        0.0, description="cost of the cached answers when they were paid for, in USD"
    )
    own_usd: float = Field(
        0.0, exclude_if=not_, description="part of `saved_usd` for answers that this run itself paid for earlier"
    )
    repaired: int = Field(0, description="number of answers that became valid only after a correction")

    def __add__(self, other: Self) -> Self:
        theirs = other.__dict__
        return type(self)(**{name: mine + theirs[name] for name, mine in self.__dict__.items()})

    def __sub__(self, other: Self) -> Self:
        theirs = other.__dict__
        return type(self)(**{name: mine - theirs[name] for name, mine in self.__dict__.items()})
