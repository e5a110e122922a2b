"""What the fixture `golden` is: a golden set against which a test checks a system.

A check that fails says so as pytest's own failures do: the scores, what is not met, the worst questions with their
words, and where the report lies. What cannot be checked at all is an error of raggs, with its remedy.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from raggs.app.checking import Checked, CheckRequest, check
from raggs.app.evaluate import EvalResult, MeasureRequest, Worst
from raggs.app.evaluate_functions import DEPTH, Given
from raggs.app.gates import keep_earlier
from raggs.base.errors import UsageError
from raggs.base.text import shorten, visible
from raggs.evaluation.gates import Inconclusive
from raggs.evaluation.layout import RESULT
from raggs.evaluation.words import score

NAME_IT = "pytest --raggs-golden PATH, raggs_golden = PATH in the ini file, or @pytest.mark.raggs_golden(PATH)"
WIDTH = 70  # letters of a question


class Golden:
    """A golden set in a test.

    Args:
        path: of the set; None where nobody named one.
        base: what paths of tests are relative to.
        out: the folder of the report of a check that fails.
        keeps: whether a check that holds writes its eval.json there too.

    Attributes:
        out: as given.
    """

    def __init__(self, path: Path | None, *, base: Path, out: Path, keeps: bool = False) -> None:
        self._path, self._base, self.out, self._keeps = path, base, out, keeps

    @property
    def path(self) -> Path:
        """Where the set lies.

        Raises:
            UsageError: nobody said so.
        """
        if self._path is None:
            raise UsageError("no golden set is named", remedy=NAME_IT)
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
        """Score a system, and fail the test where it does not hold what is asked.

        Args:
            system: a function of a question's text and k, several by name, or lists in any form of `raggs.evaluate`.
            measures: names of measures; the usual ones where left out.
            at_least: what the mean of each measure must reach, or limits by measure.
            at_most: the same for measures where lower is better.
            not_worse_than: an earlier eval.json, relative to pytest's root directory.
            max_drop: what a mean may lose against it; a significant loss fails at any size.
            if_inconclusive: "fail", or "pass" with a warning, if unjudged passages could reverse an outcome.
            queries: the texts of the questions, where the set does not hold them.
            depth: how many passages a function is asked for.

        Raises:
            RaggsError: something asked for does not exist, cannot be right, or the function failed.
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

    def _given(self, system: object, queries: object, depth: int) -> Given:
        if callable(system):
            return Given(self.path, system, queries=queries, depth=depth)
        if isinstance(system, Mapping) and system and all(map(callable, system.values())):
            return Given(self.path, system, queries=queries, depth=depth)
        return Given(self.path, runs={"system": system}, queries=queries, depth=depth)


def failure(found: Checked, page: Path) -> str:
    """What a failed check says.

    Args:
        page: its report.
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
    return visible("\n".join([*lines, "", f"report: {page}"]))


def _scores(found: Checked) -> Iterator[tuple[str, ...]]:
    report = found.result.report
    for measure in report.measures:
        scores = (part.scores[measure] for part in report.systems)
        yield (measure, *(score(each.mean) + _range(each.low, each.high) for each in scores))


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"


def _row(each: Worst, several: bool) -> tuple[str, ...]:
    was = "" if each.before is None else f"was {score(each.before)}"
    return (*((each.system,) if several else ()), each.qid, score(each.value), was, shorten(each.text, WIDTH))


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
