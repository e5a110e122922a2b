"""The fixture `golden` and its checks: a test checks a system against a golden set.

A failed check is a normal pytest failure: it shows scores, unmet limits, the worst questions with their texts, and the
path of the report. If a check cannot be run, raggs raises an error. The verdicts are those of the gates of `raggs
eval`. The report is written only for failed checks, so a passing check takes only one evaluation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedSystems, MeasureRequest
from raggs.app.evaluate import EvalResult, WorstQuery
from raggs.app.evaluate import evaluate as evaluate_request
from raggs.app.evaluate_functions import DEPTH, EvalInputs, EvalOptions, evaluate_given, open_given
from raggs.app.gates import GateRequest, GateVerdicts, check_gates, keep_earlier
from raggs.base.document import score
from raggs.base.errors import UsageError
from raggs.base.text import escape_controls, shorten
from raggs.evaluation.gates import Inconclusive
from raggs.evaluation.layout import RESULT
from raggs.golden.base import GoldenSet
from raggs.metrics.names import parse_measure


@dataclass(frozen=True)
class CheckRequest:
    """Conditions of a check.

    Attributes:
        given: the golden set and the systems.
        measures: the measures; the first one determines the worst questions.
        at_least, at_most: limits of means, one for every measure or a mapping by measure.
        before: an earlier eval.json. A measure fails if its mean is worse by more than `drop`, or by a significant and
            not negligible difference.
        drop: allowed loss of a mean since `before`.
        seed: random seed of the bootstrap.
        inconclusive: whether the check fails if unjudged passages could reverse the outcome of a limit or comparison.
    """

    given: EvalInputs
    measures: MeasureRequest = field(default_factory=MeasureRequest)
    at_least: float | Mapping[str, float] | None = None
    at_most: float | Mapping[str, float] | None = None
    before: Path | None = None
    drop: float = 0.01
    seed: int = 1
    inconclusive: Inconclusive = "fail"


@dataclass(frozen=True)
class CheckResult:
    """Result of a check.

    Attributes:
        result: the evaluation.
        verdicts: outcomes of the gates.
        golden: the golden set.
    """

    result: EvalResult
    verdicts: GateVerdicts
    golden: GoldenSet

    @property
    def failed(self) -> tuple[str, ...]:
        """One sentence per gate that is not met."""
        return tuple(each.said for each in self.verdicts.outcomes if each.failed)

    @property
    def remedies(self) -> tuple[str, ...]:
        """Commands to run so that unjudged passages are judged, for gates that fail as inconclusive."""
        return tuple(dict.fromkeys(each.remedy for each in self.verdicts.outcomes if each.failed and each.remedy))

    def write(self, folder: Path) -> Path:
        """Write eval.json, eval.csv and eval.md, and report.html if the golden set is stored in files.

        Returns:
            Path of the page that the user should open.

        Raises:
            UsageError: the folder contains the earlier result with which this one was compared.
            ProviderError: the folder cannot be written.
        """
        files = self.result.write(folder)
        try:
            return self._page(folder / "report.html")
        except UsageError:
            return next(file for file in files if file.suffix == ".md")

    def _page(self, file: Path) -> Path:
        from raggs.app.report import ANALYSES, ReportRequest, gather, keep_page

        report, source = self.result.report, Path(self.golden.source)
        if not source.exists():
            raise UsageError(
                f"{self.golden.source} is not stored in a file", remedy="read eval.md instead of report.html"
            )
        asked = EvalRequest(
            JudgedSystems(self.golden, tuple(self.result.systems)),
            MeasureRequest(report.measures),
            analyses=AnalysisRequest(ANALYSES, against_first=True),
            seed=report.seed,
        )
        facts = gather(ReportRequest(source, evaluation=file.with_name("eval.json"), out=file))
        scored = evaluate_request(asked)
        full = replace(facts, golden=self.golden, report=scored.report, systems=tuple(scored.systems))
        return keep_page(full, file)


def check(request: CheckRequest) -> CheckResult:
    """Evaluate the systems and check the conditions; an unmet condition is in the result and raises no error.

    Raises:
        RaggsError: an input does not exist or is invalid, or a function failed.
    """
    golden = open_given(request.given.golden, request.given.queries)
    gates = GateRequest(_limits(request), request.before, request.drop, inconclusive=request.inconclusive)
    given = replace(request.given, golden=golden, queries=None)
    result = evaluate_given(given, EvalOptions(request.measures, gates=gates), seed=request.seed)
    return CheckResult(result, check_gates(result.report, result.gates), golden)


def _limits(request: CheckRequest) -> dict[str, float]:
    found: dict[str, float] = {}
    for limits, wanted in ((request.at_least, True), (request.at_most, False)):
        for name, limit in _by_measure(limits, request.measures).items():
            named = parse_measure(name)
            if named.higher is not wanted:
                side = "at_least" if named.higher else "at_most"
                raise UsageError(
                    f"{named.name}: {'higher' if named.higher else 'lower'} is better", remedy=f"use {side}"
                )
            found[named.name] = limit
    return found


def _by_measure(limits: float | Mapping[str, float] | None, measures: MeasureRequest) -> Mapping[str, float]:
    if limits is None:
        return {}
    if isinstance(limits, Mapping):
        return limits
    if not measures.names:
        raise UsageError(
            "a limit needs a measure name", remedy='name the measure: check(search, "ndcg@10", at_least=0.5)'
        )
    return dict.fromkeys(measures.names, limits)


NAME_IT = "pytest --raggs-golden PATH, raggs_golden = PATH in the ini file, or @pytest.mark.raggs_golden(PATH)"
WIDTH = 70  # maximum characters of a question in the table


class GoldenFixture:
    """A golden set in a test.

    Args:
        path: path of the set; None if no set is configured.
        base: folder that paths in tests are relative to.
        out: folder of the report of a failed check.
        keeps: whether a passing check also writes eval.json, eval.csv and eval.md to `out`.

    Attributes:
        out: folder of the report of a failed check.
    """

    def __init__(self, path: Path | None, *, base: Path, out: Path, keeps: bool = False) -> None:
        self._path, self._base, self.out, self._keeps = path, base, out, keeps

    @property
    def path(self) -> Path:
        """Path of the golden set.

        Raises:
            UsageError: no golden set is configured.
        """
        if self._path is None:
            raise UsageError("no golden set is configured", remedy=NAME_IT)
        return self._path

    def check(
        self,
        system: object,
        *measures: str,
        at_least: float | Mapping[str, float] | None = None,
        at_most: float | Mapping[str, float] | None = None,
        not_worse_than: Path | str | None = None,
        max_drop: float = 0.01,
        if_inconclusive: Inconclusive = "fail",
        queries: object = None,
        depth: int = DEPTH,
    ) -> EvalResult:
        """Score a system, and fail the test if a condition is not met.

        Args:
            system: a function of a question's text and k, several functions by name, or ranked lists in any form of
                `raggs.evaluate`.
            measures: names of measures; default: the standard selection.
            at_least: minimum of the mean, one for every measure or a mapping by measure.
            at_most: maximum of the mean, in the same forms; for measures where lower is better.
            not_worse_than: an earlier eval.json, relative to pytest's root directory.
            max_drop: allowed loss of a mean since `not_worse_than`. A smaller loss also fails if it is significant and
                not negligible.
            if_inconclusive: whether the test should "fail", or "pass" with a warning, if unjudged passages could
                reverse an outcome.
            queries: texts of the questions, if the golden set does not contain them.
            depth: number of passages requested from a function.

        Raises:
            RaggsError: an input does not exist or is invalid, or the function failed.
        """
        __tracebackhide__ = True
        before = None if not_worse_than is None else self._base / not_worse_than
        keep_earlier(before, self.out / RESULT)
        asked = MeasureRequest(measures)
        given = self._given(system, queries, depth)
        found = check(CheckRequest(given, asked, at_least, at_most, before, max_drop, inconclusive=if_inconclusive))
        for said in found.verdicts.passed_over:
            warnings.warn(said, stacklevel=2)
        if found.failed:
            pytest.fail(failure(found, found.write(self.out).resolve()), pytrace=False)
        if self._keeps:
            found.result.write(self.out)
        return found.result

    def _given(self, system: object, queries: object, depth: int) -> EvalInputs:
        if callable(system):
            return EvalInputs(self.path, system, queries=queries, depth=depth)
        if isinstance(system, Mapping) and system and all(map(callable, system.values())):
            return EvalInputs(self.path, system, queries=queries, depth=depth)
        return EvalInputs(self.path, runs={"system": system}, queries=queries, depth=depth)


def failure(found: CheckResult, page: Path) -> str:
    """Return the text of a failed check.

    Args:
        found: result of the check.
        page: path of the report.
    """
    report = found.result.report
    lines = [f"not met on {report.golden.source}:", *(f"  {said}" for said in found.failed)]
    lines += [*(f"  next: {each}" for each in found.remedies), ""]
    lines += _table([("measure", *(part.name for part in report.systems)), *_scores(found)])
    worst = found.result.worst()
    if worst:
        several = len(report.systems) > 1
        lines += ["", f"worst questions by {report.measures[0]}:"]
        lines += _table([_row(each, several) for each in worst])
    return escape_controls("\n".join([*lines, "", f"report: {page}"]))


def _scores(found: CheckResult) -> Iterator[tuple[str, ...]]:
    report = found.result.report
    for measure in report.measures:
        scores = (part.scores[measure] for part in report.systems)
        yield (measure, *(score(each.mean) + _range(each.low, each.high) for each in scores))


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"


def _row(each: WorstQuery, several: bool) -> tuple[str, ...]:
    was = "" if each.before is None else f"was {score(each.before)}"
    return (*((each.system,) if several else ()), each.qid, score(each.value), was, shorten(each.text, WIDTH))


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
