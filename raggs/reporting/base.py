"""What a section of the report is: typed data from `ReportFacts`, drawn by the template that lies beside its module.

Which comparison a decision is about: the best of the other systems against the baseline, by the first measure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
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
from raggs.parts.reviews import CurrentReviews
from raggs.reporting.surveying import PoolSurvey, PoolTally, pools_of
from raggs.runs.manifests.costs import LedgerTotals, costs
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stats.judge_agreement import JudgeValidity
from raggs.sweeps.models import SweepReport


@dataclass(frozen=True)
class JudgeValidation:
    """The judge held against people, where they graded any of it.

    Attributes:
        trust: what the judge may be used for.
        said: the same in sentences.
        document: all of the check; None where nothing could be compared.
        why: why nothing could be compared; empty where it was.
    """

    trust: tuple[JudgeValidity, ...] = ()
    said: tuple[str, ...] = ()
    document: ReportDocument | None = None
    why: str = ""


@dataclass(frozen=True)
class ReportFacts:
    """All that a report may say, opened and scored before.

    Attributes:
        place: the golden set as the user named it, for commands.
        golden: the golden set, which streams its questions and passages.
        run: the run that made it; None where it is a file of labels.
        report: the evaluation of the systems; None where there are no grades yet.
        missing: why there is no evaluation; empty where there is one.
        sweeps: reports of sweeps over the set.
        people: the judge held against people.
        texts: whether passages may be shown. A section that shows any leaves them out where this is False.
        command: what makes this report again.
        systems: what each system returned; None: the run's own retrievers and their fusion.
        reviews: people's words, where there are any.
        judged: the grades as columns, where the evaluation has read them already.
        diagnoses: reports of diagnoses; `undiagnosed`: sentences on those that are left out.
    """

    place: str
    golden: GoldenSet
    run: OpenedRun | None
    report: EvalReport | None
    missing: str
    sweeps: tuple[SweepReport, ...]
    people: JudgeValidation
    texts: bool
    command: str
    systems: tuple[NamedSystem, ...] | None = None
    reviews: CurrentReviews | None = None
    judged: Judgments | None = None
    diagnoses: tuple[DiagnosisReport, ...] = ()
    undiagnosed: tuple[str, ...] = ()

    @cached_property
    def judgments(self) -> Judgments | None:
        """All grades; None where there are none yet, which the decision says."""
        try:
            found = self.judged or self.golden.judgments()
        except NotFoundError:
            return None
        return found if found.qrels.qids else None

    def views(self, depth: int) -> Iterator[QuestionView]:
        """Every question; the texts of passages are left out where they may not be shown.

        What the pools are made of is counted on the way, so that who has read all questions has `pools` for nothing.

        Args:
            depth: hits of each system.

        Raises:
            DataError: a line cannot be right.
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
        """The pools of the run; None of files, and where nothing was pooled yet.

        Raises:
            DataError: a line cannot be right.
        """
        if not self._counted:
            deque(self.views(depth=0), maxlen=0)
        return pools_of(self._counted[0])

    @cached_property
    def costs(self) -> LedgerTotals:
        """What the run has cost, by its ledger; zeros for a file of labels."""
        return LedgerTotals() if self.run is None else costs(self.run.store)


class ReportSection(ABC):
    """One subject of the report. The first line of its docstring says which question it answers."""

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    SCRIPTED: ClassVar[bool] = False

    @abstractmethod
    def data(self, facts: ReportFacts) -> ReportPart | None:
        """What the template is given as `data`; None leaves the section out.

        Raises:
            DataError: a file of the run cannot be right.
        """

    @classmethod
    def resource(cls, ending: str) -> str:
        """The text of the file beside the section's module: template, style or script; empty where there is none."""
        place = files(cls.__module__.rpartition(".")[0]) / f"{cls.NAME}.{ending}"
        return place.read_text(encoding="utf-8") if place.is_file() else ""


def deciding_comparisons(report: EvalReport) -> list[ComparisonPart]:
    """The comparisons by the measure that decides, best first; none where nothing was compared."""
    measure = report.measures[0]
    sign = 1.0 if report.higher_is_better[measure] else -1.0
    known = [part for part in report.comparisons if part.measure == measure and part.difference is not None]
    return sorted(known, key=lambda part: -sign * (part.difference or 0.0))


def is_ahead(part: ComparisonPart, report: EvalReport) -> bool:
    """Whether a system's mean is the better one, sure or not."""
    sign = 1.0 if report.higher_is_better[part.measure] else -1.0
    return sign * (part.difference or 0.0) > 0
