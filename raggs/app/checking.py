"""Check: a system held against what must be true of it, for tests: verdicts, the questions where it fails, a report.

What a check says is what the gates of `raggs eval` say. The report is written where somebody asks for it, so that a
check that holds costs one evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from raggs.app.evaluate import AnalysisRequest, EvalRequest, EvalResult, JudgedLists, MeasureRequest
from raggs.app.evaluate import evaluate as evaluate_request
from raggs.app.evaluate_functions import Asked, Given, evaluate_given, open_given
from raggs.app.gates import GateRequest, Verdicts, judged
from raggs.base.errors import UsageError
from raggs.evaluation.gates import Inconclusive
from raggs.golden.base import GoldenSet
from raggs.metrics.names import parse_measure


@dataclass(frozen=True)
class CheckRequest:
    """What must be true.

    Attributes:
        given: the golden set and the systems.
        measures: what is measured; the first one says which questions are the worst.
        at_least, at_most: limits of means, by measure or for all measures.
        before: an earlier eval.json that no measure of which may be missed by more than `drop`, nor significantly.
        drop: what a mean may lose against it.
        seed: of the bootstrap.
        inconclusive: whether the check fails if unjudged passages could reverse the outcome of a limit or comparison.
    """

    given: Given
    measures: MeasureRequest = field(default_factory=MeasureRequest)
    at_least: float | Mapping[str, float] | None = None
    at_most: float | Mapping[str, float] | None = None
    before: Path | None = None
    drop: float = 0.01
    seed: int = 1
    inconclusive: Inconclusive = "fail"


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        result: the evaluation.
        verdicts: what the gates say of it.
        golden: the golden set.
    """

    result: EvalResult
    verdicts: Verdicts
    golden: GoldenSet

    @property
    def failed(self) -> tuple[str, ...]:
        """A sentence for each gate that is not met."""
        return tuple(each.said for each in self.verdicts.outcomes if each.failed)

    @property
    def remedies(self) -> tuple[str, ...]:
        """The commands that have unjudged passages judged, for the gates that fail as inconclusive."""
        return tuple(dict.fromkeys(each.remedy for each in self.verdicts.outcomes if each.failed and each.remedy))

    def write(self, folder: Path) -> Path:
        """Write eval.json, eval.csv and eval.md, and report.html where the golden set is one that lies in files.

        Returns:
            The page that a person opens.

        Raises:
            UsageError: the folder holds the earlier result that this one was compared with.
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
            raise UsageError(f"{self.golden.source} lie in no file", remedy="read eval.md")
        asked = EvalRequest(
            JudgedLists(self.golden, tuple(self.result.systems)),
            MeasureRequest(report.measures),
            analyses=AnalysisRequest(ANALYSES, against_first=True),
            seed=report.seed,
        )
        facts = gather(ReportRequest(source, evaluation=file.with_name("eval.json"), out=file))
        scored = evaluate_request(asked)
        full = replace(facts, golden=self.golden, report=scored.report, systems=tuple(scored.systems))
        return keep_page(full, file)


def check(request: CheckRequest) -> Checked:
    """Evaluate, and hold the result against what is asked; nothing is raised for what is not met.

    Raises:
        RaggsError: something asked for does not exist, cannot be right, or a function failed.
    """
    golden = open_given(request.given.golden, request.given.queries)
    gates = GateRequest(_limits(request), request.before, request.drop, inconclusive=request.inconclusive)
    given = replace(request.given, golden=golden, queries=None)
    result = evaluate_given(given, Asked(request.measures, gates=gates), seed=request.seed)
    return Checked(result, judged(result.report, result.gates), golden)


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
        raise UsageError("a limit needs a measure", remedy='name it: check(search, "ndcg@10", at_least=0.5)')
    return dict.fromkeys(measures.names, limits)
