"""Effect of the order of passages with equal scores on each measure.

The widest range of each system is added to the notes. The table contains the measures whose value changes with the
order. It omits measures without modes for ties (`Measure.TIES`), such as ERR. If judged passages are in ties that begin
at or before the cutoff for more than 1% of the queries, a sentence recommends to report expected value and range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.base.document import score
from raggs.base.text import plural
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis, by_system
from raggs.evaluation.models import EvalReport, TiePart
from raggs.evaluation.study import Study, mean
from raggs.metrics.evaluate import Evaluation
from raggs.metrics.hits import Hits
from raggs.metrics.names import MeasureSpec

# share of queries with ties that begin at or before the cutoff; if it is exceeded, a sentence states expected scores
REPORTED = 0.01


class TieRanges(PartAnalysis[TiePart]):
    """How far scores depend on how ties are broken."""

    NAME = "ties"
    TITLE = "Ties"
    PLACE = "ties"
    COLUMNS = ("system", "measure", "expected", "least", "most", "width", "across", "bias", "queries")
    PART = TiePart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[TiePart]]:
        """Return, for each system with ties, the measures with modes for ties whose value depends on their order."""
        return [
            AnalysisFinding(system, part)
            for system, hits in study.hits.items()
            if hits.tied.any()
            for part in _tie_parts(hits, study.scoring.measures, study.values[system])
        ]

    def put(self, report: EvalReport, found: Sequence[AnalysisFinding[TiePart]]) -> EvalReport:
        """Return the report with the parts in `ties` of each system, and the widest range in the notes."""
        tied = {system.name: system.tied for system in report.systems}
        notes = [_note(system, tied[system], parts) for system, parts in by_system(report, found).items() if parts]
        return super().put(report, found).model_copy(update={"notes": (*report.notes, *notes)})

    def sentences(self, found: Sequence[AnalysisFinding[TiePart]]) -> Sequence[str]:
        """Return a sentence with expected value and range of each measure, for each system whose ties begin
        at or before the cutoff for more than 1% of the queries.
        """
        told: dict[str, list[TiePart]] = {}
        for system, part in found:
            told.setdefault(system, []).append(part)
        return [_pairs(system, parts) for system, parts in told.items() if max(map(_reached_share, parts)) > REPORTED]


def _reached_share(part: TiePart) -> float:
    return part.reached


def _pairs(system: str, parts: Sequence[TiePart]) -> str:
    pairs = (f"{part.measure} {score(part.expected)} (range {score(part.width)})" for part in parts)
    share = max(map(_reached_share, parts))
    reached = f"{system}: ties begin at or before the cutoff for {share:.0%} of the queries"
    return f"{reached}; expected scores over all orders of ties: {', '.join(pairs)}"


def _tie_parts(hits: Hits, measures: Sequence[MeasureSpec], found: Evaluation) -> Iterator[TiePart]:
    """Yield how far each measure depends on the order of ties. Only queries with ties are measured again, because
    the others have only one value.
    """
    tied = hits.tied > 0
    some = hits.only(tied)
    for named in measures:
        if named.mode or not named.measure.TIES:
            continue
        plain = found.column(named.name)
        least, most = (_values_with_ties(plain, tied, named, mode, some) for mode in ("min", "max"))
        if moved := int((most - least > 0).sum()):
            expected = _values_with_ties(plain, tied, named, "E", some)
            yield TiePart(
                measure=named.name,
                expected=mean(expected),
                least=mean(least),
                most=mean(most),
                bias=mean(plain - expected),
                queries=moved,
                across=_cutoff_tie_range(plain, tied, named, some),
                reached=_reached_tie_share(hits, named),
            )


def _values_with_ties(plain: Floats, tied: Flags, named: MeasureSpec, mode: str, some: Hits) -> Floats:
    return np.where(tied, replace(named, mode=mode).values(some), plain)


def _cutoff_tie_range(plain: Floats, tied: Flags, named: MeasureSpec, some: Hits) -> float | None:
    """Return the mean range of the measure over all orders of the passages that are tied at the cutoff; None if the
    measure has no cutoff.
    """
    if named.measure.k is None:
        return None
    return mean(np.where(tied, replace(named, mode="range_at_k").values(some), plain * 0.0))


def _reached_tie_share(hits: Hits, named: MeasureSpec) -> float:
    """Return the share of queries with a judged passage in a group of ties that begins at or before the cutoff."""
    open_ = (hits.size > 1) & (hits.start < named.measure.cutoff)
    return len(np.unique(hits.query[open_])) / len(hits.length)


def _note(system: str, tied: int, parts: Sequence[TiePart]) -> str:
    worst = max(parts, key=lambda part: part.width or 0.0)
    return (
        f"{system}: {plural(tied, 'passage')} share their score with another one; depending on the order of ties, "
        f"{worst.measure} is {score(worst.least)} to {score(worst.most)}, expected {score(worst.expected)} "
        f"({plural(worst.queries, 'query')})"
    )
