"""Systems against a baseline: the difference of means with its interval, corrected p values, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raggs.base.document import Column, Legend
from raggs.base.errors import UsageError
from raggs.base.types import finite_or_none
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis
from raggs.evaluation.messages import MARKS, inconclusive, verdict_word, would_tell
from raggs.evaluation.models import ComparisonPart, EvalReport, UnjudgedPart
from raggs.evaluation.study import Study, ends_between, judging_remedy, unjudged_in, unjudged_part
from raggs.golden.judgments import Judgments
from raggs.metrics.names import SPREADS, MeasureSpec
from raggs.stats.comparison import TESTS, Comparison, DifferenceBounds, compare_many

CAUSES = {"inconclusive": ": too few queries", "unjudged": ": unjudged passages could reverse it"}
UNCOMPARED = {"holes", "judged", "unj"}  # These measures show how far to trust a score, not how good a system is.


@dataclass(frozen=True)
class Comparisons(PartAnalysis[ComparisonPart]):
    """Comparison of systems with a baseline, per measure.

    Attributes:
        baseline: name of the baseline.
        first: whether the first system is the baseline if no baseline is named. If False, nothing is compared without a
            named baseline.
    """

    baseline: str | None = None
    first: bool = False

    NAME = "comparisons"
    TITLE = "Comparison with"
    PLACE = "comparisons"
    COLUMNS = (
        *("system", "measure", "difference", "interval", "holm", "effect", "turns"),
        (Column("verdict"), lambda _, part: _verdict(part)),
    )
    PART = ComparisonPart

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:
        """Check that the baseline is one of the systems.

        Raises:
            UsageError: no system has this name.
        """
        if self.baseline is not None and self.baseline not in systems:
            raise UsageError(f"no system is called {self.baseline}", remedy=f"known: {', '.join(systems)}")

    def compute(self, study: Study) -> Sequence[AnalysisFinding[ComparisonPart]]:
        """Return the comparison of every other system with the baseline. It is empty if there is no baseline."""
        baseline = next(iter(study.values)) if self.first and self.baseline is None else self.baseline
        if baseline is None or len(study.values) < 2:
            return ()
        return [
            AnalysisFinding(part.system, part)
            for named in study.scoring.measures
            if _is_compared(named)
            for part in _on_measure(study, named, baseline)
        ]

    def title(self, found: Sequence[AnalysisFinding[ComparisonPart]]) -> str:
        """Return the title with the name of the baseline."""
        return f"{self.TITLE} {found[0].part.baseline}"

    def sentences(self, found: Sequence[AnalysisFinding[ComparisonPart]]) -> Sequence[str]:
        """Return the measures of each system, grouped by verdict. Add reason and remedy to verdicts that are
        inconclusive because of unjudged passages.
        """
        said = []
        for name in dict.fromkeys(name for name, _ in found):
            mine, against = [part for n, part in found if n == name], f"{name} against {found[0].part.baseline}"
            if told := "; ".join(_by_verdict(part for part in mine if part.unjudged is None)):
                said.append(f"{against}: {told}")
            said += [f"{against} on {', '.join(measures)}: {why}" for why, measures in _inconclusive(mine).items()]
        remedies = (part.unjudged.remedy for _, part in found if part.unjudged is not None)
        return [*said, *(f"next: {remedy}" for remedy in dict.fromkeys(remedies))]

    def legend(self, report: EvalReport) -> Legend | None:
        """Return the meaning of the marks that follow the scores."""
        if not report.comparisons:
            return None
        met = {part.verdict for part in report.comparisons}
        said = ", ".join(
            f"{mark} {verdict_word(verdict)}{CAUSES.get(verdict, '')}"
            for verdict, mark in MARKS.items()
            if verdict in met
        )
        return Legend("", f"against {report.comparisons[0].baseline}: {said}")


def compare_on(study: Study, measure: str, baseline: str | None = None) -> Sequence[ComparisonPart]:
    """Return the comparisons of all other systems with a baseline on one measure, by the randomisation test only.

    Args:
        measure: canonical name of a measure of the study.
        baseline: name of a system [default: the first one].

    Returns:
        One comparison per system other than the baseline. Empty for measures that do not rate quality, such as holes.
    """
    named = next(each for each in study.scoring.measures if each.name == measure)
    if len(study.values) < 2 or not _is_compared(named):
        return ()
    return tuple(_on_measure(study, named, baseline or next(iter(study.values)), ("randomisation",), plan=False))


def _is_compared(named: MeasureSpec) -> bool:
    return named.mode not in SPREADS and named.measure.NAME not in UNCOMPARED


def _on_measure(
    study: Study, named: MeasureSpec, baseline: str, tests: Sequence[str] = tuple(TESTS), *, plan: bool = True
) -> Iterator[ComparisonPart]:
    sign = 1.0 if named.higher else -1.0
    columns = {name: sign * evaluation.column(named.name) for name, evaluation in study.values.items()}
    base = columns.pop(baseline)
    found = {name: ends_between(named, study.shown(name), study.shown(baseline)) for name in columns}
    ends = {name: each for name, each in found.items() if each is not None}
    alpha = 1.0 - study.scoring.confidence
    several = compare_many(base, columns, seed=study.scoring.seed, alpha=alpha, tests=tests, ends=ends, plan=plan)
    for name, result in several.items():
        why = _unjudged_reason(study, named, name, baseline, ends[name]) if result.verdict == "unjudged" else None
        yield comparison_part(name, baseline, named.name, result, sign, why)


def _unjudged_reason(
    study: Study, named: MeasureSpec, name: str, baseline: str, ends: DifferenceBounds
) -> UnjudgedPart:
    tops = unjudged_in(named, {each: study.tops[each] for each in (name, baseline)})
    remedy = judging_remedy(tops, study.sources, study.judgments.source)
    return unjudged_part(tops, ends, 1.0 if named.higher else -1.0, remedy)


def comparison_part(
    system: str,
    baseline: str,
    measure: str,
    result: Comparison,
    sign: float = 1.0,
    unjudged: UnjudgedPart | None = None,
) -> ComparisonPart:
    """Return a comparison as it is stored in a report.

    Args:
        sign: -1 if the values were negated because lower values are better, otherwise 1.
        unjudged: why the comparison is inconclusive, if unjudged passages could reverse it.
    """
    low, high = sorted((sign * result.difference.low, sign * result.difference.high))
    return ComparisonPart(
        system=system,
        baseline=baseline,
        measure=measure,
        difference=finite_or_none(sign * result.difference.mean),
        low=finite_or_none(low),
        high=finite_or_none(high),
        p={test: finite_or_none(p) for test, p in result.p_values.items()},
        corrected={test: finite_or_none(p) for test, p in result.corrected.items()},
        effect=finite_or_none(sign * result.effect_size),
        wins=result.wins,
        ties=result.ties,
        losses=result.losses,
        verdict=result.verdict,
        stands=result.stands if result.verdict == "unjudged" else None,
        negligible=result.negligible,
        queries_needed=result.queries_needed,
        unjudged=unjudged,
    )


def _verdict(part: ComparisonPart) -> str:
    if part.unjudged is not None:
        return f"{MARKS[part.verdict]} {inconclusive(part.unjudged)}"
    return ", ".join(filter(None, (f"{MARKS[part.verdict]} {verdict_word(part.verdict)}", would_tell(part))))


def _inconclusive(parts: Sequence[ComparisonPart]) -> dict[str, list[str]]:
    """Return for each reason the measures whose verdicts are inconclusive because of unjudged passages."""
    found: dict[str, list[str]] = {}
    for part in parts:
        if part.unjudged is not None:
            found.setdefault(inconclusive(part.unjudged), []).append(part.measure)
    return found


def _by_verdict(parts: Iterator[ComparisonPart]) -> Iterator[str]:
    listed = list(parts)
    for verdict in MARKS:
        if measures := [part.measure for part in listed if part.verdict == verdict]:
            yield f"{verdict_word(verdict)} in {', '.join(measures)}"
