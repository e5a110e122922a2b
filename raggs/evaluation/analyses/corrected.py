"""Correct scores for errors of the judge, with human labels of a random sample (prediction-powered inference).

Human labels of randomly drawn passages can correct measures in which each passage counts by its own grade. These are
precision, precision4, harm, hits, rbp, insq, sdcg, measures of plugins that set `FIXED`, and pooled recall over all
queries. In other measures, such as nDCG, RA-nWG and MRR, one wrong grade changes the contribution of other passages. To
correct these measures, queries must be drawn at random and labelled completely. Otherwise, they are listed as not
corrected.

Pooled recall is a ratio of two sums over passages. If a query was labelled completely, any measure can be computed from
its human labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from raggs.base.arrays import Floats, Ints
from raggs.base.document import Column
from raggs.base.errors import DataError, UsageError
from raggs.base.text import plural
from raggs.base.types import Number, finite_or_none
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.study import Study
from raggs.golden.judgments import Judgments
from raggs.metrics import weights as w
from raggs.metrics.columns import IdColumn, Qrels, pair_keys
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear
from raggs.metrics.measures.sets import Recall
from raggs.metrics.names import MeasureSpec
from raggs.metrics.unjudged import LabelUncertainty
from raggs.stats.correction import (
    FEWEST_WHOLE,
    MIN_LABELLED_QUERIES,
    VARIED,
    CorrectedMean,
    QueryTotals,
    are_chances_implausible,
    correct,
    correct_ratio,
    correct_values,
    totals_of,
)

Item = tuple[str, str]  # query id and passage id


@dataclass(frozen=True)
class DrawnLabel:
    """Human grade of a randomly drawn passage, with the probability of drawing it."""

    grade: int
    chance: float


@dataclass(frozen=True)
class WholeQuestions:
    """Queries that were drawn at random and labelled completely.

    Attributes:
        chance: probability of drawing a query, by query id.
        grades: grades of the passages of these queries: the human grade, or the judge's grade if the annotator could
            not decide.
    """

    chance: Mapping[str, float] = field(default_factory=dict)
    grades: Mapping[Item, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CorrectedEstimate:
    """Three estimates of a score or of a difference: from the judge's labels, corrected, and from human labels only."""

    machine: float
    found: CorrectedMean
    people: CorrectedMean


def correctable(named: MeasureSpec) -> Linear | None:
    """Return the measure if it can be corrected by single passages, because each passage counts by its own grade.
    Otherwise, return None.
    """
    measure = named.measure
    return measure if isinstance(measure, Linear) and measure.FIXED and named.mode in {"", "E"} else None


def poolable(named: MeasureSpec) -> Recall | None:
    """Return the measure if it is recall, whose value over all queries together can be corrected by single passages.
    Otherwise, return None.
    """
    measure = named.measure
    return measure if isinstance(measure, Recall) and not named.mode else None


@dataclass(frozen=True)
class SampledSums:
    """Sums over drawn passages of a system, which estimate a mean or a ratio of two means.

    Attributes:
        above: sums for the mean, or for the numerator of the ratio.
        below: sums for the denominator of the ratio; None for a mean.
        machine: score from the judge's grades; None if `above` and `below` are sums over grades.
    """

    above: QueryTotals
    below: QueryTotals | None = None
    machine: float | None = None

    def estimate(self, confidence: float) -> CorrectedEstimate:
        """Return the corrected score."""
        if self.below is None:
            totals, machine = self.above, self._machine
            return CorrectedEstimate(
                machine, *(correct(totals, power=each, confidence=confidence) for each in (None, 0.0))
            )
        ratios = (correct_ratio(self.above, self.below, power=each, confidence=confidence) for each in (None, 0.0))
        return CorrectedEstimate(self._machine, *ratios)

    @property
    def _machine(self) -> float:
        """Score from the judge's grades."""
        if self.machine is not None:
            return self.machine
        above, under = float(self.above.judge.mean()), 1.0 if self.below is None else float(self.below.judge.mean())
        return above / under if under else 0.0

    def __sub__(self, other: SampledSums) -> SampledSums:
        """Return the sums that estimate the difference of two systems. The denominator of both must be the same."""
        machine = None if self.machine is None else self._machine - other._machine
        return SampledSums(self.above - other.above, self.below, machine)


@dataclass(frozen=True)
class SampledGrades:
    """Human grades aligned with the judgments, each of shape (m,): NaN if a passage was not drawn.

    Attributes:
        shares: probabilities of the grades that the judge states, shape (m, grades), NaN if unknown; None if it states
            none. The judge then predicts the expected worth of a passage instead of the worth of its grade. This is
            usually a better prediction, which makes the intervals shorter.
    """

    grade: Floats
    chance: Floats
    shares: Floats | None = None

    @classmethod
    def of(
        cls, qrels: Qrels, labels: Mapping[Item, DrawnLabel], doubt: LabelUncertainty | None = None
    ) -> SampledGrades:
        """Return the human grades and probabilities of the judged passages, which are looked up by their ids."""
        grade = _values_by_passage(qrels, {item: float(label.grade) for item, label in labels.items()})
        chance = _values_by_passage(qrels, {item: label.chance for item, label in labels.items()})
        return cls(grade, chance, None if doubt is None else doubt.shares)

    def sums(self, hits: Hits, measure: Linear, *, expected: bool) -> SampledSums:
        """Return the sums of a measure in which each passage counts by its own grade."""
        return self._listed(hits, measure, measure.shares(hits, expected=expected))

    def pooled(self, hits: Hits, measure: Recall) -> SampledSums:
        """Return the sums of pooled recall: relevant passages in the top k of all queries over all relevant
        passages.
        """
        qrels, table = hits.qrels, measure.table(hits.qrels)
        known = np.flatnonzero(qrels.grade >= qrels.scale.low)
        plain, people = table[qrels.grade[known] - qrels.scale.low], self._worth(table, qrels, self.grade[known])
        ones, chance = np.ones(len(known)), self.chance[known]
        judge = self._predicted(plain, table, known)
        below = totals_of(qrels.query[known], ones, judge, people, chance, queries=len(qrels.qids))
        above = self._listed(hits, measure, w.worth_at(hits, measure.cutoff, w.flat))
        total = float(plain.sum()) / max(len(qrels.qids), 1)
        machine = None if above.machine is None else above.machine / total if total else 0.0
        return SampledSums(above.above, below, machine)

    def _listed(self, hits: Hits, measure: Linear, weight: Floats) -> SampledSums:
        """Return the sums of the lists of a system."""
        table, plain = measure.table(hits.qrels), hits.weigh(measure.table(hits.qrels))
        people, chance = self._worth(table, hits.qrels, self.grade[hits.item]), self.chance[hits.item]
        judge = self._predicted(plain, table, hits.item)
        totals = totals_of(hits.query, weight, judge, people, chance, queries=len(hits.length))
        machine = None if self.shares is None else float((weight * plain).sum()) / max(len(hits.length), 1)
        return SampledSums(totals, machine=machine)

    def _predicted(self, plain: Floats, table: Floats, rows: Ints) -> Floats:
        """Return the expected worth of the passages in these rows; `plain` is the worth of their grades."""
        if self.shares is None:
            return plain
        expected = self.shares[rows] @ table
        return np.where(np.isnan(expected), plain, expected)

    @staticmethod
    def _worth(table: Floats, qrels: Qrels, grade: Floats) -> Floats:
        drawn, found = ~np.isnan(grade), np.full(len(grade), np.nan)
        found[drawn] = table[grade[drawn].astype(np.int64) - qrels.scale.low]
        return found


@dataclass(frozen=True)
class MeasureValues:
    """Values of a system on a measure, from the judge's labels and from human labels, and the probabilities of
    drawing the queries. Each has shape (queries,).
    """

    judge: Floats
    people: Floats
    chance: Floats

    @classmethod
    def of(cls, hits: Hits, named: MeasureSpec, whole: WholeQuestions) -> MeasureValues:
        """Return the values with both kinds of labels."""
        qrels = hits.qrels
        said = _values_by_passage(
            qrels, {item: float(grade) for item, grade in whole.grades.items() if item[0] in whole.chance}
        )
        grade = np.where(np.isnan(said), qrels.grade, said).astype(np.int64)
        people = named.values(replace(hits, qrels=qrels.relabelled(grade)))
        chance = np.array([whole.chance.get(qid, np.nan) for qid in qrels.qids], dtype=np.float64)
        return cls(named.values(hits), np.where(np.isnan(chance), np.nan, people), chance)

    def estimate(self, confidence: float) -> CorrectedEstimate:
        """Return the corrected score."""
        columns = self.judge, self.people, self.chance
        known = self.judge[~np.isnan(self.judge)]
        found = (correct_values(*columns, power=each, confidence=confidence) for each in (None, 0.0))
        return CorrectedEstimate(float(known.mean()) if len(known) else np.nan, *found)

    def __sub__(self, other: MeasureValues) -> MeasureValues:
        """Return the difference of two systems, over queries on which both are defined."""
        return MeasureValues(self.judge - other.judge, self.people - other.people, self.chance)


def _values_by_passage(qrels: Qrels, values: Mapping[Item, float]) -> Floats:
    """Return the value of each judged passage, shape (m,); NaN if a passage has no value."""
    numbers = {qid: number for number, qid in enumerate(qrels.qids)}
    known = [(numbers[qid], doc_id, value) for (qid, doc_id), value in values.items() if qid in numbers]
    found = np.full(len(qrels.grade), np.nan)
    if known:
        queries, docs, column = zip(*known, strict=True)
        places, rows = qrels.judged.find(pair_keys(np.array(queries, dtype=np.int64), IdColumn.of(docs).keys()))
        found[rows] = np.array(column)[places]
    return found


ABOUT_LISTS = {"holes", "judged"}  # measures that do not depend on grades
POOLED_LABEL = "pooled"
MAX_SYSTEMS_PAIRED = 3  # With more systems, differences need a baseline.


class CorrectedPart(ReportPart):
    """A corrected score, or the corrected difference of two scores."""

    measure: Annotated[str, Column("measure")]
    against: str | None = Field(description="name of the system whose score is subtracted; null if this is a score")
    machine: Annotated[Number, Column("judge", "score")] = Field(description="score from the judge's labels only")
    corrected: Annotated[Number, Column("corrected", "score")] = Field(
        description="corrected score; null if the random sample is too small"
    )
    low: Number
    high: Number
    people: Annotated[Number, Column("human labels only", "score")] = Field(description="score from human labels only")
    people_low: Number
    people_high: Number
    power: Number = Field(description="weight of the judge's labels in the corrected score, 0 to 1")
    drawn: Annotated[int, Column("drawn")] = Field(
        description="number of drawn passages with a human grade that affect the score; with `whole`, the number of "
        "passages of the labelled queries"
    )
    queries: int = Field(description="number of queries with such passages")
    whole: bool = Field(False, description="whether completely labelled queries were used, rather than single passages")

    @property
    def interval(self) -> Annotated[str, Column("interval")]:
        """Interval of the corrected value."""
        return _interval_text(self.low, self.high)

    @property
    def people_interval(self) -> Annotated[str, Column("interval ")]:
        """Interval of the value from human labels only."""
        return _interval_text(self.people_low, self.people_high)


@dataclass(frozen=True)
class PeopleCorrection(PartAnalysis[CorrectedPart]):
    """Scores corrected for errors of the judge; requires human grades of a random sample.

    Attributes:
        labels: maps (query id, passage id) to the label of a drawn passage.
        baseline: name of the system that the others are compared with. If None, all pairs are compared if there are at
            most `MAX_SYSTEMS_PAIRED` systems.
        whole: queries that were drawn and labelled completely.
    """

    labels: Mapping[Item, DrawnLabel] = field(default_factory=dict)
    baseline: str | None = None
    whole: WholeQuestions = field(default_factory=WholeQuestions)

    NAME = "corrected"
    TITLE = "Corrected by human labels"
    COLUMNS = (
        (Column("system"), lambda found, part: _name(found.system, part)),
        *("measure", "machine", "corrected", "interval", "people", "people_interval", "drawn"),
    )
    PART = CorrectedPart

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:
        """Check that there are human labels, and that the judgments use the same scale.

        Raises:
            UsageError: there are no human labels, or the scale of the judgments is not 1 to 5.
        """
        if not self._any:
            raise UsageError(
                "there are no human labels to correct scores with",
                remedy="pass --reviews DIR, with human grades of passages drawn at random",
            )
        if not judgments.qrels.scale.golden:
            raise UsageError(
                "human labels use the scale 1 to 5, but these labels use another one", remedy="omit --reviews"
            )

    def compute(self, study: Study) -> Sequence[AnalysisFinding[CorrectedPart]]:
        """Return, for each measure, the corrected scores of the systems and then their differences.

        Raises:
            DataError: the recorded sampling probabilities do not fit the draw.
        """
        doubt = study.judgments.doubt
        drawn = {name: SampledGrades.of(hits.qrels, self.labels, doubt) for name, hits in study.hits.items()}
        confidence, found = study.scoring.confidence, list[AnalysisFinding[CorrectedPart]]()
        for named in study.scoring.measures:
            if self.labels and (measure := correctable(named)) is not None:
                expected = named.mode == "E"
                sums = {n: drawn[n].sums(hits, measure, expected=expected) for n, hits in study.hits.items()}
                found += self._by_passages(named.name, sums, confidence)
            elif self.whole.chance and named.name.partition("@")[0] not in ABOUT_LISTS:
                values = {name: MeasureValues.of(hits, named, self.whole) for name, hits in study.hits.items()}
                found += self._by_questions(named.name, values, confidence)
            if self.labels and (recall := poolable(named)) is not None:
                sums = {name: drawn[name].pooled(hits, recall) for name, hits in study.hits.items()}
                found += self._by_passages(f"{named.name}, {POOLED_LABEL}", sums, confidence)
        return found

    @property
    def _any(self) -> bool:
        return bool(self.labels or self.whole.chance)

    def _by_passages(
        self, measure: str, sums: Mapping[str, SampledSums], confidence: float
    ) -> Iterator[AnalysisFinding[CorrectedPart]]:
        for name, each in sums.items():
            if are_chances_implausible(each.above):
                raise DataError(
                    f"the random sample of {name} does not fit its recorded sampling probabilities",
                    remedy="draw from the pools of these systems: raggs review plan, then raggs review serve --plan",
                )
        for name, other, pair in _singles_and_pairs(sums, self.baseline):
            yield AnalysisFinding(name, _part(measure, other, pair.estimate(confidence)))

    def _by_questions(
        self, measure: str, values: Mapping[str, MeasureValues], confidence: float
    ) -> Iterator[AnalysisFinding[CorrectedPart]]:
        for name, other, pair in _singles_and_pairs(values, self.baseline):
            part = _part(measure, other, pair.estimate(confidence))
            yield AnalysisFinding(name, part.model_copy(update={"whole": True, "drawn": len(self.whole.grades)}))

    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Return the report with the corrected scores, and a note that lists the uncorrected measures. If there are
        no human labels, the report stays unchanged.
        """
        if not self._any:
            return report
        left = [each.name for each in study.scoring.measures if correctable(each) is None]
        left = [name for name in left if name.partition("@")[0] not in ABOUT_LISTS]
        if left and not self.whole.chance:
            said = (
                f"not corrected by human labels: {', '.join(left)}; one wrong grade affects the whole value, so they "
                "need queries that were drawn at random and labelled completely (raggs review plan --whole)"
            )
            report = report.model_copy(update={"notes": (*report.notes, said)})
        return super().extend(report, study)

    def sentences(self, found: Sequence[AnalysisFinding[CorrectedPart]]) -> Sequence[str]:
        """Return one sentence per corrected score. Scores that could not be corrected are grouped by system."""
        few: dict[str, list[CorrectedPart]] = {}
        for system, part in found:
            if part.corrected is None:
                few.setdefault(_name(system, part), []).append(part)
        said = [_sentence(_name(system, part), part) for system, part in found if part.corrected is not None]
        return [*said, *(line for name, parts in few.items() for line in _too_few(name, parts))]


S = TypeVar("S", SampledSums, MeasureValues)


def _singles_and_pairs(systems: Mapping[str, S], baseline: str | None) -> Iterator[tuple[str, str | None, S]]:
    """Yield each system, then each reported difference with the name of the subtracted system."""
    for name, each in systems.items():
        yield name, None, each
    for name, other in _pairs(list(systems), baseline):
        yield name, other, systems[name] - systems[other]


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is not None:
        return [(name, baseline) for name in names if name != baseline]
    return list(combinations(names, 2)) if len(names) <= MAX_SYSTEMS_PAIRED else []


def _part(measure: str, against: str | None, estimate: CorrectedEstimate) -> CorrectedPart:
    found, people = estimate.found, estimate.people
    return CorrectedPart(
        measure=measure,
        against=against,
        machine=finite_or_none(estimate.machine),
        corrected=_mean_with_interval(found),
        low=finite_or_none(found.low),
        high=finite_or_none(found.high),
        people=_mean_with_interval(people),
        people_low=finite_or_none(people.low),
        people_high=finite_or_none(people.high),
        power=finite_or_none(found.power),
        drawn=found.drawn,
        queries=found.informed,
    )


def _mean_with_interval(found: CorrectedMean) -> Number:
    """Return the mean if it has an interval, otherwise None."""
    return finite_or_none(found.mean) if np.isfinite(found.low) else None


def _name(system: str, part: CorrectedPart) -> str:
    return system if part.against is None else f"{system} - {part.against}"


def _interval_text(low: Number, high: Number) -> str:
    return "–" if low is None or high is None else f"[{low:z.3f}, {high:z.3f}]"


def _too_few(name: str, parts: list[CorrectedPart]) -> Iterator[str]:
    for whole in (False, True):
        mine = [part for part in parts if part.whole == whole]
        measures, queries = ", ".join(part.measure for part in mine), min((part.queries for part in mine), default=0)
        if mine and whole:
            need = f"{FEWEST_WHOLE} with a defined value are needed; {VARIED} must differ from the most common value"
            yield f"{name}: {measures} not corrected: {plural(queries, 'query')} labelled completely; {need}"
        elif mine:
            have = f"drawn passages are in the lists of {plural(queries, 'query')}"
            yield f"{name}: {measures} not corrected: {have}, and {MIN_LABELLED_QUERIES} are needed"


def _sentence(name: str, part: CorrectedPart) -> str:
    return (
        f"{name}: {part.measure} {part.corrected:z.4f} {part.interval} corrected by human labels; "
        f"judge only {part.machine:z.4f}, human labels only {part.people:z.4f} {part.people_interval}"
    )
