"""Judgments and runs as columns, from which every measure is computed.

A `Qrels` stores judgments with their scale of grades. A grade outside the scale is an error, except that a negative
grade means pooled but unjudged. A `Run` is what a system returned. Both can be created from dictionaries, or from
arrays if files are large. The dictionaries are not kept.

Id columns store passage ids as bytes, without a Python object per id. Ids are UTF-8 bytes in NumPy arrays of fixed
width. A column may have several such arrays, so that a long id widens only its own array. Bytes sort like code points,
as trec_eval sorts ids to break ties. A key is a 64-bit hash of the bytes and does not depend on the width of the array.
Keys depend on a secret of the process, so that ids with equal keys cannot be constructed. Do not store keys or compare
them between processes.

Utility estimates are the posterior of a ranking: for each passage, a score on the scale of the grades with a standard
error. Between two grades, the gain is interpolated linearly. Beyond the scale, the gain is that of the nearest grade.
Therefore the expected gain of a passage has a closed form, and no sampling is needed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raggs.base.arrays import ByteTexts, Flags, Floats, Ints, Keys
from raggs.base.errors import DataError
from raggs.base.text import one_line
from raggs.stats.distributions import normal_cdf

if TYPE_CHECKING:
    from pathlib import Path

HASH_WORD_BYTES = 8
FILTER_BITS = 22  # a table of 2^22 bits that rejects most unknown keys with one lookup
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
SECRET = np.array([secrets.randbits(64)], dtype=np.uint64)


class IdColumn:
    """An immutable sequence of ids, one per row.

    Args:
        chunks: consecutive arrays of bytes (dtype ``S``). Ids contain no NUL.
    """

    def __init__(self, chunks: Sequence[ByteTexts]) -> None:
        self._chunks = tuple(chunks)
        self._ends = np.cumsum([len(chunk) for chunk in self._chunks], dtype=np.int64)

    @classmethod
    def of(cls, ids: Iterable[str]) -> IdColumn:
        """Return a column with the given ids.

        Raises:
            DataError: an id contains an unpaired surrogate, or a NUL, which the arrays cannot store.
        """
        return cls([np.array([_encoded(name) for name in ids], dtype=np.bytes_)])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def and_also(self, ids: Iterable[str]) -> IdColumn:
        """Return a column with more ids appended."""
        return IdColumn([*self._chunks, *IdColumn.of(ids)._chunks])

    def keys(self) -> Keys:
        """Return a 64-bit hash of each id, specific to this process."""
        return self._hashed(secret=True)

    def lasting_keys(self) -> Keys:
        """Return a 64-bit hash of each id that is the same in every process.

        Ids with equal hashes can be constructed, so use these hashes only for sorting.
        """
        return self._hashed(secret=False)

    def _hashed(self, *, secret: bool) -> Keys:
        parts = [_keys(chunk, secret=secret) for chunk in self._chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def take(self, rows: Ints) -> ByteTexts:
        """Return the ids of some rows in one array."""
        if len(self._chunks) == 1:
            return self._chunks[0][rows]
        place = np.searchsorted(self._ends, rows, side="right")
        taken = np.empty(len(rows), dtype=max((chunk.dtype for chunk in self._chunks), key=lambda kind: kind.itemsize))
        for number in np.unique(place):
            mine = place == number
            first = self._ends[number] - len(self._chunks[number])
            taken[mine] = self._chunks[number][rows[mine] - first]
        return taken

    def text(self, row: int) -> str:
        """Return the id of one row."""
        return str(self.take(np.array([row]))[0].decode())


class KeyTable:
    """Table that finds rows by their keys; the keys are sorted once for all lookups.

    Args:
        keys: keys of all rows.
        rows: the rows that can be found; `find` ignores all other rows.
    """

    def __init__(self, keys: Keys, rows: Ints) -> None:
        self._rows = rows[np.argsort(keys[rows])]
        self._keys = keys[self._rows]
        self._maybe = np.zeros(1 << FILTER_BITS, dtype=np.bool_)
        self._maybe[_low_bits(self._keys)] = True

    def find(self, keys: Keys) -> tuple[Ints, Ints]:
        """Return the positions of known keys in `keys`, and the row of each. Different ids may share a key."""
        places = np.flatnonzero(self._maybe[_low_bits(keys)])
        if not len(self._keys) or not len(places):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found = np.minimum(np.searchsorted(self._keys, keys[places]), len(self._keys) - 1)
        right = self._keys[found] == keys[places]
        return places[right], self._rows[found[right]]


def _low_bits(keys: Keys) -> Ints:
    return (keys & np.uint64((1 << FILTER_BITS) - 1)).astype(np.int64)


def mix_bits(values: Keys) -> Keys:
    """Return a hash of each value, without collisions (the finaliser of SplitMix64; Steele, Lea, Flood 2014)."""
    z = values + GOLDEN
    z = (z ^ (z >> SHIFTS[0])) * MIX[0]
    z = (z ^ (z >> SHIFTS[1])) * MIX[1]
    return z ^ (z >> SHIFTS[2])


def pair_keys(queries: Ints, docs: Keys) -> Keys:
    """Return a key for each pair of a query number and a passage key."""
    # A query number may have the same bytes as a word of a short id: (48, "1") and (49, "0") would have the same key.
    # The bytes of its complement never occur in UTF-8.
    return mix_bits(docs ^ mix_bits(~queries.astype(np.uint64)))


def _encoded(name: str) -> bytes:
    try:
        found = name.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"id {name!a} is not valid Unicode", remedy="write ids in Unicode") from error
    if b"\0" in found:
        raise DataError(f"id {one_line(name)!r} contains a NUL character", remedy="remove the character")
    return found


def _keys(ids: ByteTexts, *, secret: bool) -> Keys:
    width = max(ids.dtype.itemsize, 1)
    words = -(-width // HASH_WORD_BYTES)
    padded = np.ascontiguousarray(ids.astype(f"S{words * HASH_WORD_BYTES}", copy=False))
    table = padded.view(np.uint64).reshape(len(ids), words)
    keys = np.zeros(len(ids), dtype=np.uint64)
    salts = np.arange(words, dtype=np.uint64) * MIX[0]
    for word, salt in zip(table.T, mix_bits(salts + SECRET) if secret else salts, strict=True):
        # A zero word is padding after the end of the id. It must not count, so that the key does not depend on the
        # width.
        keys ^= np.where(word == 0, np.uint64(0), mix_bits(word + salt))
    return keys


@dataclass(frozen=True)
class UtilityEstimates:
    """Posterior utility of the ranked passages, one row per judgment of a `Qrels`.

    Attributes:
        score: shape (m,), posterior mean in grades; NaN for an unranked passage, which keeps the gain of its grade.
        sigma: shape (m,), standard error of the score, >= 0.
    """

    score: Floats
    sigma: Floats

    @property
    def ranked(self) -> Flags:
        """Which passages have an estimate, shape (m,)."""
        return np.isfinite(self.score)

    def moved(self, shift: Floats, doubt: Floats) -> UtilityEstimates:
        """Return a draw from the posterior: the scores plus `shift`, each of shape (m,).

        A drawn score is certain, so its standard error is 0. A row is drawn if its `doubt` is above 0.
        """
        return UtilityEstimates(self.score + shift, np.where(doubt > 0, 0.0, self.sigma))

    def only(self, kept: Flags) -> UtilityEstimates:
        """Return the estimates with passages outside `kept` marked as unranked."""
        return UtilityEstimates(np.where(kept, self.score, np.nan), self.sigma)

    def taken(self, rows: Ints) -> UtilityEstimates:
        """Return the estimates in the given rows."""
        return UtilityEstimates(self.score[rows], self.sigma[rows])

    def extended(self, more: int) -> UtilityEstimates:
        """Return the estimates with `more` rows appended for unranked passages."""
        return UtilityEstimates(np.append(self.score, np.full(more, np.nan)), np.append(self.sigma, np.zeros(more)))


def expected_gains(score: Floats, sigma: Floats, gains: Floats, low: int) -> Floats:
    """Return the expected gain of passages whose grade has the distribution N(score, sigma), shape (n,).

    The gain is piecewise linear in the grade and constant beyond the scale.

    Args:
        score, sigma: shape (n,), sigma >= 0.
        gains: shape (grades,) or (n, grades): gain of each grade.
        low: lowest grade.
    """
    knots = low + np.arange(gains.shape[-1], dtype=np.float64)
    above = _mean_above(score[:, None] - knots, sigma[:, None])
    found: Floats = gains[..., 0] + (np.diff(gains, axis=-1) * (above[:, :-1] - above[:, 1:])).sum(axis=-1)
    return found


def _mean_above(gap: Floats, sigma: Floats) -> Floats:
    """Return the expected value of max(x, 0) for x ~ N(gap, sigma)."""
    wide = np.maximum(sigma, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        z = gap / wide
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    found: Floats = np.where(sigma > 0, gap * normal_cdf(z) + sigma * density, np.maximum(gap, 0.0))
    return found


RankedUtilities = Mapping[tuple[str, str], tuple[float, float]]  # (qid, doc_id) -> (score, standard error)


def belief_of(pairs: Iterable[tuple[str, str]], placed: RankedUtilities) -> UtilityEstimates | None:
    """Return the estimates for (query, passage) pairs; None if no passage was ranked."""
    rows = np.array([placed.get(pair, (np.nan, 0.0)) for pair in pairs], dtype=np.float64).reshape(-1, 2)
    found = UtilityEstimates(rows[:, 0], rows[:, 1])
    return found if found.ranked.any() else None


StatedShares = Mapping[tuple[str, str], Sequence[float]]  # (qid, doc_id) -> probability of each grade


def shares_of(pairs: Iterable[tuple[str, str]], stated: StatedShares) -> Floats | None:
    """Return the probabilities of the grades for (query, passage) pairs, shape (pairs, grades), NaN if unknown; None if
    none are known.
    """
    if not stated:
        return None
    unknown = (np.nan,) * len(next(iter(stated.values())))
    rows = np.array([stated.get(pair, unknown) for pair in pairs], dtype=np.float64).reshape(-1, len(unknown))
    return None if np.isnan(rows).all() else rows


Labels = Mapping[str, Mapping[str, int]]  # qid -> doc_id -> grade
Lists = Mapping[str, Mapping[str, float] | Sequence[str]]  # qid -> doc_id -> score, or qid -> doc_ids, best first

GOLDEN_HIGH = 5
MAX_GAIN = 1000.0  # the largest allowed gain of a grade; ndcg_exp, with 2^gain, is still finite
ZERO_HIGH = 4
NAME_IT = "give the scale: 0 to {high} if the lowest possible grade is 0, else 1 to 5"


@dataclass(frozen=True)
class GradeScale:
    """Grades of a set of judgments: the lowest, the highest, which are relevant, and their gains.

    Attributes:
        low, high: lowest and highest grade; on any scale, a negative grade means pooled but unjudged.
        relevant: lowest grade that counts as relevant in measures with binary relevance.
        gains: gain of each grade from `low` to `high`, in 0 to `MAX_GAIN`.
    """

    low: int
    high: int
    relevant: int
    gains: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high:
            raise DataError(f"the scale {self.low} to {self.high} is not valid", remedy="use e.g. 1-5 or 0-3")
        if not self.low < self.relevant <= self.high:
            raise DataError(
                f"grade {self.relevant} cannot be the lowest relevant grade on the scale {self.low} to {self.high}",
                remedy=f"choose a grade in {self.low + 1} to {self.high}",
            )
        if len(self.gains) != self.size:
            raise DataError(f"expected {self.size} gains, one per grade", remedy="give a gain for each grade")
        for grade, gain in zip(self.grades().tolist(), self.gains, strict=True):
            if not 0 <= gain <= MAX_GAIN:
                said = f"the gain of grade {grade} is {gain:g}, which is not in 0 to {MAX_GAIN:g}"
                raise DataError(said, remedy="scale all gains by one factor")

    @classmethod
    def of(
        cls, low: int, high: int, relevant: int | None = None, gains: Mapping[int, float] | None = None
    ) -> GradeScale:
        """Return a scale with the given or the default relevant grades and gains.

        By default, the gain is grade - low. Grades from 4 on are relevant if the lowest grade is 1 (only the highest
        grade, if that is below 4). On other scales, all grades above the lowest are relevant.

        Raises:
            DataError: the scale, `relevant` or a gain is out of range, or a grade has no gain.
        """
        usual = 4 if low == 1 else low + 1
        every = range(low, high + 1)
        if gains is not None and (missing := [grade for grade in every if grade not in gains]):
            raise DataError(f"grade {missing[0]} has no gain", remedy=f"give a gain for each grade {low} to {high}")
        worth = tuple(float(grade - low if gains is None else gains[grade]) for grade in every)
        return cls(low, high, min(usual, high) if relevant is None else relevant, worth)

    @property
    def size(self) -> int:
        """Number of grades."""
        return self.high - self.low + 1

    @property
    def golden(self) -> bool:
        """Whether the scale is 1 to 5, as in a golden set."""
        return (self.low, self.high) == (1, GOLDEN_HIGH)

    def holds(self, grades: NDArray[np.integer]) -> Flags:
        """Return which grades are valid on the scale."""
        return (grades < 0) | ((grades >= self.low) & (grades <= self.high))

    def grades(self) -> Ints:
        """Return all grades, ascending."""
        return np.arange(self.low, self.high + 1)


def usual_scale(grades: Iterable[int], *, where: Path | None = None, remedy: str = NAME_IT) -> GradeScale:
    """Return the probable scale of some grades: 0 to 4 if a grade is 0 or all are 1, else 1 to 5.

    Labels that are all 1 list only the relevant passages, as in many data sets of BEIR.

    Args:
        grades: all grades that occur; negative ones are ignored.
        where: the file from which the grades were read.
        remedy: advice if the scale is ambiguous; {high} is replaced by the highest grade.

    Raises:
        DataError: no grade is 0 or at least 4, and not all are 1. No passage would be relevant on the scale 1 to 5.
    """
    found = set(grades)
    if 0 in found or {grade for grade in found if grade >= 0} == {1}:
        return GradeScale.of(0, ZERO_HIGH)
    scale, high = GradeScale.of(1, GOLDEN_HIGH), max(1, max(found, default=1))
    if found and high < scale.relevant:
        said = f"no grade is above {high}, so no passage would be relevant on the scale 1 to {GOLDEN_HIGH}"
        raise DataError(said, where=where, remedy=remedy.format(high=high))
    return scale


@dataclass(frozen=True)
class Qrels:
    """Judgments as columns.

    Attributes:
        qids: judged queries, sorted.
        query: shape (m,), position of each judgment's query in `qids`, from 0, non-decreasing.
        grade: shape (m,), grade; negative means pooled but unjudged.
        docs: passage of each judgment.
        scale: lowest and highest grade, the relevant grades, and the gains.
        belief: posterior utility of the ranked passages; None if no passage was ranked.

    Raises:
        DataError: a grade is outside the scale, or a passage is judged twice for a query.
    """

    qids: tuple[str, ...]
    query: Ints
    grade: Ints
    docs: IdColumn
    scale: GradeScale
    belief: UtilityEstimates | None = None

    def __post_init__(self) -> None:
        wrong = np.flatnonzero(~self.scale.holds(self.grade))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"query {self.qids[self.query[row]]}, passage {self.docs.text(row)}: grade {self.grade[row]} is "
                f"outside the scale {self.scale.low} to {self.scale.high}",
                remedy="correct the grade, or give the scale of the grades",
            )
        if (row_twice := _repeated(self.keys)) is not None:
            raise _stands_twice(self.qids[self.query[row_twice]], self.docs.text(row_twice))

    @classmethod
    def of(cls, labels: Labels, scale: GradeScale | None = None) -> Qrels:
        """Return judgments from ``{qid: {doc_id: grade}}``. Queries without labels are ignored, as in a file.

        Raises:
            DataError: as for the class. Also if a grade is not a whole number, or if no `scale` is given and
                `usual_scale` cannot infer it.
        """
        qids = tuple(sorted(qid for qid, judged in labels.items() if judged))
        grades = np.array([_whole_grade(grade, qid) for qid in qids for grade in labels[qid].values()], dtype=np.int64)
        query = np.repeat(np.arange(len(qids)), [len(labels[qid]) for qid in qids])
        docs = IdColumn.of(chain.from_iterable(labels[qid] for qid in qids))
        return cls(qids, query, grades, docs, scale or usual_scale(np.unique(grades).tolist()))

    @classmethod
    def from_columns(
        cls, qids: Sequence[str], doc_ids: Sequence[str], grades: ArrayLike, scale: GradeScale | None = None
    ) -> Qrels:
        """Return judgments from three sequences of equal length, with one element per label, in any order."""
        grade = np.asarray(grades)
        if not len(qids) == len(doc_ids) == len(grade):
            raise DataError(
                f"{len(qids)} queries, {len(doc_ids)} passages and {len(grade)} grades: the numbers must be equal"
            )
        if (wrong := np.flatnonzero(grade != np.rint(grade))).size:
            raise _no_whole_number(qids[wrong[0]], grade[wrong[0]])
        names = tuple(sorted(set(qids)))
        numbers = {qid: number for number, qid in enumerate(names)}
        query = np.fromiter((numbers[qid] for qid in qids), dtype=np.int64, count=len(qids))
        order = np.argsort(query, kind="stable")
        whole = grade[order].astype(np.int64)
        docs = IdColumn.of(doc_ids[row] for row in order.tolist())
        return cls(names, query[order], whole, docs, scale or usual_scale(np.unique(whole).tolist()))

    @classmethod
    def of_counts(cls, counts: Ints, scale: GradeScale) -> Qrels:
        """Return judgments of which only the counts are known, shape (queries, grades); measures can compute their
        norms.
        """
        none = np.empty(0, dtype=np.int64)
        made = cls((), none, none, IdColumn([]), scale)
        made.__dict__["counts"] = counts
        return made

    @cached_property
    def keys(self) -> Keys:
        """Key of each judgment's (query, passage) pair, shape (m,)."""
        return pair_keys(self.query, self.docs.keys())

    @cached_property
    def judged(self) -> KeyTable:
        """Table that finds the rows of judged passages by `keys`, without the unjudged ones."""
        return KeyTable(self.keys, np.flatnonzero(self.grade >= 0))

    @cached_property
    def counts(self) -> Ints:
        """Number of judged passages per query and grade, shape (queries, grades)."""
        return self.counted(np.flatnonzero(self.grade >= 0))

    def counted(self, rows: Ints) -> Ints:
        """Return the number of passages per query and grade among the judged passages in `rows`, shape (queries,
        grades).
        """
        shape = len(self.qids), self.scale.size
        cells = self.query[rows] * self.scale.size + self.grade[rows] - self.scale.low
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    def relabelled(self, grade: Ints) -> Qrels:
        """Return the judgments with other grades, shape (m,).

        A passage whose grade changes loses its utility estimate.
        """
        belief = None if self.belief is None else self.belief.only(grade == self.grade)
        return replace(self, grade=grade, belief=belief)

    def facets(self, facet_of: Mapping[str, str]) -> Ints:
        """Return the number of each judged passage's facet, shape (m,); -1 if the passage has no facet."""
        numbers = {name: number for number, name in enumerate(sorted(set(facet_of.values())))}
        docs = self.docs.take(np.arange(len(self.docs)))
        return np.array([numbers.get(facet_of.get(doc.decode(), ""), -1) for doc in docs.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class TaskSearches:
    """Searches of an agent: mean number per task, and mean cost per task in USD (None if the cost is unknown)."""

    searches: float
    usd: float | None


@dataclass(frozen=True)
class SearchLatency:
    """Latency that a run file states for its queries: number of these queries, median and 95th percentile in ms."""

    queries: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True)
class Run:
    """Ranked lists of a system as columns, in the order of its file.

    Attributes:
        qids: queries of the run.
        query: shape (n,), position of each row's query in `qids`, from 0.
        score: shape (n,), finite; higher is better.
        docs: passage of each row.
        note: a sentence about anomalies of the run file; empty if there are none.
        tasks: number and cost of the searches, if the lists are merged from several searches per task.
        latency: latency of the searches; None if the file states none.
    """

    qids: tuple[str, ...]
    query: Ints
    score: Floats
    docs: IdColumn
    note: str = ""
    tasks: TaskSearches | None = None
    latency: SearchLatency | None = None

    def checked(self) -> Run:
        """Return the run after checking that scores are finite and that no query has a passage twice.

        Raises:
            DataError: a check fails.
        """
        wrong = np.flatnonzero(~np.isfinite(self.score))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"query {self.qids[self.query[row]]}, passage {self.docs.text(row)}: score {self.score[row]} is not "
                "a finite number",
                remedy="remove the row or correct its score",
            )
        if (row_twice := self.twice()) is not None:
            raise _stands_twice(self.qids[self.query[row_twice]], self.docs.text(row_twice))
        return self

    def twice(self) -> int | None:
        """Return a row that repeats a passage of the same query; None if no passage is repeated."""
        return _repeated(pair_keys(self.query, self.doc_keys))

    @classmethod
    def of(cls, lists: Lists) -> Run:
        """Return a run from ``{qid: {doc_id: score}}``, or from ``{qid: [doc_id, ...]}`` with the best passage first.

        Lists without scores have no ties.
        """
        qids = tuple(lists)
        scores: list[ArrayLike] = [
            list(found.values()) if isinstance(found, Mapping) else -np.arange(len(found)) for found in lists.values()
        ]
        query = np.repeat(np.arange(len(qids)), [len(found) for found in lists.values()])
        docs = IdColumn.of(chain.from_iterable(lists.values()))
        joined = np.concatenate([np.asarray(column, dtype=np.float64) for column in scores]) if scores else np.empty(0)
        return cls(qids, query, joined, docs).checked()

    @classmethod
    def from_columns(cls, qids: Sequence[str], doc_ids: Sequence[str], scores: ArrayLike) -> Run:
        """Return a run from three sequences of equal length, with one element per row."""
        names = tuple(dict.fromkeys(qids))
        numbers = {qid: number for number, qid in enumerate(names)}
        query = np.fromiter((numbers[qid] for qid in qids), dtype=np.int64, count=len(qids))
        score = np.asarray(scores, dtype=np.float64)
        if not len(qids) == len(doc_ids) == len(score):
            raise DataError(
                f"{len(qids)} queries, {len(doc_ids)} passages and {len(score)} scores: the numbers must be equal"
            )
        return cls(names, query, score, IdColumn.of(doc_ids)).checked()

    @cached_property
    def doc_keys(self) -> Keys:
        """Key of each row's passage."""
        return self.docs.keys()


def _repeated(keys: Keys) -> int | None:
    """Return the second row of a key that occurs twice; None if all keys differ."""
    ordered = np.sort(keys)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return int(np.flatnonzero(keys == again[0])[1]) if len(again) else None


def _stands_twice(qid: str, doc_id: str) -> DataError:
    return DataError(f"query {qid} and passage {doc_id} occur twice", remedy="keep only one of the two rows")


def _whole_grade(grade: float, qid: str) -> int:
    if not float(grade).is_integer():
        raise _no_whole_number(qid, grade)
    return int(grade)


def _no_whole_number(qid: str, grade: float) -> DataError:
    return DataError(f"query {qid}: grade {grade} is not a whole number", remedy="use whole numbers as grades")
