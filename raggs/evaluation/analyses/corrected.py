"""Scores as people's labels of everything would give them, from the judge's labels and people's of a random part.

Corrected are measures in which a passage counts what its own grade says: precision, precision4, harm, hits, rbp, and
those of packages that say `FIXED`. In others (recall, nDCG, RA-nWG, MRR, ...) one wrong grade changes what the grades
of others count; they are named, and get no number, for no interval of them has been shown to cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from pydantic import Field

from raggs.arrays import Floats
from raggs.correction import FEWEST, Corrected, Totals, correct, totals_of, unlikely
from raggs.errors import DataError, UsageError
from raggs.evaluation.analyses.base import Finding, PartAnalysis
from raggs.evaluation.document import Cell, Row
from raggs.evaluation.models import Number, Part, Report, number
from raggs.evaluation.study import Study
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.ids import IdColumn, pair_keys
from raggs.metrics.measure import Linear
from raggs.metrics.names import Named
from raggs.text import plural

ABOUT_LISTS = {"holes", "judged"}  # no grade changes them
MOST_PAIRS = 3  # systems whose differences are all told without a baseline


@dataclass(frozen=True)
class DrawnLabel:
    """People's grade of a passage that was drawn at random, with the probability of it."""

    grade: int
    chance: float


class CorrectedPart(Part):
    """A score, or the difference of two, corrected."""

    measure: str
    against: str | None = Field(description="the system that is subtracted; null for a score")
    machine: Number = Field(description="by the judge's labels alone")
    corrected: Number = Field(description="null where too few passages were drawn")
    low: Number
    high: Number
    people: Number = Field(description="by people's labels alone")
    people_low: Number
    people_high: Number
    power: Number = Field(description="how far the judge was relied on, 0 to 1")
    drawn: int = Field(description="drawn passages that count, which people graded")
    queries: int = Field(description="queries that have one")


@dataclass(frozen=True)
class PeopleCorrection(PartAnalysis[CorrectedPart]):
    """What the scores would be if people had graded everything; needs their grades of a random part.

    Attributes:
        labels: by query id and passage id.
        baseline: the system that others are subtracted from; each from each where there is none and they are few.
    """

    labels: Mapping[tuple[str, str], DrawnLabel] = field(default_factory=dict)
    baseline: str | None = None

    NAME = "corrected"
    TITLE = "Corrected by people"
    HEAD = ("system", "measure", "judge", "corrected", "interval", "people only", "interval ", "drawn")
    PART = CorrectedPart

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:
        """Refuse to work without labels, or on another scale than people's.

        Raises:
            UsageError: there are none, or the scale is not 1 to 5.
        """
        if not self.labels:
            raise UsageError(
                "nothing to correct scores by", remedy="--reviews DIR, with grades of passages drawn at random"
            )
        if not judgments.qrels.scale.golden:
            raise UsageError("people grade 1 to 5, and these labels are on another scale", remedy="leave --reviews out")

    def compute(self, study: Study) -> Sequence[Finding[CorrectedPart]]:
        """Each system on each measure that can be corrected, then the differences.

        Raises:
            DataError: the chances cannot be those of the draw.
        """
        drawn = {name: _Drawn.of(hits.qrels, self.labels) for name, hits in study.hits.items()}
        found = []
        for named in study.scoring.measures:
            if (measure := correctable(named)) is not None:
                expected = named.mode == "E"
                totals = {n: drawn[n].totals(hits, measure, expected=expected) for n, hits in study.hits.items()}
                found += [*_parts(named.name, totals, study.scoring.confidence, self.baseline)]
        return found

    def extend(self, report: Report, study: Study) -> Report:
        """Besides the parts, which measures were left as they are; nothing without labels."""
        if not self.labels:
            return report
        left = [each.name for each in study.scoring.measures if correctable(each) is None]
        left = [name for name in left if name.partition("@")[0] not in ABOUT_LISTS]
        if left:
            said = (
                f"not corrected by people: {', '.join(left)}; there a wrong grade changes what others count, and no "
                "interval has been shown to cover"
            )
            report = report.model_copy(update={"notes": (*report.notes, said)})
        return super().extend(report, study)

    def rows(self, found: Sequence[Finding[CorrectedPart]]) -> Sequence[Row]:
        """A row for each score and difference."""
        return [
            (
                Cell(_name(system, part)),
                Cell(part.measure),
                Cell(part.machine, "score"),
                Cell(part.corrected, "score"),
                Cell(_ends(part.low, part.high)),
                Cell(part.people, "score"),
                Cell(_ends(part.people_low, part.people_high)),
                Cell(part.drawn),
            )
            for system, part in found
        ]

    def sentences(self, found: Sequence[Finding[CorrectedPart]]) -> Sequence[str]:
        """One for each; those without a number in one for each system."""
        few: dict[str, list[CorrectedPart]] = {}
        for system, part in found:
            if part.corrected is None:
                few.setdefault(_name(system, part), []).append(part)
        said = [_sentence(_name(system, part), part) for system, part in found if part.corrected is not None]
        return [*said, *(_too_few(name, parts) for name, parts in few.items())]


def correctable(named: Named) -> Linear | None:
    """The measure, where each passage counts what its own grade says, so that it can be corrected; else None."""
    measure = named.measure
    return measure if isinstance(measure, Linear) and measure.FIXED and named.mode in {"", "E"} else None


@dataclass(frozen=True)
class _Drawn:
    """People's grades beside the judgments, each of shape (m,): NaN where a passage was not drawn."""

    grade: Floats
    chance: Floats

    @classmethod
    def of(cls, qrels: Qrels, labels: Mapping[tuple[str, str], DrawnLabel]) -> _Drawn:
        numbers = {qid: number for number, qid in enumerate(qrels.qids)}
        known = [(numbers[qid], doc_id, label) for (qid, doc_id), label in labels.items() if qid in numbers]
        grade, chance = np.full(len(qrels.grade), np.nan), np.full(len(qrels.grade), np.nan)
        if known:
            queries, docs, said = zip(*known, strict=True)
            keys = pair_keys(np.array(queries, dtype=np.int64), IdColumn.of(docs).keys())
            places, rows = qrels.judged.find(keys)
            grade[rows] = [said[place].grade for place in places.tolist()]
            chance[rows] = [said[place].chance for place in places.tolist()]
        return cls(grade, chance)

    def totals(self, hits: Hits, measure: Linear, *, expected: bool) -> Totals:
        """The sums of a system's lists."""
        table, grade = measure.table(hits.qrels), self.grade[hits.item]
        drawn = ~np.isnan(grade)
        people = np.full(len(grade), np.nan)
        people[drawn] = table[grade[drawn].astype(np.int64) - hits.qrels.scale.low]
        weight = measure.shares(hits, expected=expected)
        return totals_of(
            hits.query, weight, hits.weigh(table), people, self.chance[hits.item], queries=len(hits.length)
        )


def _parts(
    measure: str, totals: Mapping[str, Totals], confidence: float, baseline: str | None
) -> Iterator[Finding[CorrectedPart]]:
    for name, each in totals.items():
        if unlikely(each):
            raise DataError(
                f"what people graded at random of {name} does not fit the chances that are noted with it",
                remedy="finish the random part, over the pool of these systems; those of two plans do not add up",
            )
        yield Finding(name, _part(measure, None, each, confidence))
    for name, other in _pairs(list(totals), baseline):
        yield Finding(name, _part(measure, other, totals[name] - totals[other], confidence))


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is not None:
        return [(name, baseline) for name in names if name != baseline]
    return list(combinations(names, 2)) if len(names) <= MOST_PAIRS else []


def _part(measure: str, against: str | None, totals: Totals, confidence: float) -> CorrectedPart:
    found, people = correct(totals, confidence=confidence), correct(totals, power=0.0, confidence=confidence)
    return CorrectedPart(
        measure=measure,
        against=against,
        machine=number(float(totals.judge.mean())),
        corrected=_known(found),
        low=number(found.low),
        high=number(found.high),
        people=_known(people),
        people_low=number(people.low),
        people_high=number(people.high),
        power=number(found.power),
        drawn=found.drawn,
        queries=found.informed,
    )


def _known(found: Corrected) -> Number:
    """The mean, where an interval stands beside it."""
    return number(found.mean) if np.isfinite(found.low) else None


def _name(system: str, part: CorrectedPart) -> str:
    return system if part.against is None else f"{system} - {part.against}"


def _ends(low: Number, high: Number) -> str:
    return "–" if low is None or high is None else f"[{low:z.3f}, {high:z.3f}]"


def _too_few(name: str, parts: list[CorrectedPart]) -> str:
    measures, queries = ", ".join(part.measure for part in parts), min(part.queries for part in parts)
    have = f"drawn passages stand in the lists of {plural(queries, 'query')}"
    return f"{name}: {measures} not corrected: {have}, and {FEWEST} are needed"


def _sentence(name: str, part: CorrectedPart) -> str:
    return (
        f"{name}: {part.measure} {part.corrected:z.4f} {_ends(part.low, part.high)} corrected by people; "
        f"judge alone {part.machine:z.4f}, people alone {part.people:z.4f} {_ends(part.people_low, part.people_high)}"
    )
