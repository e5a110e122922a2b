"""Compare two golden sets: the report of the comparison, and the computation of its parts. A number that is not defined
is null.

The schema is versioned by `v`. Within a version, fields may be added, but are not renamed. In every pair of values, the
older set (OLD) comes first.

Queries and passages are compared by id. If both sets contain the texts, they are also compared by content, so that
renamed queries and passages are found. Only hashes of the passages' texts are kept in memory. The ids of renamed items
of the new set are mapped to the ids of the old set.

The comparison of two orders takes their uncertainty into account. A ranking has a score and a standard error for each
passage. If nothing had changed, the old and the new score would differ only by random errors of this size. Draws with
such errors show how much of the top `k` two rankings of the same truth share. If the observed overlap is below the `1 -
confidence` quantile of the draws, the change is larger than the uncertainty explains. Only passages that both sets rank
are included. If there are at most `k` such passages, their upper half is compared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import not_
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field, JsonValue

from raggs.base import __version__
from raggs.base.arrays import Floats, Ints
from raggs.base.artifacts import FIELDS_OF_QUERIES, Frozen, Passage, Query, RankRecord
from raggs.base.document import Column
from raggs.base.hashing import generator
from raggs.base.text import one_line
from raggs.base.types import Number, finite_or_none
from raggs.golden.base import GoldenSet
from raggs.golden.files import LinesGolden
from raggs.golden.judgments import Judgments
from raggs.golden.runs import RunGolden
from raggs.golden.sources import open_golden
from raggs.runs.manifests.costs import LedgerTotals, costs
from raggs.runs.manifests.lineage import VersionName
from raggs.runs.manifests.models import RunManifest
from raggs.stats.agreement import GRADES, check_labels, cohen_kappa, count_pairs
from raggs.stats.comparison import Verdict
from raggs.stats.order_agreement import overlap_at_k, rbo, tau_ap


class SidePart(Frozen):
    """Facts about one of the two sets."""

    source: str = Field(description="path of the run directory or file")
    name: str
    queries: int = Field(description="number of queries with a label")
    judgments: int
    lowest: int = Field(description="lowest grade of the scale")
    highest: int
    relevant: int = Field(description="lowest relevant grade")
    digest: str = Field(description="sha256 of all judgments, as in eval.json")
    corpus: str | None = Field(description="hash of the passages' content; null if unknown")
    lacks: str = Field(description="why the set is incomplete; empty if it is complete")
    version: VersionName | None = Field(
        None, exclude_if=not_, description="version of a set that raggs update made; missing for other sets"
    )


class ChangedPart(Frozen):
    """A query or passage that has the same id in both sets but another content."""

    id: str
    fields: tuple[str, ...] = Field(description="names of the fields that differ")


class RenamedPart(Frozen):
    """A query or passage with the same content but another id."""

    old: str
    new: str


class ContentPart(Frozen):
    """Differences of the queries, or of the pooled passages."""

    known: bool = Field(description="whether both sets contain the texts; otherwise only ids are compared")
    same: int = Field(description="number of items in both sets that have not changed, as far as the texts are known")
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedPart, ...]
    renamed: tuple[RenamedPart, ...]


class EstimatePart(Frozen):
    """A value with its interval. The bounds are null if there are too few data."""

    value: Number
    low: Number = None
    high: Number = None


class GradesPart(Frozen):
    """Differences of the grades of passages that both sets judged for the same query."""

    compared: int
    up: int = Field(description="number of passages with a higher grade in the new set")
    down: int
    far: int = Field(description="number of passages whose grade changed by two or more")
    to_relevant: int = Field(
        description="number of passages that are not relevant in the old set but relevant in the new set"
    )
    from_relevant: int
    added: int = Field(description="number of passages that only the new set judged, for queries that both sets judge")
    removed: int
    labels: tuple[int, ...]
    table: tuple[tuple[int, ...], ...] = Field(
        description="counts, with a row for each old grade and a column for each new grade"
    )
    kappa: EstimatePart = Field(description="Cohen's kappa with quadratic weights; bootstrap interval")


class OrdersPart(Frozen):
    """Differences of the orders of queries that both sets rank, as means over these queries."""

    compared: int = Field(description="number of queries for which both sets rank two or more of the same passages")
    k: int = Field(description="number of leading ranks that matter in both rankings, at most 20")
    tau_ap: Number = Field(description="AP correlation of the new order with the old one, over shared passages")
    rbo: Number = Field(description="rank-biased overlap of all passages, p = 0.9, extrapolated")
    overlap: Number = Field(description="share of the top k that is the same in both orders, over all passages")
    shared: Number = Field(
        description="mean overlap of the tested queries, over the passages that both sets rank; if a query has at most "
        "k such passages, over their upper half"
    )
    expected: Number = Field(description="expected value of `shared` if the orders differ only by their uncertainty")
    tested: int = Field(
        description="number of queries with enough shared passages (usually four) and a known uncertainty"
    )
    beyond: int = Field(description="number of queries whose top changed more than the uncertainty explains")
    by_chance: float = Field(
        description="upper limit of the number of changed tops (`beyond`) that chance causes on average"
    )


class QuestionDiffPart(Frozen):
    """Differences for one query that both sets judge."""

    qid: str = Field(description="query id in the old set")
    compared: int = Field(description="number of grades in both sets")
    moved: int
    shift: Number = Field(description="mean of the new grades minus the old grades")
    tau_ap: Number = None
    rbo: Number = None
    overlap: Number = None
    expected: Number = None
    change: Literal["within", "beyond"] | None = Field(
        None,
        description="`within` if the uncertainty explains the change of the top, else `beyond`; null if not tested",
    )


class ScoreDiffPart(Frozen):
    """Mean of one system on one measure, with both sets."""

    system: Annotated[str, Column("system")]
    measure: Annotated[str, Column("measure")]
    old: Annotated[Number, Column("OLD", "score")]
    new: Annotated[Number, Column("NEW", "score")]
    old_queries: int = Field(description="number of queries for which the measure is defined")
    new_queries: int


class MovePart(Frozen):
    """Difference of two systems on one query, with both sets."""

    qid: str
    old: float = Field(description="value of the first minus the value of the second, in the old set")
    new: float


class VerdictPart(Frozen):
    """Verdicts on two systems on one measure, one with each set. A verdict such as "better" is about `first`."""

    first: str
    second: str
    measure: str
    old: Verdict
    new: Verdict
    old_difference: EstimatePart
    new_difference: EstimatePart
    flipped: bool = Field(description="whether the verdicts differ")
    reversed: bool = Field(description="whether the better system with the old set is the worse one with the new set")
    old_unjudged: str | None = Field(
        None, description="if unjudged passages could reverse the old verdict: the unjudged share of the tops"
    )
    new_unjudged: str | None = Field(
        None, description="if unjudged passages could reverse the new verdict: the unjudged share of the tops"
    )
    moved_by: tuple[MovePart, ...] = Field(
        (), description="if the verdicts differ: the queries that moved the difference most"
    )


class DecisionsPart(Frozen):
    """Scores of systems with both sets, and the verdicts on them."""

    measures: tuple[str, ...]
    systems: tuple[str, ...]
    scores: tuple[ScoreDiffPart, ...]
    verdicts: tuple[VerdictPart, ...] = Field(description="verdicts of all pairs; changed verdicts come first")
    confidence: float
    notes: tuple[str, ...] = Field((), description="which lists were scored")

    @property
    def flips(self) -> tuple[VerdictPart, ...]:
        """The verdicts that differ between the two sets."""
        return tuple(each for each in self.verdicts if each.flipped)


class FigurePart(Frozen):
    """A figure in both sets. The value is null for a set that does not have this figure."""

    name: str
    old: Number
    new: Number


class SettingDiffPart(Frozen):
    """A setting or another value that differs, with its path in the configuration or in the components of a stage."""

    name: str = Field(description="path of the value, separated by dots")
    change: Literal["changed", "added", "removed"]
    old: JsonValue = None
    new: JsonValue = None


class StageInputDiffPart(SettingDiffPart):
    """An input of a stage that differs and is not a setting, such as a prompt or a model."""

    stage: str


class DiffReport(Frozen):
    """Content of diff.json: the comparison of two golden sets."""

    v: Literal[1] = 1
    raggs: str = __version__
    old: SidePart
    new: SidePart
    decisions: DecisionsPart | None = Field(
        description="null if no system was named, and the sets are files or runs without a common retriever"
    )
    questions: ContentPart
    passages: ContentPart
    grades: GradesPart | None = Field(description="null if the sets share no judgment or use different scales")
    orders: OrdersPart | None = Field(description="null if no query has two or more passages that both sets rank")
    by_question: tuple[QuestionDiffPart, ...] = Field(
        description="queries that both sets judge, sorted by number of changed grades, then by overlap of the orders"
    )
    coverage: tuple[FigurePart, ...]
    cost: tuple[FigurePart, ...]
    health: tuple[FigurePart, ...]
    settings: tuple[SettingDiffPart, ...]
    made: tuple[StageInputDiffPart, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether both sets have the same judgments."""
        return self.old.digest == self.new.digest


SIZE = 16  # size of the hash of a text, in bytes


@dataclass(frozen=True)
class RankedQuestion:
    """The order of a query's passages, with their scores.

    Attributes:
        docs: passage ids, best first.
        score, sigma: shape (passages,), score and standard error of each passage; sigma is 0 if the standard error is
            unknown.
    """

    docs: tuple[str, ...]
    score: Floats
    sigma: Floats


@dataclass(frozen=True)
class GoldenSide:
    """One of the two golden sets, read into memory.

    Attributes:
        part: description of the set for reports.
        judgments: the grades of the set, as columns.
        grades: maps each query to the grades of its judged passages.
        questions: queries by id; empty if only labels are known.
        texts: content hash of each pooled passage by id; empty if the texts are unknown.
        orders: maps each query to its order; empty if the set has no ranking.
        top: number of leading ranks that matter.
        manifest, costs: manifest and costs of the run; None if the set was read from files.
    """

    part: SidePart
    judgments: Judgments
    grades: Mapping[str, Mapping[str, int]]
    questions: Mapping[str, Query] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    orders: Mapping[str, RankedQuestion] = field(default_factory=dict)
    top: int = 0
    manifest: RunManifest | None = None
    costs: LedgerTotals | None = None


def read_side(path: Path) -> GoldenSide:
    """Read a run directory, a folder of files, or a file of labels.

    Raises:
        NotFoundError: the path contains no golden set, or the set has no grades yet.
        DataError: a file of the set is invalid.
    """
    golden = open_golden(path)
    judgments = golden.judgments()
    grades = _grades(judgments)
    if not isinstance(golden, RunGolden | LinesGolden):
        questions = {query.qid: query for query in golden.queries()}
        return GoldenSide(_part(golden, judgments), judgments, grades, questions)
    side = GoldenSide(_part(golden, judgments), judgments, grades, *_contents(golden), golden.top)
    run = golden.run if isinstance(golden, RunGolden) else None
    return side if run is None else replace(side, manifest=run.manifest, costs=costs(run.store))


def _contents(golden: GoldenSet) -> tuple[dict[str, Query], dict[str, bytes], dict[str, RankedQuestion]]:
    questions: dict[str, Query] = {}
    texts: dict[str, bytes] = {}
    orders: dict[str, RankedQuestion] = {}
    for each in golden.by_query("pool", "order"):
        if each.query is not None:
            questions[each.qid] = each.query
        texts.update((passage.doc_id, _hash(passage)) for passage in each.pool)
        if each.order:
            orders[each.qid] = _ranked(each.order)
    return questions, texts, orders


def _ranked(order: tuple[RankRecord, ...]) -> RankedQuestion:
    return RankedQuestion(
        tuple(record.doc_id for record in order),
        np.array([record.score for record in order]),
        np.array([record.sigma for record in order]),
    )


def _hash(passage: Passage) -> bytes:
    return hashlib.blake2b(f"{passage.title}\0{passage.text}".encode(), digest_size=SIZE).digest()


def _grades(judgments: Judgments) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for qid, doc_id, grade in _rows(judgments):
        if grade >= 0:
            found.setdefault(qid, {})[doc_id] = grade
    return found


def _rows(judgments: Judgments) -> Iterator[tuple[str, str, int]]:
    qrels = judgments.qrels
    docs = qrels.docs.take(np.arange(len(qrels.docs))).tolist()
    for query, doc, grade in zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True):
        yield qrels.qids[query], doc.decode(), grade


def _part(golden: GoldenSet, judgments: Judgments) -> SidePart:
    scale = judgments.qrels.scale
    return SidePart(
        source=golden.source,
        name=golden.name,
        queries=len(judgments.qrels.qids),
        judgments=int((judgments.qrels.grade >= 0).sum()),
        lowest=scale.low,
        highest=scale.high,
        relevant=scale.relevant,
        digest=judgments.digest,
        corpus=judgments.origin.corpus,
        lacks=golden.lacks,
        version=judgments.version,
    )


@dataclass(frozen=True)
class IdPairing:
    """Renamed queries and passages: pairs of old and new ids with the same content.

    Attributes:
        questions, passages: map each new id to the old id if they differ.
    """

    questions: Mapping[str, str] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)

    def shared(self, old: GoldenSide, new: GoldenSide) -> dict[str, str]:
        """Return a mapping of old to new ids for all queries that both sets judge, sorted by old id."""
        found = {self.questions.get(qid, qid): qid for qid in new.grades}
        return {qid: found[qid] for qid in sorted(found) if qid in old.grades}

    def grades(self, new: GoldenSide, qid: str) -> dict[str, int]:
        """Return the grades of a query of the new set. The ids of the passages are those of the old set."""
        return {self.passages.get(doc, doc): grade for doc, grade in new.grades[qid].items()}

    def order(self, new: GoldenSide, qid: str) -> RankedQuestion | None:
        """Return the order of a query of the new set. The ids of the passages are those of the old set."""
        found = new.orders.get(qid)
        if found is None or not self.passages:
            return found
        return RankedQuestion(tuple(self.passages.get(doc, doc) for doc in found.docs), found.score, found.sigma)


H = TypeVar("H", bound=Hashable)


def questions(old: GoldenSide, new: GoldenSide) -> ContentPart:
    """Compare the queries of two sets. They are compared by text, too, if both sets contain the texts.

    For a set that was read from files, only queries with labels are included, because its file of queries may also
    contain queries of other sets.
    """
    known = bool(old.questions and new.questions)
    before, after = (_asked_questions(side) for side in (old, new))
    names = _renamed(_normalised_texts(before), _normalised_texts(after)) if known else {}
    both = before.keys() & after.keys()
    changed = [
        ChangedPart(id=qid, fields=found) for qid in sorted(both) if (found := _changed_fields(before[qid], after[qid]))
    ]
    return _content_part(before, after, names, changed, known)


def _asked_questions(side: GoldenSide) -> dict[str, Query | None]:
    asked = side.questions if side.manifest is not None else {}
    return {**asked, **{qid: side.questions.get(qid) for qid in side.grades}}


def passages(old: GoldenSide, new: GoldenSide) -> ContentPart:
    """Compare the pooled passages. If a set has no texts, compare the ids of the graded passages."""
    known = bool(old.texts and new.texts)
    if not known:
        sides = ({doc: b"" for judged in side.grades.values() for doc in judged} for side in (old, new))
        before, after = sides
        return _content_part(before, after, {}, [], known)
    both = old.texts.keys() & new.texts.keys()
    changed = [ChangedPart(id=doc, fields=("text",)) for doc in sorted(both) if old.texts[doc] != new.texts[doc]]
    return _content_part(old.texts, new.texts, _renamed(old.texts, new.texts), changed, known)


def alias(part: ContentPart) -> dict[str, str]:
    """Return a mapping of new to old ids for the renamed items."""
    return {each.new: each.old for each in part.renamed}


def _normalised_texts(found: Mapping[str, Query | None]) -> dict[str, str]:
    """Return the text of each query with normalised white space."""
    return {qid: one_line(query.text) for qid, query in found.items() if query is not None}


def _renamed(before: Mapping[str, H], after: Mapping[str, H]) -> dict[str, str]:
    """Return a mapping of new to old ids for items with the same content. Ids that both sets contain are omitted."""
    gone: dict[H, list[str]] = {}
    for name in sorted(before.keys() - after.keys(), reverse=True):
        gone.setdefault(before[name], []).append(name)
    return {name: gone[after[name]].pop() for name in sorted(after.keys() - before.keys()) if gone.get(after[name])}


def _changed_fields(before: Query | None, after: Query | None) -> tuple[str, ...]:
    if before is None or after is None:
        return ()
    return tuple(name for name in FIELDS_OF_QUERIES if getattr(before, name) != getattr(after, name))


def _content_part(
    before: Mapping[str, object],
    after: Mapping[str, object],
    names: Mapping[str, str],
    changed: list[ChangedPart],
    known: bool,
) -> ContentPart:
    gone = set(names.values())
    return ContentPart(
        known=known,
        same=len(before.keys() & after.keys()) - len(changed),
        added=tuple(sorted(after.keys() - before.keys() - names.keys())),
        removed=tuple(sorted(before.keys() - after.keys() - gone)),
        changed=tuple(changed),
        renamed=tuple(RenamedPart(old=names[name], new=name) for name in sorted(names)),
    )


@dataclass(frozen=True)
class SharedGrades:
    """Grades of the passages that both sets judged for the same query.

    Attributes:
        old, new: shape (pairs,), grades of each pair of query and passage.
        qids: shape (pairs,), query id of each pair in the old set.
        added, removed: number of passages of these queries that only one set judged.
    """

    old: Ints
    new: Ints
    qids: tuple[str, ...]
    added: int
    removed: int

    def of(self, places: range) -> tuple[int, int, float]:
        """Return three numbers about the grades in a range of rows: how many there are, how many changed, and their
        mean change.
        """
        steps = self.new[places.start : places.stop] - self.old[places.start : places.stop]
        return len(steps), int((steps != 0).sum()), float(steps.mean()) if len(steps) else float("nan")

    def places(self) -> dict[str, range]:
        """Return the range of rows with the grades of each query."""
        found: dict[str, range] = {}
        for place, qid in enumerate(self.qids):
            begin = found[qid].start if qid in found else place
            found[qid] = range(begin, place + 1)
        return found


def comparable(old: GoldenSide, new: GoldenSide) -> bool:
    """Return whether the lowest and the highest grade are the same in both sets."""
    scales = [(side.part.lowest, side.part.highest) for side in (old, new)]
    return scales[0] == scales[1]


def shared_grades(old: GoldenSide, new: GoldenSide, pairing: IdPairing) -> SharedGrades:
    """Return both grades of each passage that both sets judged, sorted by query."""
    pairs: list[tuple[str, int, int]] = []
    added = removed = 0
    for qid, there in pairing.shared(old, new).items():
        before, after = old.grades[qid], pairing.grades(new, there)
        both = [doc for doc in before if doc in after]
        pairs += [(qid, before[doc], after[doc]) for doc in both]
        added += len(after) - len(both)
        removed += len(before) - len(both)
    columns = [np.array([pair[place] for pair in pairs], dtype=np.int64) for place in (1, 2)]
    return SharedGrades(columns[0], columns[1], tuple(pair[0] for pair in pairs), added, removed)


def grades_part(found: SharedGrades, side: GoldenSide, *, confidence: float, seed: int) -> GradesPart | None:
    """Return the changes of grades; None if no grade can be compared.

    Args:
        side: one of the sets. Its lowest relevant grade is used for both.
    """
    if not len(found.old):
        return None
    labels = tuple(range(side.part.lowest, side.part.highest + 1))
    pairs, counts = np.unique(np.stack([found.old, found.new]), axis=1, return_counts=True)
    known: dict[tuple[float | None, float | None], int] = {
        (int(one), int(other)): int(count) for (one, other), count in zip(pairs.T, counts, strict=True)
    }
    steps, relevant = found.new - found.old, side.part.relevant
    was, is_ = found.old >= relevant, found.new >= relevant
    return GradesPart(
        compared=len(steps),
        up=int((steps > 0).sum()),
        down=int((steps < 0).sum()),
        far=int((np.abs(steps) > 1).sum()),
        to_relevant=int((~was & is_).sum()),
        from_relevant=int((was & ~is_).sum()),
        added=found.added,
        removed=found.removed,
        labels=labels,
        table=count_pairs(known, labels=labels).counts,
        kappa=_kappa(found, labels, confidence, seed),
    )


def _kappa(found: SharedGrades, labels: tuple[int, ...], confidence: float, seed: int) -> EstimatePart:
    """Return kappa with its interval, from resampled queries if there are at most five grades, else from passages."""
    if len(labels) <= len(GRADES):
        shift = GRADES[0] - labels[0]
        checked = check_labels(found.old + shift, found.new + shift, found.qids, confidence=confidence, seed=seed).kappa
        return EstimatePart(
            value=finite_or_none(checked.value), low=finite_or_none(checked.low), high=finite_or_none(checked.high)
        )
    kappa = cohen_kappa(found.old, found.new, weights="quadratic", labels=labels, confidence=confidence, seed=seed)
    return EstimatePart(
        value=finite_or_none(kappa.value), low=finite_or_none(kappa.low), high=finite_or_none(kappa.high)
    )


MAX_DEPTH = 20
ORDER_DRAWS = 400
MIN_SHARED_PASSAGES = 4  # With fewer shared passages, the upper half is too small to compare.


@dataclass(frozen=True)
class OrderMove:
    """Comparison of the orders of one query.

    Attributes:
        tau_ap, rbo, overlap: see `OrdersPart`.
        shared: overlap of the two tops, among passages that both sets rank; NaN if not tested.
        expected: mean overlap of the draws; NaN if not tested.
        beyond: whether the overlap is lower than the uncertainty explains; None if not tested.
    """

    tau_ap: float
    rbo: float
    overlap: float
    shared: float = math.nan
    expected: float = math.nan
    beyond: bool | None = None


def depth(old_top: int, new_top: int) -> int:
    """Return the number of leading ranks that matter in both rankings, at most `MAX_DEPTH`."""
    return min(old_top, new_top, MAX_DEPTH)


def order_move(
    old: RankedQuestion, new: RankedQuestion, k: int, *, name: str, confidence: float, seed: int
) -> OrderMove:
    """Compare two orders of the passages of one query. The ids of the passages must be the same in both.

    Args:
        k: number of top passages to compare, at least 1.
        name: query id, which is a part of the random seed.
        confidence: confidence of the test, inside 0..1.
        seed: random seed of the draws.
    """
    seen = OrderMove(
        tau_ap(old.docs, new.docs), rbo(old.docs, new.docs).extrapolated, overlap_at_k(old.docs, new.docs, k)
    )
    place = {doc: number for number, doc in enumerate(new.docs)}
    here = np.array([number for number, doc in enumerate(old.docs) if doc in place], dtype=np.int64)
    there = np.array([place[doc] for doc in old.docs if doc in place], dtype=np.int64)
    doubt = np.hypot(old.sigma[here], new.sigma[there]) if len(here) else np.empty(0)
    if len(here) < min(MIN_SHARED_PASSAGES, k + 1) or not doubt.any():
        return seen
    head = k if len(here) > k else len(here) // 2
    drawn = _draw_overlaps(old.score[here], doubt, head, generator(seed, "orders", name))
    met = float((np.argsort(there)[:head] < head).mean())
    least = float(np.quantile(drawn, 1.0 - confidence, method="lower"))
    return OrderMove(seen.tau_ap, seen.rbo, seen.overlap, met, float(drawn.mean()), met < least)


def _draw_overlaps(score: Floats, doubt: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return, for each draw, the share of the original top k that is also in the top k of the draw. The shape is
    (draws,).
    """
    drawn = score + rng.normal(size=(ORDER_DRAWS, len(score))) * doubt
    heads: Ints = np.argpartition(-drawn, k - 1, axis=1)[:, :k]
    found: Floats = (heads < k).mean(axis=1)
    return found


def orders_part(moves: Sequence[OrderMove], k: int, *, confidence: float) -> OrdersPart | None:
    """Return the means over the queries; None if no query has two or more passages in both orders."""
    known = [move for move in moves if not math.isnan(move.tau_ap)]
    if not known:
        return None
    tested = [move for move in known if move.beyond is not None]
    return OrdersPart(
        compared=len(known),
        k=k,
        tau_ap=_mean([move.tau_ap for move in known]),
        rbo=_mean([move.rbo for move in known]),
        overlap=_mean([move.overlap for move in known]),
        shared=_mean([move.shared for move in tested]),
        expected=_mean([move.expected for move in tested]),
        tested=len(tested),
        beyond=sum(move.beyond is True for move in tested),
        by_chance=(1.0 - confidence) * len(tested),
    )


def _mean(values: Sequence[float]) -> Number:
    return finite_or_none(float(np.mean(values))) if values else None


@dataclass(frozen=True)
class GradeMoves:
    """Differences of grades and orders, in total and by query."""

    grades: GradesPart | None
    orders: OrdersPart | None
    by_question: tuple[QuestionDiffPart, ...]


def grade_moves(old: GoldenSide, new: GoldenSide, pairing: IdPairing, *, confidence: float, seed: int) -> GradeMoves:
    """Compare grades and orders of the queries that both sets judge.

    Args:
        pairing: renamed queries and passages.
        confidence: confidence of the intervals and of the test for a change of order, above 0 and below 1.
        seed: random seed of all draws.
    """
    shared, k = pairing.shared(old, new), depth(old.top, new.top)
    orders: dict[str, OrderMove] = {}
    for qid, there in shared.items() if k else ():
        before, after = old.orders.get(qid), pairing.order(new, there)
        if before is not None and after is not None:
            orders[qid] = order_move(before, after, k, name=qid, confidence=confidence, seed=seed)
    graded = shared_grades(old, new, pairing) if comparable(old, new) else None
    return GradeMoves(
        None if graded is None else grades_part(graded, new, confidence=confidence, seed=seed),
        orders_part(list(orders.values()), k, confidence=confidence),
        _by_question(list(shared), graded, orders),
    )


def _by_question(
    qids: list[str], graded: SharedGrades | None, orders: Mapping[str, OrderMove]
) -> tuple[QuestionDiffPart, ...]:
    places = {} if graded is None else graded.places()
    parts = [_comparing_part(qid, graded, places.get(qid, range(0)), orders.get(qid)) for qid in qids]
    return tuple(sorted(parts, key=lambda part: (-part.moved, part.overlap if part.overlap is not None else 1.0)))


def _comparing_part(qid: str, graded: SharedGrades | None, places: range, order: OrderMove | None) -> QuestionDiffPart:
    compared, moved, shift = (0, 0, float("nan")) if graded is None else graded.of(places)
    part = QuestionDiffPart(qid=qid, compared=compared, moved=moved, shift=finite_or_none(shift))
    if order is None:
        return part
    told = None if order.beyond is None else "beyond" if order.beyond else "within"
    seen = {name: finite_or_none(getattr(order, name)) for name in ("tau_ap", "rbo", "overlap", "expected")}
    return part.model_copy(update={**seen, "change": told})
