"""Sections of the report: base class and input data.

A section converts `ReportFacts` to typed data, which the template next to its module renders. The first result of
`deciding_comparisons` decides: the best other system against the baseline, by the primary metric.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from shlex import quote
from typing import ClassVar

from raggs.base.document import ReportDocument
from raggs.base.errors import NotFoundError
from raggs.diagnosis.models import DiagnosisReport
from raggs.evaluation.models import ComparisonPart, EvalReport, ReportPart
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.questions import GoldenQuestions
from raggs.golden.sources import NamedSystem
from raggs.golden.views import QuestionView
from raggs.metrics.names import glossary
from raggs.parts.reviews import CurrentReviews
from raggs.reporting.surveying import PoolSurvey, PoolTally, pools_of
from raggs.runs.manifests.costs import LedgerTotals, costs
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stats.judge_agreement import JudgeValidity
from raggs.sweeps.models import SweepReport

DIGITS = 3  # decimals of scores


@dataclass(frozen=True)
class JudgeValidation:
    """Comparison of the judge with human labels, if there are any.

    Attributes:
        trust: validity of the judge per use.
        said: `trust` in sentences.
        document: complete report of the check; None if nothing could be compared.
        grades: number of labels by grade of the judge and human grade; empty without labels.
        why: reason why nothing could be compared; empty otherwise.
    """

    trust: tuple[JudgeValidity, ...] = ()
    said: tuple[str, ...] = ()
    document: ReportDocument | None = None
    why: str = ""
    grades: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class ReportedSweep:
    """A sweep over the golden set.

    Attributes:
        report: its results.
        config: its configuration file, for commands; empty if unknown.
    """

    report: SweepReport
    config: str = ""

    @property
    def file(self) -> str:
        """The configuration file as typed in a command; FILE if unknown."""
        return quote(self.config) if self.config else "FILE"


@dataclass(frozen=True)
class ReportFacts:
    """Inputs of a report, opened and scored in advance.

    Attributes:
        place: golden set as named by the user, for commands.
        golden: golden set, which streams its queries and passages.
        run: run that created the golden set; None for a file of labels.
        report: evaluation of the systems; None if there are no grades yet.
        missing: reason for a missing evaluation; empty otherwise.
        sweeps: sweeps over the set.
        people: comparison of the judge with human labels.
        texts: whether texts of passages may be shown, and texts that may quote them; if False, sections omit both.
        command: command that creates this report again.
        systems: results of each system; None: the run's own retrievers and their fusion.
        reviews: human labels, if there are any.
        judged: grades as columns, if the evaluation has already read them.
        diagnoses: reports of diagnoses; `undiagnosed`: sentences on omitted ones.
        terms: definitions, which the page links from the first use of a term in each section.
    """

    place: str
    golden: GoldenSet
    run: OpenedRun | None
    report: EvalReport | None
    missing: str
    sweeps: tuple[ReportedSweep, ...]
    people: JudgeValidation
    texts: bool
    command: str
    systems: tuple[NamedSystem, ...] | None = None
    reviews: CurrentReviews | None = None
    judged: Judgments | None = None
    diagnoses: tuple[DiagnosisReport, ...] = ()
    undiagnosed: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def judgments(self) -> Judgments | None:
        """All grades; None if there are none yet, which the decision section reports."""
        try:
            found = self.judged or self.golden.judgments()
        except NotFoundError:
            return None
        return found if found.qrels.qids else None

    def views(self, depth: int) -> Iterator[QuestionView]:
        """Yield every query; texts of passages are omitted if they may not be shown.

        Pool statistics are counted along the way. After a complete pass, `pools` needs no second one.

        Args:
            depth: hits per system.

        Raises:
            DataError: a line is invalid.
        """
        tally = PoolTally(None if self.judgments is None else self.judgments.qrels.scale.relevant)
        for view in GoldenQuestions(self.golden, self.systems, self.reviews, depth=depth):
            if self.run is not None:
                tally.see(view)
            yield view if self.texts else view.without_texts()
        self._counted.append(tally)

    @cached_property
    def _counted(self) -> list[PoolTally]:
        return []

    @cached_property
    def pools(self) -> PoolSurvey | None:
        """Pools of the run; None for a file of labels, or before pooling.

        Raises:
            DataError: a line is invalid.
        """
        if not self._counted:
            deque(self.views(depth=0), maxlen=0)
        return pools_of(self._counted[0])

    @cached_property
    def costs(self) -> LedgerTotals:
        """Cost of the run, from its ledger; zeros for a file of labels."""
        return LedgerTotals() if self.run is None else costs(self.run.store)


class ReportSection(ABC):
    """One topic of the report. The first line of its docstring is the question that it answers."""

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    SCRIPTED: ClassVar[bool] = False

    @abstractmethod
    def data(self, facts: ReportFacts) -> ReportPart | None:
        """Return the data of the section, which is `data` in its template; None omits the section.

        Raises:
            DataError: a file of the run is invalid.
        """

    @classmethod
    def resource(cls, ending: str) -> str:
        """Return the template, style or script next to the section's module; empty if missing."""
        place = files(cls.__module__.rpartition(".")[0]) / f"{cls.NAME}.{ending}"
        return place.read_text(encoding="utf-8") if place.is_file() else ""


def deciding_comparisons(report: EvalReport) -> list[ComparisonPart]:
    """Return the comparisons by the primary metric, best first; empty if nothing was compared."""
    measure = report.measures[0]
    sign = 1.0 if report.higher_is_better[measure] else -1.0
    known = [part for part in report.comparisons if part.measure == measure and part.difference is not None]
    return sorted(known, key=lambda part: -sign * (part.difference or 0.0))


def is_ahead(part: ComparisonPart, report: EvalReport) -> bool:
    """Return whether a system's mean is better, regardless of significance."""
    sign = 1.0 if report.higher_is_better[part.measure] else -1.0
    return sign * (part.difference or 0.0) > 0


def plain_meaning(measure: str) -> str:
    """Return what a measure is, as part of a sentence: ``share of the relevant passages that are in the top 10``."""
    said = next(iter(glossary([measure]).values()), "")
    cutoff = measure.rpartition("@")[2]
    said = said.replace("top k", f"top {cutoff}").replace("k ranks", f"{cutoff} ranks") if cutoff.isdigit() else said
    return f"{said[:1].lower()}{said[1:]}"


def point_meaning(report: EvalReport) -> str:
    """Return what a point of the primary metric is: ``1 point is 0.01 of recall@10, the share of ...``."""
    measure = report.measures[0]
    meaning = plain_meaning(measure)
    return f"1 point is 0.01 of {measure}{', the ' if meaning else ''}{meaning}."
