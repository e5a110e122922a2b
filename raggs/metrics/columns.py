"""Judgments and runs as columns: what every measure is computed from.

A `Qrels` knows its scale, so that a grade outside it is an error and never a gain; a `Run` is what a system returned.
Both can be made from dictionaries, or from arrays when files are large; neither keeps the dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raggs.base.arrays import Flags, Floats, Ints, Keys
from raggs.base.errors import DataError
from raggs.metrics.belief import Belief
from raggs.metrics.ids import IdColumn, KeyTable, pair_keys

if TYPE_CHECKING:
    from pathlib import Path


Labels = Mapping[str, Mapping[str, int]]  # qid -> doc_id -> grade
Lists = Mapping[str, Mapping[str, float] | Sequence[str]]  # qid -> doc_id -> score, or doc_ids best first

GOLDEN_HIGH = 5
MOST_GAIN = 1000.0  # ndcg_exp still is a number there
ZERO_HIGH = 4
NAME_IT = "name the scale: 0 to {high} for labels that start from 0, 1 to 5 to insist"


@dataclass(frozen=True)
class Scale:
    """What grades mean.

    Attributes:
        low, high: the lowest and the highest grade; a negative grade is always "pooled but unjudged".
        relevant: the lowest grade that counts as relevant where relevance is yes or no.
        gains: the gain of each grade from `low` to `high`, in 0 to `MOST_GAIN`.
    """

    low: int
    high: int
    relevant: int
    gains: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high:
            raise DataError(f"a scale of grades from {self.low} to {self.high} is none", remedy="e.g. 1-5 or 0-3")
        if not self.low < self.relevant <= self.high:
            raise DataError(
                f"relevance from grade {self.relevant} on divides nothing",
                remedy=f"choose a grade in {self.low + 1} to {self.high}",
            )
        if len(self.gains) != self.size:
            raise DataError(f"{self.size} gains are needed, one for each grade", remedy="give all of them")
        for grade, gain in zip(self.grades().tolist(), self.gains, strict=True):
            if not 0 <= gain <= MOST_GAIN:
                said = f"the gain of grade {grade} is {gain:g}, which does not lie in 0 to {MOST_GAIN:g}"
                raise DataError(said, remedy="scale all gains alike")

    @classmethod
    def of(cls, low: int, high: int, relevant: int | None = None, gains: Mapping[int, float] | None = None) -> Scale:
        """A scale with the usual meaning: gain = grade - low; relevant from 4 on where 1 is lowest, else from 1 on."""
        usual = 4 if low == 1 else low + 1
        every = range(low, high + 1)
        if gains is not None and (missing := [grade for grade in every if grade not in gains]):
            raise DataError(f"grade {missing[0]} has no gain", remedy=f"give a gain for each grade {low} to {high}")
        worth = tuple(float(grade - low if gains is None else gains[grade]) for grade in every)
        return cls(low, high, min(usual, high) if relevant is None else relevant, worth)

    @property
    def size(self) -> int:
        """How many grades there are."""
        return self.high - self.low + 1

    @property
    def golden(self) -> bool:
        """Whether these are the grades 1 to 5 of a golden set."""
        return (self.low, self.high) == (1, GOLDEN_HIGH)

    def holds(self, grades: NDArray[np.integer]) -> Flags:
        """Which grades are possible here."""
        return (grades < 0) | ((grades >= self.low) & (grades <= self.high))

    def grades(self) -> Ints:
        """Every grade, ascending."""
        return np.arange(self.low, self.high + 1)


def usual_scale(grades: Iterable[int], *, where: Path | None = None, remedy: str = NAME_IT) -> Scale:
    """The scale that some grades seem to be on: 0 to 4 if a 0 is among them or all are 1, else 1 to 5.

    Labels that are all 1 say yes and leave out every no, as in many data sets of BEIR.

    Args:
        grades: all that occur; negative ones say nothing.
        where: the file that they are from.
        remedy: what to do where they could be on either; {high} is the highest of them.

    Raises:
        DataError: no grade is 0, some are 2 or 3, and none would be relevant on the scale 1 to 5.
    """
    found = set(grades)
    if 0 in found or {grade for grade in found if grade >= 0} == {1}:
        return Scale.of(0, ZERO_HIGH)
    scale, high = Scale.of(1, GOLDEN_HIGH), max(1, max(found, default=1))
    if found and high < scale.relevant:
        said = f"no grade is above {high}, so nothing would be relevant on the scale 1 to {GOLDEN_HIGH}"
        raise DataError(said, where=where, remedy=remedy.format(high=high))
    return scale


@dataclass(frozen=True)
class Qrels:
    """Judgments as columns.

    Attributes:
        qids: the judged queries, sorted.
        query: shape (m,), the number of each judgment's query in `qids`, non-decreasing.
        grade: shape (m,), its grade; negative means pooled but unjudged.
        docs: its passage.
        scale: what the grades mean.
        belief: where a ranking puts them; None where nothing was ranked.

    Raises:
        DataError: a grade outside the scale, or a passage judged twice for a query.
    """

    qids: tuple[str, ...]
    query: Ints
    grade: Ints
    docs: IdColumn
    scale: Scale
    belief: Belief | None = None

    def __post_init__(self) -> None:
        wrong = np.flatnonzero(~self.scale.holds(self.grade))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"query {self.qids[self.query[row]]}, passage {self.docs.text(row)}: grade {self.grade[row]} lies "
                f"outside the scale {self.scale.low} to {self.scale.high}",
                remedy="correct it, or name the scale",
            )
        if (row_twice := _repeated(self.keys)) is not None:
            raise _stands_twice(self.qids[self.query[row_twice]], self.docs.text(row_twice))

    @classmethod
    def of(cls, labels: Labels, scale: Scale | None = None) -> Qrels:
        """The columns of ``{qid: {doc_id: grade}}``. A query without any label is left out, as in a file.

        Raises:
            DataError: as the class; without `scale`, labels from which none can be guessed (`usual_scale`).
        """
        qids = tuple(sorted(qid for qid, judged in labels.items() if judged))
        grades = np.array([_whole(grade, qid) for qid in qids for grade in labels[qid].values()], dtype=np.int64)
        query = np.repeat(np.arange(len(qids)), [len(labels[qid]) for qid in qids])
        docs = IdColumn.of(chain.from_iterable(labels[qid] for qid in qids))
        return cls(qids, query, grades, docs, scale or usual_scale(np.unique(grades).tolist()))

    @classmethod
    def from_columns(
        cls, qids: Sequence[str], doc_ids: Sequence[str], grades: ArrayLike, scale: Scale | None = None
    ) -> Qrels:
        """The columns of three sequences of equal length, a label each, in any order."""
        grade = np.asarray(grades)
        if not len(qids) == len(doc_ids) == len(grade):
            raise DataError(f"{len(qids)} queries, {len(doc_ids)} passages and {len(grade)} grades do not make rows")
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
    def of_counts(cls, counts: Ints, scale: Scale) -> Qrels:
        """Judgments of which only the numbers are known, shape (queries, grades): enough for the norms of measures."""
        none = np.empty(0, dtype=np.int64)
        made = cls((), none, none, IdColumn([]), scale)
        made.__dict__["counts"] = counts
        return made

    @cached_property
    def keys(self) -> Keys:
        """A key for each (query, passage)."""
        return pair_keys(self.query, self.docs.keys())

    @cached_property
    def judged(self) -> KeyTable:
        """What finds the rows of judged passages by their keys."""
        return KeyTable(self.keys, np.flatnonzero(self.grade >= 0))

    @cached_property
    def counts(self) -> Ints:
        """Shape (queries, grades): how many passages of each grade were judged."""
        return self.counted(np.flatnonzero(self.grade >= 0))

    def counted(self, rows: Ints) -> Ints:
        """Shape (queries, grades): how many of some judged passages, by their rows here, have each grade."""
        shape = len(self.qids), self.scale.size
        cells = self.query[rows] * self.scale.size + self.grade[rows] - self.scale.low
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    def relabelled(self, grade: Ints) -> Qrels:
        """The same passages with other grades, shape (m,); what was believed of a passage goes with its grade."""
        belief = None if self.belief is None else self.belief.only(grade == self.grade)
        return replace(self, grade=grade, belief=belief)

    def facets(self, facet_of: Mapping[str, str]) -> Ints:
        """Shape (m,): a number for the facet of each judged passage; -1 where none is known."""
        numbers = {name: number for number, name in enumerate(sorted(set(facet_of.values())))}
        docs = self.docs.take(np.arange(len(self.docs)))
        return np.array([numbers.get(facet_of.get(doc.decode(), ""), -1) for doc in docs.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class Run:
    """What a system returned, as columns, in the order of its file.

    Attributes:
        qids: its queries.
        query: shape (n,), the number of each row's query in `qids`.
        score: shape (n,), finite; higher is better.
        docs: the passages.
        note: a sentence about what is odd in its file; empty if nothing is.
    """

    qids: tuple[str, ...]
    query: Ints
    score: Floats
    docs: IdColumn
    note: str = ""

    def checked(self) -> Run:
        """The same, once its scores are known to be finite and its passages to stand once for a query.

        Raises:
            DataError: they are not.
        """
        wrong = np.flatnonzero(~np.isfinite(self.score))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"query {self.qids[self.query[row]]}, passage {self.docs.text(row)}: score {self.score[row]} is not "
                "a finite number",
                remedy="remove or repair it",
            )
        if (row_twice := self.twice()) is not None:
            raise _stands_twice(self.qids[self.query[row_twice]], self.docs.text(row_twice))
        return self

    def twice(self) -> int | None:
        """A row whose passage stands above it for the same query already, if there is one."""
        return _repeated(pair_keys(self.query, self.doc_keys))

    @classmethod
    def of(cls, lists: Lists) -> Run:
        """The columns of ``{qid: {doc_id: score}}`` or ``{qid: [doc_id, ...]}`` (best first, so without ties)."""
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
        """The columns of three sequences of equal length, a row each."""
        names = tuple(dict.fromkeys(qids))
        numbers = {qid: number for number, qid in enumerate(names)}
        query = np.fromiter((numbers[qid] for qid in qids), dtype=np.int64, count=len(qids))
        score = np.asarray(scores, dtype=np.float64)
        if not len(qids) == len(doc_ids) == len(score):
            raise DataError(f"{len(qids)} queries, {len(doc_ids)} passages and {len(score)} scores do not make rows")
        return cls(names, query, score, IdColumn.of(doc_ids)).checked()

    @cached_property
    def doc_keys(self) -> Keys:
        """A key for each row's passage."""
        return self.docs.keys()


def _repeated(keys: Keys) -> int | None:
    """The second row of a key that stands twice, if one does."""
    ordered = np.sort(keys)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return int(np.flatnonzero(keys == again[0])[1]) if len(again) else None


def _stands_twice(qid: str, doc_id: str) -> DataError:
    return DataError(f"query {qid} and passage {doc_id} stand twice", remedy="keep one")


def _whole(grade: float, qid: str) -> int:
    if not float(grade).is_integer():
        raise _no_whole_number(qid, grade)
    return int(grade)


def _no_whole_number(qid: str, grade: float) -> DataError:
    return DataError(f"query {qid}: grade {grade} is not a whole number", remedy="grades are whole numbers")
