"""Scores as people's labels of everything would give them: by passages that were drawn, and by whole questions.

By passages: measures in which a passage counts what its own grade says, and pooled recall, which is a ratio of two such
sums. By whole questions: any measure, for a question that was read whole has a value by people's labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.ids import IdColumn, pair_keys
from raggs.metrics.measure import Linear
from raggs.metrics.measures.sets import Recall
from raggs.metrics.names import Named
from raggs.stats.correction import Corrected, Totals, correct, correct_ratio, correct_values, totals_of

Item = tuple[str, str]  # query id and passage id


@dataclass(frozen=True)
class DrawnLabel:
    """People's grade of a passage that was drawn at random, with the probability of it."""

    grade: int
    chance: float


@dataclass(frozen=True)
class WholeQuestions:
    """Questions that were drawn at random and read whole.

    Attributes:
        chance: by query id, with which it was drawn.
        grades: people's, of their passages; the judge's stands where nobody could tell.
    """

    chance: Mapping[str, float] = field(default_factory=dict)
    grades: Mapping[Item, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """A score or a difference: by the judge alone, corrected, and by people alone."""

    machine: float
    found: Corrected
    people: Corrected


def correctable(named: Named) -> Linear | None:
    """The measure, where each passage counts what its own grade says, so that it can be corrected; else None."""
    measure = named.measure
    return measure if isinstance(measure, Linear) and measure.FIXED and named.mode in {"", "E"} else None


def poolable(named: Named) -> Recall | None:
    """The measure, where its share over all queries at once can be corrected by passages; else None."""
    measure = named.measure
    return measure if isinstance(measure, Recall) and not named.mode else None


@dataclass(frozen=True)
class Sums:
    """What passages that were drawn say of a system: a mean, or a ratio of two.

    Attributes:
        above: the sums whose mean is asked for, or is divided by that of `below`.
        below: None for a mean.
    """

    above: Totals
    below: Totals | None = None

    def estimate(self, confidence: float) -> Estimate:
        """The corrected score."""
        machine = float(self.above.judge.mean())
        if self.below is None:
            totals = self.above
            return Estimate(machine, *(correct(totals, power=each, confidence=confidence) for each in (None, 0.0)))
        under = float(self.below.judge.mean())
        ratios = (correct_ratio(self.above, self.below, power=each, confidence=confidence) for each in (None, 0.0))
        return Estimate(machine / under if under else 0.0, *ratios)

    def __sub__(self, other: Sums) -> Sums:
        """Of the difference of two systems: both are divided by the same."""
        return Sums(self.above - other.above, self.below)


@dataclass(frozen=True)
class Drawn:
    """People's grades beside the judgments, each of shape (m,): NaN where a passage was not drawn."""

    grade: Floats
    chance: Floats

    @classmethod
    def of(cls, qrels: Qrels, labels: Mapping[Item, DrawnLabel]) -> Drawn:
        """Looked up by ids."""
        grade = _beside(qrels, {item: float(label.grade) for item, label in labels.items()})
        return cls(grade, _beside(qrels, {item: label.chance for item, label in labels.items()}))

    def sums(self, hits: Hits, measure: Linear, *, expected: bool) -> Sums:
        """Of a measure in which a passage counts what its own grade says."""
        return Sums(self._listed(hits, measure, measure.shares(hits, expected=expected)))

    def pooled(self, hits: Hits, measure: Recall) -> Sums:
        """Of the relevant passages that are in the top k of all queries, over all that there are."""
        qrels, table = hits.qrels, measure.table(hits.qrels)
        known = np.flatnonzero(qrels.grade >= qrels.scale.low)
        judge, people = table[qrels.grade[known] - qrels.scale.low], self._worth(table, qrels, self.grade[known])
        ones, chance = np.ones(len(known)), self.chance[known]
        below = totals_of(qrels.query[known], ones, judge, people, chance, queries=len(qrels.qids))
        return Sums(self._listed(hits, measure, w.worth_at(hits, measure.cutoff, w.flat)), below)

    def _listed(self, hits: Hits, measure: Linear, weight: Floats) -> Totals:
        """The sums of a system's lists."""
        table = measure.table(hits.qrels)
        people, chance = self._worth(table, hits.qrels, self.grade[hits.item]), self.chance[hits.item]
        return totals_of(hits.query, weight, hits.weigh(table), people, chance, queries=len(hits.length))

    @staticmethod
    def _worth(table: Floats, qrels: Qrels, grade: Floats) -> Floats:
        drawn, found = ~np.isnan(grade), np.full(len(grade), np.nan)
        found[drawn] = table[grade[drawn].astype(np.int64) - qrels.scale.low]
        return found


@dataclass(frozen=True)
class Values:
    """A system's values of a measure, each of shape (queries,): by the judge, by people, and the chances of these."""

    judge: Floats
    people: Floats
    chance: Floats

    @classmethod
    def of(cls, hits: Hits, named: Named, whole: WholeQuestions) -> Values:
        """The values under both kinds of labels."""
        qrels = hits.qrels
        said = _beside(qrels, {item: float(grade) for item, grade in whole.grades.items() if item[0] in whole.chance})
        grade = np.where(np.isnan(said), qrels.grade, said).astype(np.int64)
        people = named.values(replace(hits, qrels=qrels.relabelled(grade)))
        chance = np.array([whole.chance.get(qid, np.nan) for qid in qrels.qids], dtype=np.float64)
        return cls(named.values(hits), np.where(np.isnan(chance), np.nan, people), chance)

    def estimate(self, confidence: float) -> Estimate:
        """The corrected score."""
        columns = self.judge, self.people, self.chance
        known = self.judge[~np.isnan(self.judge)]
        found = (correct_values(*columns, power=each, confidence=confidence) for each in (None, 0.0))
        return Estimate(float(known.mean()) if len(known) else np.nan, *found)

    def __sub__(self, other: Values) -> Values:
        """Of the difference of two systems, over queries on which both are defined."""
        return Values(self.judge - other.judge, self.people - other.people, self.chance)


def _beside(qrels: Qrels, values: Mapping[Item, float]) -> Floats:
    """Shape (m,): the value of each judged passage; NaN where it has none."""
    numbers = {qid: number for number, qid in enumerate(qrels.qids)}
    known = [(numbers[qid], doc_id, value) for (qid, doc_id), value in values.items() if qid in numbers]
    found = np.full(len(qrels.grade), np.nan)
    if known:
        queries, docs, column = zip(*known, strict=True)
        places, rows = qrels.judged.find(pair_keys(np.array(queries, dtype=np.int64), IdColumn.of(docs).keys()))
        found[rows] = np.array(column)[places]
    return found
